"""Does the policy name the annotations that the extender reads and writes, for the pods that it chooses GPUs for?"""

import re

from extender.config import GangExtenderConfiguration
from extender.wire.cards import kai, kubeshare
from extender.wire.cards.own_handshake import VISIBLE_DEVICES
from tests.manifests.files import GPU_ENV, Object, manifest


def policy() -> Object:
    spec: Object = manifest("MutatingAdmissionPolicy", "gang-extender-gpu-env", GPU_ENV)["spec"]
    return spec


def condition(name: str) -> str:
    (expression,) = (each["expression"] for each in policy()["matchConditions"] if each["name"] == name)
    return str(expression)


def test_it_is_for_pods_that_ask_in_terms_that_no_device_plugin_serves() -> None:
    annotations, labels = (
        re.findall(r'"([^"]+)"', part) for part in condition("asks-for-a-share-of-a-gpu").split("||")
    )
    assert set(annotations) == kubeshare.KEYS_1 | kai.KEYS
    assert set(labels) == kubeshare.KEYS_2


def test_it_is_for_pods_of_the_scheduler_that_the_extender_serves() -> None:
    settings = GangExtenderConfiguration.model_validate(
        {"apiVersion": "gang-extender.io/v1alpha1", "kind": "GangExtenderConfiguration"}
    )
    (name,) = settings.scheduler_names
    assert condition("names-our-scheduler") == f'object.spec.schedulerName == "{name}"'


def test_the_variable_is_what_the_extender_writes_on_the_pod() -> None:
    (mutation,) = policy()["mutations"]
    expression = mutation["applyConfiguration"]["expression"]
    assert set(re.findall(r"annotations\['([^']+)'\]", expression)) == {VISIBLE_DEVICES}


def test_no_json_patch_is_used() -> None:
    """With a list of objects as its value it makes kube-apiserver 1.36.3 panic."""
    assert [mutation["patchType"] for mutation in policy()["mutations"]] == ["ApplyConfiguration"]


def test_a_pod_that_may_see_all_gpus_is_not_created() -> None:
    assert policy()["failurePolicy"] == "Fail"


def test_only_pods_that_are_being_created_are_looked_at() -> None:
    (rule,) = policy()["matchConstraints"]["resourceRules"]
    assert rule == {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def test_the_policy_is_in_force() -> None:
    binding = manifest("MutatingAdmissionPolicyBinding", "gang-extender-gpu-env", GPU_ENV)
    assert binding["spec"] == {"policyName": "gang-extender-gpu-env"}
