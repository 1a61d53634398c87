"""What a job's template says of pods that do not exist yet."""

from typing import Any

import orjson
import pytest
from msgspec import Raw

from extender.model.device import CardRequest
from extender.model.resources import CPU, PODS
from extender.wire.kube import PODS as POD_KIND
from extender.wire.pod_template import names_gang, sample_of
from tests.builders import GPU, pod_json


def template(container: dict[str, Any], **spec: Any) -> Raw:
    content = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", **container}], **spec}}
    return Raw(orjson.dumps(content))


def test_limits_count_as_requests_and_quantities_may_be_numbers() -> None:
    sample = sample_of("ns", template({"resources": {"limits": {GPU: 1, "cpu": "2"}, "requests": {"cpu": "500m"}}}))
    assert sample is not None
    assert dict(sample.shape.requests) == {CPU: 500, GPU: 1, PODS: 1}
    assert (sample.tags.namespace, sample.tags.labels) == ("ns", {"app": "x"})


def test_it_is_equal_to_what_the_pod_will_be() -> None:
    resources = {"requests": {"cpu": "1", GPU: "1"}, "limits": {GPU: "1"}}
    selector = {"pool": "gpu"}
    defaults = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    ]
    spec = {"containers": [{"name": "main", "resources": resources}], "nodeSelector": selector, "tolerations": defaults}
    pod = POD_KIND.read(Raw(orjson.dumps(pod_json(spec=spec)))).object
    sample = sample_of("default", template({"resources": resources}, nodeSelector=selector))
    assert sample is not None
    assert sample.shape == pod.shape


def test_what_the_template_asks_of_gpus_is_known_before_the_pod_is() -> None:
    annotations = {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1"}
    content = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "main"}]}}
    sample = sample_of("ns", Raw(orjson.dumps(content)))
    assert sample is not None
    assert isinstance(sample.shape.cards, CardRequest)
    assert sample.shape.cards.needs[0].core_milli == 500


def test_a_template_that_only_its_device_managers_webhook_completes_says_nothing() -> None:
    assert sample_of("ns", template({"resources": {"limits": {"nvidia.com/gpumem": 3000}}})) is None


@pytest.mark.parametrize(
    "content",
    [None, [], 7, {}, {"spec": None}, {"spec": {"containers": 3}}, {"spec": {"containers": [7]}},
     {"spec": {"containers": [{"resources": {"limits": {"cpu": "a lot"}}}]}},
     {"spec": {"containers": [{"resources": []}], "tolerations": 3}}, {"metadata": 3, "spec": {}}],
)  # fmt: skip
def test_a_template_that_makes_no_sense_says_nothing(content: object) -> None:
    assert sample_of("ns", Raw(orjson.dumps(content))) is None


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"metadata": {"annotations": {"gang.scheduling.koordinator.sh/name": "g", "n": 4}}}, True),
        ({"metadata": {"annotations": {"gang.scheduling.koordinator.sh/name": "a b"}}}, True),
        ({"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, "spec": {}}, True),
        ({"spec": {"schedulingGroup": {"podGroupName": "g"}}}, True),
        ({"metadata": {"labels": {"elasticjob.dlrover/name": "g"}}}, False),
        ({"metadata": {"annotations": None, "labels": "x"}}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_a_template_names_a_gang_in_any_dialect(content: object, *, named: bool) -> None:
    assert names_gang("ns", Raw(orjson.dumps(content))) == named
