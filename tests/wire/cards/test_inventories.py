"""Which GPUs a node has: from what each device plugin, KubeShare and GPU feature discovery write on it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from extender.model.device import Card, CardInventory, CardManager, CardPolicy
from extender.wire import core_v1
from extender.wire.cards.inventories import inventory_of
from tests.builders import GIB, node_json

MIB = 2**20
GPU = "nvidia.com/gpu"
WHOLE = frozenset({GPU})
POLICY = CardPolicy(memory_bytes={"Tesla-T4": 15 * GIB})


def inventory(
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    capacity: dict[str, str] | None = None,
    policy: CardPolicy = POLICY,
) -> CardInventory | None:
    node: dict[str, Any] = node_json(metadata={"annotations": annotations, "labels": labels})
    node["status"] = {"allocatable": allocatable or {}, "capacity": capacity or allocatable or {}}
    return inventory_of(convert(node, core_v1.Node), policy)


def known(**parts: Any) -> CardInventory:
    found = inventory(**parts)
    assert found is not None
    return found


def test_a_node_without_gpus_has_none() -> None:
    assert inventory(allocatable={"cpu": "4", "pods": "110"}) is None


REGISTER = "hami.io/node-nvidia-register"
HAMI_JSON = json.dumps(
    [
        {
            "id": "GPU-a",
            "count": 10,
            "devmem": 23028,
            "devcore": 100,
            "type": "NVIDIA A10",
            "mode": "hami-core",
            "health": True,
        },
        {
            "id": "GPU-b",
            "index": 1,
            "count": 10,
            "devmem": 23028,
            "devcore": 100,
            "type": "NVIDIA A10",
            "numa": 1,
            "health": False,
        },
        {"id": "GPU-c", "index": 2, "count": 7, "devmem": 40960, "devcore": 100, "mode": "mig", "health": True},
    ]
)
A10: dict[str, Any] = {"memory_bytes": 23028 * MIB, "model": "NVIDIA A10", "slots": 10}


def test_hami_registers_cards_as_json() -> None:
    assert inventory({REGISTER: HAMI_JSON}, allocatable={GPU: "27"}) == CardInventory(
        CardManager.HAMI,
        (Card(0, "GPU-a", numa=0, mode="hami-core", **A10), Card(1, "GPU-b", numa=1, healthy=False, **A10)),
        WHOLE,
    )


@pytest.mark.parametrize("numbered", [False, True])
def test_older_plugins_of_hami_register_text(*, numbered: bool) -> None:
    rest = [",1,hami-core", ",0,hami-core"] if numbered else ["", ""]
    text = f"GPU-a,10,23028,100,NVIDIA A10,0,true{rest[0]}:GPU-b,10,23028,100,NVIDIA A10,1,false{rest[1]}:"
    found = known(annotations={REGISTER: text})
    assert [(card.index, card.uuid) for card in found.cards] == (
        [(0, "GPU-b"), (1, "GPU-a")] if numbered else [(0, "GPU-a"), (1, "GPU-b")]
    )
    assert {card.uuid: (card.numa, card.healthy) for card in found.cards} == {"GPU-a": (0, True), "GPU-b": (1, False)}


def test_hami_says_how_near_cards_are() -> None:
    scores = json.dumps([{"uuid": "GPU-a", "score": {"GPU-b": 80}}, {"uuid": "GPU-b", "score": {"GPU-a": 80}}])
    found = known(annotations={REGISTER: HAMI_JSON, "hami.io/node-nvidia-score": scores})
    assert [card.links for card in found.cards] == [(("GPU-b", 80),), (("GPU-a", 80),)]


def test_scores_that_make_no_sense_cost_only_the_preference() -> None:
    found = known(annotations={REGISTER: HAMI_JSON, "hami.io/node-nvidia-score": "{"})
    assert [card.links for card in found.cards] == [(), ()]


def test_a_card_that_is_cordoned_gets_nothing_new() -> None:
    found = known(annotations={REGISTER: HAMI_JSON, "hami.io/device-cordon": " GPU-a ,GPU-x,"})
    assert [(card.uuid, card.healthy) for card in found.cards] == [("GPU-a", False), ("GPU-b", False)]


def test_what_a_plugin_left_behind_that_is_gone_counts_no_more() -> None:
    handshakes = {"hami.io/node-handshake": "Deleted_2026.01.02 03:04:05"}
    assert inventory({REGISTER: HAMI_JSON, **handshakes}) is None
    assert inventory({REGISTER: HAMI_JSON, "hami.io/node-handshake": "Requesting_2026.01.02 03:04:05"}) is not None


def test_volcanos_vgpu_plugin_registers_cards() -> None:
    text = "GPU-a,10,32768,NVIDIA-V100,true,hami-core:GPU-b,10,32768,NVIDIA-V100,false,hami-core:GPU-c,7,1,A,true,mig:"
    v100: dict[str, Any] = {"memory_bytes": 32 * GIB, "model": "NVIDIA-V100", "slots": 10, "mode": "hami-core"}
    assert inventory({"volcano.sh/node-vgpu-register": text}) == CardInventory(
        CardManager.VOLCANO_VGPU,
        (Card(0, "GPU-a", **v100), Card(1, "GPU-b", healthy=False, **v100)),
        WHOLE | {"volcano.sh/vgpu-number"},
    )


def test_gpushare_offers_the_memory_of_all_cards() -> None:
    assert inventory(allocatable={"aliyun.com/gpu-mem": "31", "aliyun.com/gpu-count": "2"}) == CardInventory(
        CardManager.GPUSHARE,
        (Card(0, memory_bytes=15 * GIB), Card(1, memory_bytes=15 * GIB)),
        WHOLE | {"aliyun.com/gpu-mem"},
    )


def test_a_node_of_gpushare_with_an_unhealthy_card_cannot_be_shared_since_nobody_says_which() -> None:
    found = known(
        allocatable={"aliyun.com/gpu-mem": "15", "aliyun.com/gpu-count": "2"},
        capacity={"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"},
    )
    assert found.cards == ()
    assert found.problem == (
        "less of aliyun.com/gpu-mem is allocatable than there is, and nothing says which GPU is unhealthy"
    )


def test_volcanos_older_plugin_says_which_cards_are_unhealthy() -> None:
    found = known(
        annotations={"volcano.sh/gpu-unhealthy-ids": "1"},
        allocatable={"volcano.sh/gpu-memory": "16384", "volcano.sh/gpu-number": "1"},
        capacity={"volcano.sh/gpu-memory": "32768", "volcano.sh/gpu-number": "2"},
    )
    assert found == CardInventory(
        CardManager.VOLCANO_GPU,
        (Card(0, memory_bytes=16 * GIB), Card(1, memory_bytes=16 * GIB, healthy=False)),
        WHOLE | {"volcano.sh/gpu-memory", "volcano.sh/gpu-number"},
    )


def test_kubeshare_names_the_cards_of_its_nodes() -> None:
    found = known(annotations={"kubeshare/gpu_info": "GPU-a:16160,GPU-b:16160,"}, allocatable={GPU: "2"})
    assert found == CardInventory(
        CardManager.OWN, (Card(0, "GPU-a", 16160 * MIB), Card(1, "GPU-b", 16160 * MIB)), WHOLE
    )


DISCOVERED = {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.product": "A100"}


def test_gpu_feature_discovery() -> None:
    a100: dict[str, Any] = {"memory_bytes": 40 * GIB, "model": "A100"}
    found = CardInventory(CardManager.OWN, (Card(0, **a100), Card(1, **a100)), WHOLE)
    assert inventory(labels=DISCOVERED, allocatable={GPU: "2"}) == found
    assert inventory(labels=DISCOVERED | {"nvidia.com/gpu.replicas": "1"}, allocatable={GPU: "2"}) == found


@pytest.mark.parametrize(
    ("labels", "allocatable"),
    [
        ({"nvidia.com/gpu.replicas": "4"}, {GPU: "8"}),
        ({"nvidia.com/gpu.product": "A100-SHARED"}, {GPU: "2"}),
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing"}, {GPU: "2"}),
        ({"nvidia.com/gpu.product": "A100-MIG-1g.5gb"}, {GPU: "2"}),
        ({}, {GPU: "8"}),  # offered more than once, and no label says it
        ({}, {GPU: "1", "nvidia.com/mig-1g.5gb": "7"}),
        ({}, {"nvidia.com/gpu.shared": "8"}),
    ],
)
def test_cards_that_their_plugin_shares_are_not_ours_to_share(
    labels: dict[str, str], allocatable: dict[str, str]
) -> None:
    assert inventory(labels=DISCOVERED | labels, allocatable=allocatable) is None


def test_without_discovery_the_number_is_known_and_the_memory_of_models_that_are_configured() -> None:
    assert known(allocatable={GPU: "2"}).cards == (Card(0), Card(1))
    labelled = known(labels={"nvidia.com/gpu.product": "Tesla-T4"}, allocatable={GPU: "1"})
    assert labelled.cards == (Card(0, memory_bytes=15 * GIB, model="Tesla-T4"),)


def test_fewer_healthy_gpus_than_there_are() -> None:
    found = known(labels=DISCOVERED, allocatable={GPU: "1"}, capacity={GPU: "2"})
    assert (found.cards, found.kubelet_resources) == ((), WHOLE)
    assert "nothing says which GPU is unhealthy" in found.problem


def test_fewer_gpus_on_offer_than_there_are() -> None:
    found = known(labels=DISCOVERED, allocatable={GPU: "1"})
    assert found.cards == ()
    assert "fewer nvidia.com/gpu are offered than there are GPUs" in found.problem


@pytest.mark.parametrize("offered", [{"cpu": "4"}, {GPU: "0"}])
def test_gpus_of_a_node_that_never_had_a_plugin_or_has_lost_it(offered: dict[str, str]) -> None:
    assert len(known(labels=DISCOVERED, allocatable=offered).cards) == 2


def test_a_node_without_a_healthy_gpu_that_nothing_else_knows_of_has_none() -> None:
    assert inventory(allocatable={GPU: "0"}) is None


def test_the_kubelet_hands_out_what_is_configured_and_parts_of_cards() -> None:
    found = known(
        annotations={REGISTER: HAMI_JSON},
        allocatable={"nvidia.com/mig-1g.5gb": "7", "nvidia.com/gpu.shared": "2", "amd.com/gpu": "1"},
        policy=CardPolicy(frozenset({GPU, "amd.com/gpu"}), spread=True),
    )
    assert found.kubelet_resources == {GPU, "amd.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared"}
    assert found.spread


def test_a_sharing_plugin_goes_before_what_holds_of_any() -> None:
    annotations = {REGISTER: HAMI_JSON, "kubeshare/gpu_info": "GPU-a:16160,"}
    assert known(annotations=annotations, labels=DISCOVERED, allocatable={GPU: "20"}).manager is CardManager.HAMI


@pytest.mark.parametrize(
    ("annotations", "manager", "problem"),
    [
        ({REGISTER: text}, CardManager.HAMI, f"annotation {REGISTER} cannot be read")
        for text in (
            "",
            "[",
            "[1]",
            "GPU-a,10",
            '[{"id":""}]',
            '[{"id":"a"},{"id":"a"}]',
            '[{"id":"a","devmem":-1}]',
            "GPU-a,10,x,100,A10,0,true:",
            "GPU-a,10,1,100,A10,0,maybe:",
        )
    ]
    + [
        ({"volcano.sh/node-vgpu-register": text}, CardManager.VOLCANO_VGPU, "node-vgpu-register cannot be read")
        for text in ("", ":", "GPU-a,10", "GPU-a,ten,1,A10,true,hami-core:", "a,1,1,A,true:a,1,1,A,true:")
    ]
    + [
        ({"kubeshare/gpu_info": text}, CardManager.OWN, "annotation kubeshare/gpu_info cannot be read")
        for text in ("GPU-a", "GPU-a:x,", ":1,", "a:1,a:1")
    ],
)
def test_what_makes_no_sense_leaves_no_cards_and_is_told(
    annotations: dict[str, str], manager: CardManager, problem: str
) -> None:
    found = known(annotations=annotations, allocatable={GPU: "2"})
    assert (found.manager, found.cards) == (manager, ())
    assert problem in found.problem


@pytest.mark.parametrize(
    ("labels", "allocatable", "problem"),
    [
        ({"nvidia.com/gpu.count": "two"}, {GPU: "2"}, "label nvidia.com/gpu.count cannot be read"),
        ({"nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "-1"}, {GPU: "2"}, "label nvidia.com/gpu.memory"),
        ({"nvidia.com/gpu.count": "999999999"}, {GPU: "2"}, "says more than 1024 GPUs"),
        ({}, {"aliyun.com/gpu-mem": "1", "aliyun.com/gpu-count": "999999999"}, "says more than 1024 GPUs"),
    ],
)
def test_labels_and_amounts_that_make_no_sense(
    labels: dict[str, str], allocatable: dict[str, str], problem: str
) -> None:
    found = known(labels=labels, allocatable=allocatable)
    assert found.cards == ()
    assert problem in found.problem


KEYS = [
    REGISTER,
    "hami.io/node-handshake",
    "hami.io/node-nvidia-score",
    "volcano.sh/node-vgpu-register",
    "volcano.sh/gpu-unhealthy-ids",
    "kubeshare/gpu_info",
]
LABELS = [*DISCOVERED, "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"]
DEVICE = st.fixed_dictionaries(
    {"id": st.text("ab", max_size=2)},
    optional={key: st.integers() for key in ("index", "count", "devmem", "devcore", "numa")},
)
TEXTS = (
    st.text(max_size=30)
    | st.text("GPU-a,:;0123456789.[]{} truefalse", max_size=80)
    | st.sampled_from(["[" * 9999, '{"a":[1,null,"\\ud800"]}', "GPU-a,1,1,1,a,0,true:" * 2, "Deleted_"])
    | st.lists(DEVICE, max_size=3).map(json.dumps)
)


@given(
    annotations=st.dictionaries(st.sampled_from(KEYS), TEXTS),
    labels=st.dictionaries(st.sampled_from(LABELS), TEXTS),
    allocatable=st.dictionaries(st.sampled_from([GPU, "volcano.sh/gpu-memory", "aliyun.com/gpu-mem"]), st.just("3")),
)
def test_no_text_whatever_raises(
    annotations: dict[str, str], labels: dict[str, str], allocatable: dict[str, str]
) -> None:
    found = inventory(annotations, labels, allocatable)
    if found is not None:
        assert bool(found.problem) <= (not found.cards)
        assert len({card.key for card in found.cards}) == len(found.cards), "two cards of one name"
