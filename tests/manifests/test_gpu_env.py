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


def expressions(kind: str) -> list[str]:
    mutations = [each for each in policy()["mutations"] if each["patchType"] == kind]
    key = {"JSONPatch": "jsonPatch", "ApplyConfiguration": "applyConfiguration"}[kind]
    return [each[key]["expression"] for each in mutations]


def test_the_variable_is_what_the_extender_writes_on_the_pod() -> None:
    names = re.findall(r"annotations\['([^']+)'\]", " ".join(expressions("JSONPatch")))
    assert names == [VISIBLE_DEVICES] * 2


def test_no_json_patch_has_a_list() -> None:
    """With a list of objects as its value it makes kube-apiserver 1.36.3 panic."""
    values = re.findall(r"value: (\S)", " ".join(expressions("JSONPatch")))
    assert values == ["O", "O"], "each is an Object"


def test_what_the_first_step_writes_is_what_the_second_one_looks_for() -> None:
    (first,) = expressions("ApplyConfiguration")
    written = set(re.findall(r'value: ("[^"]+")', first))
    assert len(written) == 1
    assert all(step.count(f'orValue("") == {min(written)}') == 1 for step in expressions("JSONPatch"))


def test_a_pod_that_may_see_all_gpus_is_not_created() -> None:
    assert policy()["failurePolicy"] == "Fail"


def test_only_pods_that_are_being_created_are_looked_at() -> None:
    (rule,) = policy()["matchConstraints"]["resourceRules"]
    assert rule == {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def test_the_policy_is_in_force() -> None:
    binding = manifest("MutatingAdmissionPolicyBinding", "gang-extender-gpu-env", GPU_ENV)
    assert binding["spec"] == {"policyName": "gang-extender-gpu-env"}
