"""Does the policy of hold mode give the gate that the extender takes off, to the pods that it takes it off?"""

import re

from extender.config import GangExtenderConfiguration
from extender.model.pod import HOLD_GATE
from tests.manifests.files import HOLD, Object, manifest


def policy() -> Object:
    spec: Object = manifest("MutatingAdmissionPolicy", "gang-extender-hold", HOLD)["spec"]
    return spec


def test_the_gate_is_the_one_that_the_extender_knows() -> None:
    gates = re.findall(r"[\w.-]+/[\w.-]+", str([policy()["matchConditions"], policy()["mutations"]]))
    assert gates == [HOLD_GATE] * 2


def test_it_is_for_pods_of_the_scheduler_that_the_extender_serves() -> None:
    settings = GangExtenderConfiguration.model_validate(
        {"apiVersion": "gang-extender.io/v1alpha1", "kind": "GangExtenderConfiguration"}
    )
    conditions = {condition["name"]: condition["expression"] for condition in policy()["matchConditions"]}
    (name,) = settings.scheduler_names
    assert conditions["names-our-scheduler"] == f'object.spec.schedulerName == "{name}"'


def test_only_pods_that_are_being_created_are_looked_at() -> None:
    (rule,) = policy()["matchConstraints"]["resourceRules"]
    assert rule == {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def test_no_json_patch_is_used() -> None:
    """With a list of objects as its value it makes kube-apiserver 1.36.3 panic."""
    assert [mutation["patchType"] for mutation in policy()["mutations"]] == ["ApplyConfiguration"]


def test_a_pod_can_be_created_whatever_becomes_of_the_policy() -> None:
    assert policy()["failurePolicy"] == "Ignore"


def test_the_policy_is_in_force() -> None:
    binding = manifest("MutatingAdmissionPolicyBinding", "gang-extender-hold", HOLD)
    assert binding["spec"] == {"policyName": "gang-extender-hold"}
