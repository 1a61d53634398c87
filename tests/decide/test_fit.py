"""Whether a pod fits on a node: kube-scheduler's default filters, and the first one's reasons."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.decide.fit import fit_node, fit_room, fit_static, fits_back
from extender.model.device import CardShare
from extender.model.node import NodeRoom, Taint
from extender.model.pod import HostPort, Occupant, Toleration
from extender.model.verdict import AffinityMismatch, Cordoned, Insufficient, PortsTaken, Reason, UntoleratedTaint
from tests.builders import GIB, GPU, a_node, a_pod, a_room, a_shape, a_share, some_cards, whole_gpus

CORDON = "node.kubernetes.io/unschedulable"


def test_a_pod_fits_on_an_empty_node() -> None:
    assert fit_node(a_shape(gpu=2), a_room(a_node("n1", gpu=2))) == ()


def test_too_little_is_told_of_every_resource() -> None:
    room = a_room(a_node("n1", gpu=2, cpu_milli=1000, memory_bytes=GIB), a_pod("other", gpu=1, cpu_milli=600))
    assert fit_node(a_shape(gpu=2, cpu_milli=500, memory_bytes=0), room) == (
        Insufficient("cpu", 500, 400),
        Insufficient(GPU, 2, 1),
    )


def test_a_resource_that_the_node_does_not_have_is_too_little() -> None:
    shape = a_shape(gpu=0, requests={"example.com/fpga": 1})
    assert fit_node(shape, a_room(a_node("n1"))) == (Insufficient("example.com/fpga", 1, 0),)


def test_the_number_of_pods_is_limited() -> None:
    room = a_room(a_node("n1", pods=1), a_pod("other", gpu=0))
    assert fit_node(a_shape(gpu=0), room) == (Insufficient("pods", 1, 0),)


def test_what_a_pod_does_not_ask_for_may_be_overcommitted() -> None:
    room = a_room(a_node("n1", gpu=1), a_pod("p", gpu=1), a_pod("q", gpu=1))
    assert fit_node(a_shape(gpu=0), room) == ()
    assert fit_node(a_shape(gpu=1), room) == (Insufficient(GPU, 1, -1),)


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", GPU]), st.integers(0, 5))


@given(amounts, amounts, amounts)
def test_it_fits_when_nothing_asked_for_goes_beyond_the_node(
    requests: dict[str, int], taken: dict[str, int], allocatable: dict[str, int]
) -> None:
    shape = a_shape(gpu=0, cpu_milli=0, memory_bytes=0, requests=requests)
    node = a_node("n1", gpu=0, cpu_milli=0, memory_bytes=0, pods=0, allocatable=allocatable)

    reasons = fit_room(shape, NodeRoom(node, taken))

    asked = {"pods": 1, **requests}
    free = {name: allocatable.get(name, 0) - taken.get(name, 0) for name in asked}
    short = {name for name, amount in asked.items() if amount and amount > free[name]}
    assert {reason.resource for reason in reasons if isinstance(reason, Insufficient)} == short
    assert len(reasons) == len(short)


def test_a_cordoned_node_takes_nobody() -> None:
    assert fit_node(a_shape(), a_room(a_node("n1", unschedulable=True))) == (Cordoned(),)


@pytest.mark.parametrize(
    "toleration", [Toleration(CORDON, "Exists", effect="NoSchedule"), Toleration(CORDON), Toleration(operator="Exists")]
)
def test_who_tolerates_the_cordon_goes_to_a_cordoned_node(toleration: Toleration) -> None:
    assert fit_static(a_shape(tolerations=(toleration,)), a_node("n1", unschedulable=True)) == ()


TAINT = Taint("pool", "gpu", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("pool", "Equal", "gpu", "NoSchedule"), True),
        (Toleration("pool", "", "gpu", ""), True),
        (Toleration("pool", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", "", "NoSchedule"), True),
        (Toleration("", "Equal", "gpu"), True),
        (Toleration("pool", "Exists", "", "NoExecute"), False),
        (Toleration("pool", "Equal", "cpu"), False),
        (Toleration("pool", "Equal"), False),
        (Toleration("other", "Exists"), False),
        (Toleration("pool", "Gt", "0"), False),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(toleration: Toleration, *, tolerated: bool) -> None:
    reasons = fit_static(a_shape(tolerations=(toleration,)), a_node("n1", taints=(TAINT,)))
    assert reasons == (() if tolerated else (UntoleratedTaint(TAINT),))


@pytest.mark.parametrize(
    ("effect", "keeps_off"), [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False)]
)
def test_a_taint_that_is_a_mere_preference_keeps_nobody_off(effect: str, *, keeps_off: bool) -> None:
    assert bool(fit_static(a_shape(), a_node("n1", taints=(Taint("k", "", effect),)))) == keeps_off


def test_the_first_untolerated_taint_is_told() -> None:
    first, second, third = Taint("a"), Taint("b"), Taint("c")
    node = a_node("n1", taints=(first, second, third))
    assert fit_static(a_shape(tolerations=(Toleration("a", "Exists"),)), node) == (UntoleratedTaint(second),)


def test_a_node_that_does_not_match_the_selector_is_told() -> None:
    assert fit_static(a_shape(node_selector={"pool": "gpu"}), a_node("n1")) == (AffinityMismatch(),)
    assert fit_static(a_shape(required_terms=()), a_node("n1")) == (AffinityMismatch(),)
    assert fit_static(a_shape(node_selector={"pool": "gpu"}), a_node("n1", labels={"pool": "gpu"})) == ()


ANY = HostPort(0).ip
ADDRESSES = ("10.0.0.1", "10.0.0.2", "127.0.0.1")
PORTS = [HostPort(*port) for port in product((80, 81), ("TCP", "UDP"), (ANY, *ADDRESSES))]


def sockets(port: HostPort) -> set[tuple[str, str, int]]:
    addresses = (*ADDRESSES, "192.0.2.1") if port.ip == ANY else (port.ip,)
    return {(address, port.protocol, port.port) for address in addresses}


@pytest.mark.parametrize("wanted", PORTS, ids=str)
def test_a_port_is_taken_when_both_would_listen_on_one_address(wanted: HostPort) -> None:
    shape = a_shape(host_ports=(HostPort(1), wanted))
    for taken in PORTS:
        clash = bool(sockets(wanted) & sockets(taken))

        reasons = fit_room(shape, NodeRoom(a_node("n1"), {}, (HostPort(2), taken)))

        assert reasons == ((PortsTaken(),) if clash else ())


@pytest.mark.parametrize(
    ("obstacles", "reason"),
    [
        ({"cordon", "taint", "labels", "port"}, Cordoned()),
        ({"taint", "labels", "port"}, UntoleratedTaint(TAINT)),
        ({"labels", "port"}, AffinityMismatch()),
        ({"port"}, PortsTaken()),
        (set(), Insufficient(GPU, 9, 2)),
    ],
)
def test_only_the_first_filter_that_says_no_is_heard(obstacles: set[str], reason: Reason) -> None:
    node = a_node(
        "n1",
        gpu=2,
        unschedulable="cordon" in obstacles,
        taints=(TAINT,) if "taint" in obstacles else (),
        labels={} if "labels" in obstacles else {"pool": "gpu"},
    )
    room = NodeRoom(node, {}, (HostPort(80),) if "port" in obstacles else ())
    shape = a_shape(gpu=9, node_selector={"pool": "gpu"}, host_ports=(HostPort(80),))

    assert fit_node(shape, room) == (reason,)


def test_a_pod_finds_its_cards_again_unless_somebody_has_taken_them() -> None:
    inventory = some_cards(2)
    cards = (inventory.cards[0], structs.replace(inventory.cards[1], healthy=False))
    node = a_node("n1", inventory=structs.replace(inventory, cards=cards))
    half, cpu, whole = a_shape(gpu=0, cards=a_share(500)), a_shape(gpu=0), a_shape(gpu=1, cards=whole_gpus(1))
    healthy, broken = (Occupant(half, cards=(CardShare(i, f"GPU-{i}", 500, 8 * GIB),)) for i in (0, 1))
    all_of_it = Occupant(half, cards=(CardShare(0, "GPU-0", 1000, 16 * GIB),))

    beside_broken = NodeRoom(node).having(broken)
    assert all(fits_back(pod, beside_broken) for pod in (Occupant(cpu), healthy, broken))
    assert not fits_back(Occupant(whole), beside_broken)
    assert not fits_back(healthy, NodeRoom(node).having(all_of_it))
    assert fits_back(broken, NodeRoom(node).having(all_of_it))
    no_cores = Occupant(half, cards=(CardShare(0, "GPU-0", 0, GIB),))
    all_cores = Occupant(half, cards=(CardShare(0, "GPU-0", 1000, GIB),))
    assert not fits_back(no_cores, NodeRoom(node).having(all_cores)), "who has all cores has the card for himself"
    assert not fits_back(all_cores, NodeRoom(node).having(no_cores))
    assert fits_back(no_cores, NodeRoom(node).having(healthy))
    beside_whole = NodeRoom(node).having(Occupant(whole))
    assert not fits_back(healthy, beside_whole), "the kubelet knows nothing of shares"
    assert fits_back(Occupant(cpu), beside_whole)
    assert fits_back(Occupant(whole), beside_whole)
