"""What pods ask of GPUs: each form as its system documents it, and what makes no sense with what is said of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from extender.model.device import BadCardRequest, CardDialect, CardNeed, CardRequest, CardTerms
from extender.wire import core_v1
from extender.wire.cards import kai, kubeshare
from extender.wire.cards.requests import card_request
from extender.wire.objects import pod_of
from tests.builders import GIB, pod_json

MIB = 2**20
GPU = "nvidia.com/gpu"
ONE_WHOLE = CardNeed(1, 1000, memory_milli=1000)


def pod(*containers: dict[str, Any], init: Any = (), node: str = "", **metadata: Any) -> core_v1.Pod:
    """Return a pod; each container is what it requests."""
    spec = {
        "nodeName": node,
        "containers": [{"name": f"c{i}", "resources": {"requests": asked}} for i, asked in enumerate(containers)],
        "initContainers": [{"name": f"i{i}", "resources": {"requests": asked}} for i, asked in enumerate(init)],
    }
    return convert(pod_json(metadata=metadata, spec=spec), core_v1.Pod)


def asked(*containers: dict[str, Any], **rest: Any) -> CardRequest | BadCardRequest | None:
    return card_request(pod(*(containers or ({"cpu": "1"},)), **rest))


def needs(*containers: dict[str, Any], **rest: Any) -> tuple[CardNeed, ...]:
    request = asked(*containers, **rest)
    assert isinstance(request, CardRequest), request
    return request.needs


def problem(*containers: dict[str, Any], **rest: Any) -> str:
    request = asked(*containers, **rest)
    assert isinstance(request, BadCardRequest), request
    return request.problem


@pytest.mark.parametrize(
    "requests",
    [
        {"cpu": "4"},
        {GPU: "0"},
        {"amd.com/gpu": "1"},
        {"nvidia.com/mig-1g.5gb": "1"},
        {"nvidia.com/gpu.shared": "1"},
        {"gang-extender.io/member": "1"},
        {"nvidia.com/priority": "1"},
    ],
)
def test_other_resources_ask_for_no_cards(requests: dict[str, str]) -> None:
    assert asked(requests) is None


def test_whole_gpus_by_container() -> None:
    request = asked({GPU: "2"}, {"cpu": "1"}, {GPU: "1"}, init=[{GPU: "1"}])
    whole: dict[str, Any] = {"core_milli": 1000, "memory_milli": 1000}
    assert request == CardRequest(
        CardDialect.WHOLE,
        (CardNeed(1, **whole, container=0), CardNeed(2, **whole, container=1), CardNeed(1, **whole, container=3)),
        containers=4,
    )


KUBESHARE_FORMS: list[tuple[dict[str, str], CardNeed, int]] = [
    # request, limit, memory in bytes: KubeShare's own example
    (
        {"gpu_request": "0.5", "gpu_limit": "1.0", "gpu_mem": "3189243904"},
        CardNeed(core_milli=500, memory_bytes=3189243904),
        1000,
    ),
    # no word of memory: as large a share as of the cores
    ({"gpu_request": "0.25", "gpu_limit": "0.5"}, CardNeed(core_milli=250, memory_milli=250), 500),
    # only what is free: no core is charged
    ({"gpu_limit": "0.5", "gpu_mem": "1073741824"}, CardNeed(memory_bytes=GIB), 500),
    ({"gpu_request": "0", "gpu_limit": "1", "gpu_mem": "1Gi"}, CardNeed(memory_bytes=GIB), 1000),
    # rounded up, exactly
    ({"gpu_request": ".3333", "gpu_limit": "1"}, CardNeed(core_milli=334, memory_milli=334), 1000),
    ({"gpu_request": "0.1", "gpu_limit": "0.3"}, CardNeed(core_milli=100, memory_milli=100), 300),
    # whole ones, with all their memory
    ({"gpu_request": "1.0", "gpu_limit": "1.0"}, ONE_WHOLE, 1000),
    ({"gpu_request": "2.0", "gpu_limit": "2", "gpu_mem": "5"}, CardNeed(2, 1000, memory_milli=1000), 1000),
]


@pytest.mark.parametrize(("texts", "need", "limit_milli"), KUBESHARE_FORMS)
def test_kubeshare_in_annotations_and_in_labels(texts: dict[str, str], need: CardNeed, limit_milli: int) -> None:
    first = asked(annotations={f"kubeshare/{key}": text for key, text in texts.items()})
    second = asked(labels={f"sharedgpu/{key}": text for key, text in texts.items()})
    assert first == CardRequest(CardDialect.KUBESHARE_1, (need,), limit_milli=limit_milli)
    assert second == CardRequest(CardDialect.KUBESHARE_2, (need,), limit_milli=limit_milli)


def test_kubeshare_may_ask_for_nothing() -> None:
    assert asked(labels={"sharedgpu/gpu_request": "0", "sharedgpu/gpu_limit": "0.0"}) is None


def test_a_gpuid_is_a_wish_until_the_pod_is_bound() -> None:
    annotations = {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1", "kubeshare/GPUID": "GPU-7"}
    waiting, bound = asked(annotations=annotations), asked(annotations=annotations, node="n1")
    assert isinstance(waiting, CardRequest)
    assert isinstance(bound, CardRequest)
    assert (waiting.terms, bound.terms) == (CardTerms(uuids=("GPU-7",)), CardTerms())


def test_a_gpu_model() -> None:
    labels = {"sharedgpu/gpu_request": "1", "sharedgpu/gpu_limit": "1", "sharedgpu/gpu_model": "NVIDIA-L4"}
    request = asked(labels=labels)
    assert isinstance(request, CardRequest)
    assert request.terms == CardTerms(exact_model="NVIDIA-L4")


K = "koordinator.sh"


@pytest.mark.parametrize(
    ("requests", "need"),
    [
        ({f"{K}/gpu": "50"}, CardNeed(1, 500, memory_milli=500)),
        ({f"{K}/gpu": "100"}, ONE_WHOLE),
        ({f"{K}/gpu": "200"}, CardNeed(2, 1000, memory_milli=1000)),
        ({f"{K}/gpu-memory": "8Gi"}, CardNeed(memory_bytes=8 * GIB)),
        ({f"{K}/gpu-memory-ratio": "60"}, CardNeed(memory_milli=600)),
        ({f"{K}/gpu-core": "30", f"{K}/gpu-memory": "8Gi"}, CardNeed(core_milli=300, memory_bytes=8 * GIB)),
        ({f"{K}/gpu-core": "30", f"{K}/gpu-memory-ratio": "60"}, CardNeed(core_milli=300, memory_milli=600)),
        ({f"{K}/gpu-core": "200", f"{K}/gpu-memory-ratio": "200"}, CardNeed(2, 1000, memory_milli=1000)),
        ({f"{K}/gpu.shared": "2", f"{K}/gpu-memory": "16Gi"}, CardNeed(2, memory_bytes=8 * GIB)),
        ({f"{K}/gpu.shared": "2", f"{K}/gpu-memory-ratio": "100"}, CardNeed(2, memory_milli=500)),
        (
            {f"{K}/gpu.shared": "2", f"{K}/gpu-core": "60", f"{K}/gpu-memory-ratio": "100"},
            CardNeed(2, 300, memory_milli=500),
        ),
        # what Koordinator's webhook leaves on a pod that asked for whole GPUs
        ({GPU: "1", f"{K}/gpu-core": "100", f"{K}/gpu-memory-ratio": "100"}, ONE_WHOLE),
        ({GPU: "2", f"{K}/gpu-core": "200", f"{K}/gpu-memory-ratio": "200"}, CardNeed(2, 1000, memory_milli=1000)),
    ],
)
def test_koordinator(requests: dict[str, str], need: CardNeed) -> None:
    assert asked(requests) == CardRequest(CardDialect.KOORDINATOR, (need,))


def test_koordinator_adds_up_the_containers() -> None:
    half = {f"{K}/gpu-core": "20", f"{K}/gpu-memory-ratio": "25"}
    request = asked({"cpu": "1"}, half, half)
    assert request == CardRequest(
        CardDialect.KOORDINATOR, (CardNeed(core_milli=400, memory_milli=500, container=1),), containers=3
    )


@pytest.mark.parametrize(
    ("requests", "need"),
    [
        ({GPU: "1", "nvidia.com/gpumem": "3000"}, CardNeed(memory_bytes=3000 * MIB, memory_unit=MIB)),
        ({GPU: "2", "nvidia.com/gpumem-percentage": "50"}, CardNeed(2, memory_milli=500, memory_unit=MIB)),
        ({GPU: "1", "nvidia.com/gpucores": "30"}, CardNeed(1, 300, memory_milli=1000, memory_unit=MIB)),
        (
            {GPU: "1", "nvidia.com/gpumem": "10", "nvidia.com/gpumem-percentage": "50", "nvidia.com/gpucores": "100"},
            CardNeed(1, 1000, memory_bytes=10 * MIB, memory_unit=MIB),
        ),
        ({GPU: "1", "nvidia.com/priority": "1"}, ONE_WHOLE),
    ],
)
def test_hami(requests: dict[str, str], need: CardNeed) -> None:
    assert needs(requests) == (need,)


def test_hami_by_container() -> None:
    assert needs({GPU: "1", "nvidia.com/gpumem": "1"}, {"cpu": "1"}, {GPU: "2"}) == (
        CardNeed(memory_bytes=MIB, memory_unit=MIB),
        CardNeed(2, memory_milli=1000, memory_unit=MIB, container=2),
    )


@pytest.mark.parametrize(
    ("requests", "need"),
    [
        ({"vgpu-number": "1"}, CardNeed(memory_milli=1000, memory_unit=MIB)),
        (
            {"vgpu-number": "2", "vgpu-memory": "3000", "vgpu-cores": "50"},
            CardNeed(2, 500, 3000 * MIB, memory_unit=MIB),
        ),
        ({"vgpu-number": "1", "vgpu-memory-percentage": "25"}, CardNeed(memory_milli=250, memory_unit=MIB)),
    ],
)
def test_volcano_vgpu(requests: dict[str, str], need: CardNeed) -> None:
    request = asked({f"volcano.sh/{name}": amount for name, amount in requests.items()})
    assert request == CardRequest(CardDialect.VOLCANO_VGPU, (need,))


@pytest.mark.parametrize(
    ("requests", "dialect", "need"),
    [
        ({"volcano.sh/gpu-memory": "1024"}, CardDialect.VOLCANO_GPU, CardNeed(memory_bytes=GIB)),
        ({"volcano.sh/gpu-number": "2"}, CardDialect.VOLCANO_GPU, CardNeed(2, 1000, memory_milli=1000)),
        ({"aliyun.com/gpu-mem": "3"}, CardDialect.GPUSHARE, CardNeed(memory_bytes=3 * GIB)),
    ],
)
def test_memory_of_one_card(requests: dict[str, str], dialect: CardDialect, need: CardNeed) -> None:
    assert asked(requests) == CardRequest(dialect, (need,))


@pytest.mark.parametrize(
    ("annotations", "need"),
    [
        ({"gpu-fraction": "0.5"}, CardNeed(core_milli=500, memory_milli=500)),
        ({"gpu-fraction": "0.3", "gpu-fraction-num-devices": "2"}, CardNeed(2, 300, memory_milli=300)),
        ({"gpu-memory": "2000"}, CardNeed(memory_bytes=2000 * MIB)),
        ({"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}, CardNeed(2, memory_bytes=2000 * MIB)),
    ],
)
def test_kai(annotations: dict[str, str], need: CardNeed) -> None:
    assert asked(annotations=annotations) == CardRequest(CardDialect.KAI, (need,))


def test_kai_gives_its_share_to_the_first_container_or_to_the_one_that_is_named() -> None:
    containers = {"cpu": "1"}, {"cpu": "1"}
    (first,) = needs(*containers, init=[{}], annotations={"gpu-fraction": "0.5"})
    named = {"gpu-fraction": "0.5", "gpu-fraction-container-name": "c1"}
    (second,) = needs(*containers, init=[{}], annotations=named)
    assert (first.container, second.container) == (1, 2)


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        (
            {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "0.3"},
            "kubeshare/gpu_limit is '0.3': it must be at least kubeshare/gpu_request, which is '0.5'",
        ),
        (
            {"kubeshare/gpu_request": "1.5", "kubeshare/gpu_limit": "1.5"},
            "kubeshare/gpu_limit is '1.5': it must be at most 1, or a whole number equal to kubeshare/gpu_request",
        ),
        (
            {"kubeshare/gpu_request": "1", "kubeshare/gpu_limit": "2"},
            "kubeshare/gpu_limit is '2': it must be at most 1, or a whole number equal to kubeshare/gpu_request",
        ),
        (
            {"kubeshare/gpu_request": "-0.5", "kubeshare/gpu_limit": "1"},
            "kubeshare/gpu_request is '-0.5': it must be a number such as 0.5",
        ),
        (
            {"kubeshare/gpu_request": "0.5"},
            "kubeshare/gpu_limit is missing: it must be there, and at least kubeshare/gpu_request",
        ),
        (
            {"kubeshare/gpu_limit": "1", "kubeshare/gpu_mem": "much"},
            "kubeshare/gpu_mem is 'much': it must be a number of bytes such as 3189243904 or 3Gi",
        ),
        ({"gpu-fraction": "1.2"}, "gpu-fraction is '1.2': it must be above 0 and at most 1"),
        ({"gpu-fraction": "0"}, "gpu-fraction is '0': it must be above 0 and at most 1"),
        ({"gpu-memory": "-1"}, "gpu-memory is '-1': it must be a whole number of 1 or more"),
        ({"gpu-fraction": "0.5", "gpu-memory": "1"}, "of gpu-fraction and gpu-memory one must be there, and not both"),
        ({"gpu-fraction-num-devices": "2"}, "of gpu-fraction and gpu-memory one must be there, and not both"),
        (
            {"gpu-fraction": "0.2", "gpu-fraction-num-devices": "1.2"},
            "gpu-fraction-num-devices is '1.2': it must be a whole number of 1 or more",
        ),
        (
            {"gpu-fraction": "0.2", "gpu-fraction-container-name": "c9"},
            "gpu-fraction-container-name is 'c9': it must be the name of one of the pod's containers",
        ),
    ],
)
def test_annotations_that_make_no_sense(annotations: dict[str, str], told: str) -> None:
    assert problem(annotations=annotations) == told


NOT_TOGETHER = (
    "must not stand so: Koordinator takes koordinator.sh/gpu alone, or koordinator.sh/gpu-memory or"
    " koordinator.sh/gpu-memory-ratio, with or without koordinator.sh/gpu-core and koordinator.sh/gpu.shared"
)


@pytest.mark.parametrize(
    ("requests", "told"),
    [
        ({f"{K}/gpu-core": "50"}, f"{K}/gpu-core {NOT_TOGETHER}"),
        ({f"{K}/gpu": "50", f"{K}/gpu-memory": "1"}, f"{K}/gpu and {K}/gpu-memory {NOT_TOGETHER}"),
        ({f"{K}/gpu": "150"}, f"{K}/gpu is '150': it must be at most 100, in percent of a GPU, or a multiple of 100"),
        (
            {f"{K}/gpu-core": "200", f"{K}/gpu-memory": "1Gi"},
            f"{K}/gpu-core is '200': it must be a whole number of percent, at most 100, of one GPU",
        ),
        (
            {f"{K}/gpu.shared": "2", f"{K}/gpu-memory-ratio": "25"},
            f"{K}/gpu-memory-ratio is '25': it must be a whole number of percent, at most 100, of each of the 2 GPUs",
        ),
        (
            {GPU: "2", f"{K}/gpu-core": "100", f"{K}/gpu-memory-ratio": "100"},
            f"{GPU} is '2': it must be as many GPUs as {K}/gpu-core and {K}/gpu-memory-ratio ask for in whole",
        ),
        (
            {"nvidia.com/gpumem": "1"},
            f"nvidia.com/gpumem is there without {GPU}: the container must say of how many GPUs",
        ),
        (
            {GPU: "1", "nvidia.com/gpucores": "101"},
            "nvidia.com/gpucores is '101': it must be 100 or less, in percent of a GPU",
        ),
        (
            {"volcano.sh/vgpu-memory": "1"},
            "volcano.sh/vgpu-memory is there without volcano.sh/vgpu-number: the container must say of how many GPUs",
        ),
        (
            {"volcano.sh/gpu-memory": "1", "volcano.sh/gpu-number": "1"},
            "volcano.sh/gpu-memory and volcano.sh/gpu-number are both there: one of them must go",
        ),
        (
            {"nvidia.com/gpumem": "1", GPU: "1", f"{K}/gpu": "50"},
            f"nvidia.com/gpumem and {K}/gpu are both there: a pod must ask for GPUs in one way only",
        ),
        (
            {"aliyun.com/gpu-mem": "1", GPU: "1"},
            f"{GPU} and aliyun.com/gpu-mem are both there: a pod must ask for GPUs in one way only",
        ),
    ],
)
def test_resources_that_make_no_sense(requests: dict[str, str], told: str) -> None:
    assert problem(requests) == told


def test_two_ways_at_once() -> None:
    shared = {"gpu_request": "0.5", "gpu_limit": "1"}
    annotations = {f"kubeshare/{key}": text for key, text in shared.items()}
    labels = {f"sharedgpu/{key}": text for key, text in shared.items()}
    told = "are both there: a pod must ask for GPUs in one way only"
    assert problem({GPU: "1"}, annotations=annotations) == f"{GPU} and kubeshare/gpu_limit {told}"
    assert problem(annotations=annotations, labels=labels) == f"kubeshare/gpu_limit and sharedgpu/gpu_limit {told}"
    assert isinstance(asked({GPU: "0"}, annotations=annotations), CardRequest)


def test_what_only_qualifies_a_request_is_no_resource_of_a_node() -> None:
    requests = {GPU: "1", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30", "nvidia.com/priority": "1"}
    shape = pod_of(pod(requests)).shape
    assert shape.requests == ((GPU, 1), ("pods", 1))
    assert isinstance(shape.cards, CardRequest)


def test_equal_requests_are_kept_once() -> None:
    one, other = (pod_of(pod({GPU: "1", "nvidia.com/gpumem": "3000"})).shape for _ in range(2))
    assert one is other


TEXTS = st.text() | st.text("0123456789.+-eEiGM ", max_size=80)


@given(
    annotations=st.dictionaries(st.sampled_from(sorted(kubeshare.KEYS_1 | kai.KEYS)), TEXTS),
    labels=st.dictionaries(st.sampled_from(sorted(kubeshare.KEYS_2)), TEXTS),
)
def test_no_text_whatever_raises(annotations: dict[str, str], labels: dict[str, str]) -> None:
    request = asked(annotations=annotations, labels=labels)
    assert request is None or isinstance(request, CardRequest | BadCardRequest)
    if isinstance(request, CardRequest):
        assert all(need.count >= 1 and 0 <= need.core_milli <= 1000 for need in request.needs)
