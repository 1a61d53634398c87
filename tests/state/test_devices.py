"""A node's cards at the level of the cluster: what a Device object says of them, and cards that change under pods."""

from msgspec import convert, structs

from extender.model.device import Card, CardInventory, CardManager, CardPolicy, CardShare, CardUse, NodeCards
from extender.model.node import Node
from extender.wire import core_v1
from extender.wire.objects import node_of
from tests.builders import a_node, a_pod, a_shape, a_share, node_json, some_cards, whole_gpus
from tests.rig import Rig

REPORTED = some_cards(2, manager=CardManager.KOORDINATOR)
"""What Koordinator's Device says."""


def add(rig: Rig, *nodes: Node) -> None:
    for node in nodes:
        rig.cluster.upsert_node(node)


def cards_of(rig: Rig, name: str = "n1") -> CardInventory | None:
    return rig.cluster.snapshot().rooms[name].node.inventory


def test_the_device_may_come_before_its_node_and_after_it() -> None:
    rig = Rig()
    rig.cluster.devices.upsert(NodeCards("n1", REPORTED))
    add(rig, a_node("n1"), a_node("n2"))
    rig.cluster.devices.upsert(NodeCards("n2", REPORTED))
    assert cards_of(rig, "n1") == cards_of(rig, "n2") == REPORTED


def test_a_device_that_changes_or_goes_changes_its_node() -> None:
    rig = Rig()
    own = some_cards(1)
    add(rig, a_node("n1", inventory=own))
    rig.cluster.devices.upsert(NodeCards("n1", REPORTED))
    assert cards_of(rig) == REPORTED
    broken = structs.replace(REPORTED, cards=tuple(structs.replace(card, healthy=False) for card in REPORTED.cards))
    rig.cluster.devices.upsert(NodeCards("n1", broken))
    assert cards_of(rig) == broken
    rig.cluster.devices.upsert(NodeCards("n1"))
    assert cards_of(rig) == own, "a Device without GPUs says nothing of them"
    rig.cluster.devices.upsert(NodeCards("n1", REPORTED))
    rig.cluster.devices.remove("n1")
    assert cards_of(rig) == own


def test_a_full_list_of_devices_leaves_out_those_that_are_gone() -> None:
    rig = Rig()
    add(rig, a_node("n1"), a_node("n2"))
    rig.cluster.devices.replace([NodeCards("n1", REPORTED), NodeCards("n2", REPORTED)])
    rig.cluster.devices.replace([NodeCards("n2", REPORTED)])
    assert (cards_of(rig, "n1"), cards_of(rig, "n2")) == (None, REPORTED)


def test_the_device_outlives_changes_of_its_node_and_its_absence() -> None:
    rig = Rig()
    add(rig, a_node("n1"))
    rig.cluster.devices.upsert(NodeCards("n1", REPORTED))
    add(rig, a_node("n1", labels={"zone": "a"}))
    assert cards_of(rig) == REPORTED
    rig.cluster.remove_node("n1")
    rig.cluster.devices.upsert(NodeCards("n1", some_cards(1, manager=CardManager.KOORDINATOR)))
    assert "n1" not in rig.cluster.snapshot().rooms, "a Device makes no node"
    add(rig, a_node("n1"))
    assert cards_of(rig) == some_cards(1, manager=CardManager.KOORDINATOR)


def test_a_plugin_that_registers_cards_on_the_node_goes_before_the_device() -> None:
    rig = Rig()
    hami = some_cards(2, manager=CardManager.HAMI)
    add(rig, a_node("n1", inventory=hami))
    rig.cluster.devices.upsert(NodeCards("n1", REPORTED))
    assert cards_of(rig) == hami


def test_what_the_kubelet_hands_out_is_known_from_both() -> None:
    rig = Rig()
    own = structs.replace(some_cards(1), kubelet_resources=frozenset({"nvidia.com/mig-1g.5gb"}))
    add(rig, a_node("n1", inventory=own))
    rig.cluster.devices.upsert(NodeCards("n1", REPORTED))
    found = cards_of(rig)
    assert found is not None
    assert found.kubelet_resources == {"nvidia.com/mig-1g.5gb", "nvidia.com/gpu"}


def registering(*gpus: str) -> Node:
    """Return a node on which KubeShare names these GPUs of 16 GiB."""
    annotations = {"kubeshare/gpu_info": ",".join(f"{gpu}:16384" for gpu in gpus)}
    body = node_json(metadata={"annotations": annotations}, allocatable={"nvidia.com/gpu": str(len(gpus))})
    return node_of(convert(body, core_v1.Node), CardPolicy())


def test_cards_that_are_added_swapped_or_gone_keep_what_pods_have_of_them() -> None:
    rig = Rig()
    add(rig, registering("GPU-a", "GPU-b"))
    pod = a_pod("p", shape=a_shape(gpu=0, cards=a_share(500)), node="n1")
    rig.create(structs.replace(pod, cards=(CardShare(1, "GPU-b", 500, 8 * 2**30),)))
    half = {"GPU-b": CardUse(500, 8 * 2**30, 1)}
    for gpus in (("GPU-a", "GPU-b", "GPU-c"), ("GPU-b", "GPU-a"), ("GPU-a", "GPU-x")):
        add(rig, registering(*gpus))
        room = rig.cluster.snapshot().rooms["n1"]
        assert room.taken_cards == half
        assert room.node.inventory is not None
        assert [card.uuid for card in room.node.inventory.cards] == list(gpus)
    rig.cluster.remove_pod(pod.uid)
    assert rig.cluster.snapshot().rooms["n1"].taken_cards == {}


def test_a_card_that_gets_unhealthy_is_not_given_away_and_one_that_recovers_is() -> None:
    rig = Rig()
    sick = CardInventory(CardManager.OWN, (Card(0, "GPU-0", 16 * 2**30, healthy=False),))
    well = CardInventory(CardManager.OWN, (Card(0, "GPU-0", 16 * 2**30),))
    share = a_pod("p", shape=a_shape(gpu=0, cards=a_share(500)))
    add(rig, a_node("n1", inventory=sick))
    assert rig.cluster.snapshot().rooms["n1"].node.inventory == sick
    assert rig.node_for(share) is None
    add(rig, a_node("n1", inventory=well))
    assert rig.node_for(share) == "n1"


def test_a_node_whose_cards_cannot_be_read_takes_whole_gpus_but_no_share_and_says_why() -> None:
    rig = Rig()
    annotations = {"kubeshare/gpu_info": "GPU-a:lots"}
    add(rig, node_of(convert(node_json(metadata={"annotations": annotations}), core_v1.Node), CardPolicy()))
    share = a_pod("p", shape=a_shape(gpu=0, cards=a_share(500)))
    assert "node(s) have GPUs that cannot be used: annotation kubeshare/gpu_info cannot be read" in rig.text_for(share)
    assert rig.node_for(a_pod("whole", shape=a_shape(gpu=2, cards=whole_gpus(2)))) == "n1"
