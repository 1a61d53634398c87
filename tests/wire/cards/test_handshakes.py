"""Whatever was chosen, and whoever takes it to the container: what is read of the bound pod takes the same cards."""

from collections.abc import Mapping

import pytest
from hypothesis import given as each
from hypothesis import strategies as st
from msgspec import structs

from extender.decide.devices import choose_cards
from extender.model.device import CHOICES, CardDialect, CardManager, CardNeed, CardRequest, CardShare, CardUse
from extender.model.node import NodeRoom
from extender.model.pod import Occupant
from extender.wire.cards.exact_record import record_of
from extender.wire.cards.handshake import CardChoice
from extender.wire.cards.handshakes import HANDSHAKES, awaits_plugin, given_cards
from tests.builders import GIB, a_node, a_shape
from tests.wire.cards.given_pods import NOW_S, a_choice, bound_pod, inventory

ONE_CARD = frozenset({CardDialect.GPUSHARE, CardDialect.VOLCANO_GPU})
"""Who asks in these terms gets a part of one card's memory, in whole GiB, and nothing else."""


@st.composite
def requests(draw: st.DrawFn) -> tuple[CardManager, CardRequest]:
    manager = draw(st.sampled_from(list(HANDSHAKES)))
    dialect = draw(st.sampled_from(sorted(CHOICES[manager])))
    if dialect in ONE_CARD:
        return manager, CardRequest(dialect, (CardNeed(memory_bytes=draw(st.integers(1, 16)) * GIB),))
    containers = draw(st.integers(1, 3))
    init_containers = draw(st.integers(0, containers - 1))
    first = init_containers if manager is CardManager.VOLCANO_VGPU else 0
    needs = [
        CardNeed(
            count=draw(st.integers(1, 3)),
            core_milli=draw(st.integers(0, 100)) * 10,
            memory_bytes=draw(st.integers(1, 16 * 1024)) * 2**20,
            container=container,
        )
        for container in draw(st.sets(st.integers(first, containers - 1), min_size=1))
    ]
    return manager, CardRequest(dialect, tuple(needs), containers=containers, init_containers=init_containers)


def taken(room: NodeRoom, shares: tuple[CardShare, ...]) -> Mapping[str, CardUse]:
    return room.having(Occupant(a_shape(gpu=0), cards=shares)).taken_cards


def amounts(taken: Mapping[str, CardUse]) -> dict[str, tuple[int, int]]:
    return {key: (use.core_milli, use.memory_bytes) for key, use in taken.items()}


@each(requests())
def test_what_is_read_of_a_pod_takes_what_was_chosen_for_it(asked: tuple[CardManager, CardRequest]) -> None:
    manager, request = asked
    node = structs.replace(a_node("n1"), inventory=inventory(manager, uuids=manager is not CardManager.GPUSHARE))
    assert node.inventory is not None
    room = NodeRoom(node)
    shares = choose_cards(request, room)
    if not shares:
        return
    written = HANDSHAKES[manager].annotations(CardChoice(request, shares, node.inventory, "n1", NOW_S))
    chosen, read = taken(room, shares), taken(room, given_cards(bound_pod(written), request))
    assert amounts(read) == amounts(chosen)
    if manager is not CardManager.KOORDINATOR:  # it knows one share of each card, whichever containers are on it
        assert read == chosen


@each(st.sampled_from(list(HANDSHAKES)), st.text(max_size=40))
def test_whatever_is_written_on_a_pod_can_be_read(manager: CardManager, text: str) -> None:
    dialect = min(CHOICES[manager])
    request = CardRequest(dialect, (CardNeed(memory_bytes=GIB),))
    keys = HANDSHAKES[manager].annotations(a_choice(manager, dialect, CardShare(0, "GPU-aaaa", 0, GIB)))
    pod = bound_pod(dict.fromkeys(keys, text))
    given_cards(pod, request)
    awaits_plugin(pod, request)


def test_every_manager_whose_cards_are_ours_to_choose_is_told_of_the_choice() -> None:
    assert HANDSHAKES.keys() == CHOICES.keys() == set(CardManager)


HAMI_POD = {
    "hami.io/vgpu-node": "n1",
    "hami.io/vgpu-devices-allocated": "GPU-aaaa,NVIDIA,1024,30:;",
    "hami.io/bind-phase": "allocating",
}


def test_annotations_of_a_manager_in_whose_terms_the_pod_does_not_ask_are_leftovers() -> None:
    pod = bound_pod(HAMI_POD)
    assert given_cards(pod, CardRequest(CardDialect.HAMI, (CardNeed(),)))
    assert not given_cards(pod, CardRequest(CardDialect.GPUSHARE, (CardNeed(),)))
    assert not given_cards(pod, None)


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_a_pod_that_runs_or_has_ended_waits_for_no_plugin(phase: str) -> None:
    request = CardRequest(CardDialect.HAMI, (CardNeed(),))
    assert awaits_plugin(bound_pod(HAMI_POD), request)
    assert not awaits_plugin(bound_pod(HAMI_POD, phase=phase), request)


def test_what_an_owner_writes_on_his_own_pod_gives_it_no_more_cards_than_it_asks_for() -> None:
    entries = [CardShare(index, "", 1000, 16 * GIB) for index in range(4)]
    written = record_of(a_choice(CardManager.OWN, CardDialect.KUBESHARE_1, *entries))
    half = CardRequest(CardDialect.KUBESHARE_1, (CardNeed(core_milli=500, memory_milli=500),))
    assert [share.index for share in given_cards(bound_pod(written), half)] == [0]
