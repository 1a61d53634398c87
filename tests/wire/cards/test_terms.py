"""Which cards a pod says that it wants, beside how much of them."""

import pytest
from msgspec import convert

from extender.model.device import CardRequest, CardTerms
from extender.wire import core_v1
from extender.wire.cards.requests import card_request
from tests.builders import GPU, pod_json


def asked(requests: dict[str, str], annotations: dict[str, str]) -> CardRequest:
    spec = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    found = card_request(convert(pod_json(metadata={"annotations": annotations}, spec=spec), core_v1.Pod))
    assert isinstance(found, CardRequest)
    return found


@pytest.mark.parametrize(
    ("annotations", "terms"),
    [
        ({"nvidia.com/use-gputype": "A100, V100,"}, CardTerms(models=("A100", "V100"))),
        ({"nvidia.com/nouse-gputype": "1080"}, CardTerms(not_models=("1080",))),
        ({"nvidia.com/use-gpuuuid": "GPU-1,GPU-2"}, CardTerms(uuids=("GPU-1", "GPU-2"))),
        ({"nvidia.com/nouse-gpuuuid": "GPU-1"}, CardTerms(not_uuids=("GPU-1",))),
        ({"nvidia.com/numa-bind": "true"}, CardTerms(one_numa=True)),
        ({"nvidia.com/numa-bind": "yes"}, CardTerms()),
        ({"hami.io/gpu-scheduler-policy": "spread"}, CardTerms(spread=True)),
        ({"hami.io/gpu-scheduler-policy": "binpack"}, CardTerms(spread=False)),
        ({"hami.io/gpu-scheduler-policy": "topology-aware"}, CardTerms()),
        ({"nvidia.com/vgpu-mode": "mig"}, CardTerms(mode="mig")),
        ({"hami.io/gpu-scheduler-policy": "numa, spread"}, CardTerms(spread=True)),
    ],
)
@pytest.mark.parametrize("requests", [{GPU: "1"}, {GPU: "1", "nvidia.com/gpucores": "10"}])
def test_which_cards_will_do(requests: dict[str, str], annotations: dict[str, str], terms: CardTerms) -> None:
    assert asked(requests, annotations).terms == terms


@pytest.mark.parametrize(("policy", "idle"), [("mutex", True), ("spread, mutex", True), ("binpack", False)])
def test_hamis_mutex_asks_for_cards_that_nobody_uses(policy: str, *, idle: bool) -> None:
    requests = {GPU: "1", "nvidia.com/gpumem": "1024"}
    (need,) = asked(requests, {"hami.io/gpu-scheduler-policy": policy}).needs
    assert need.idle == idle


def test_which_cards_will_do_in_volcanos_words() -> None:
    annotations = {
        "volcano.sh/vgpu-use-gpuuuid": "GPU-1",
        "volcano.sh/vgpu-nouse-gpuuuid": "GPU-2",
        "nvidia.com/use-gputype": "A100",
        "nvidia.com/nouse-gputype": "V100",
        "volcano.sh/vgpu-mode": "hami-core",
    }
    request = asked({"volcano.sh/vgpu-number": "1"}, annotations)
    assert request.terms == CardTerms(("A100",), ("V100",), ("GPU-1",), ("GPU-2",), mode="hami-core")
