"""Are kinds, policies and what the pods need of them found to be missing?"""

from typing import Any

import pytest

from extender.doctor.facts import Fleet, PolicyParts
from extender.doctor.finding import Unseen
from extender.doctor.installation import GPU_ENV, HOLD, PATCH_PODS, READ_VERSIONS
from extender.doctor.permissions import EVERY_RIGHT, Right
from extender.model.pod import HOLD_GATE
from tests.doctor.installations import NAMES_US, amiss, facts, pod, process, settings
from tests.manifests.files import GPU_ENV as GPU_ENV_FOLDER
from tests.manifests.files import HOLD as HOLD_FOLDER
from tests.manifests.files import manifest

NONE = PolicyParts(policy=False, bound=False)
WHOLE = PolicyParts(policy=True, bound=True, text=NAMES_US)
DENIED = {**dict.fromkeys(EVERY_RIGHT, True), PATCH_PODS: False}
VOLCANO = "podgroups.scheduling.volcano.sh"


def in_volcanos_group(**fields: Any) -> Any:
    return pod(annotations={"scheduling.volcano.sh/group-name": "g"}, **fields)


def test_the_policies_have_the_names_that_are_asked_for() -> None:
    for name, folder in ((HOLD, HOLD_FOLDER), (GPU_ENV, GPU_ENV_FOLDER)):
        for kind in ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"):
            assert manifest(kind, name, folder)


def test_a_cluster_without_any_crd_is_all_right_until_a_pod_needs_one() -> None:
    bare = {"podgroups.scheduling.k8s.io": ("v1alpha2",)}
    assert amiss(facts(served=bare)) == []
    (found,) = amiss(facts(served=bare, fleet=Fleet((in_volcanos_group(),))))
    assert (found.check, found.level) == (f"API {VOLCANO}", "error")
    assert "1 pod that wait" in found.what
    assert VOLCANO in found.mend


def test_a_crd_in_a_version_that_is_not_read() -> None:
    served = {kind: (version,) for kind, version in READ_VERSIONS.items()} | {VOLCANO: ("v1", "v2")}
    (found,) = amiss(facts(served=served))
    assert "served as v1, v2 and not as v1beta1" in found.what
    assert "v1beta1" in found.mend


def test_a_running_pod_needs_no_crd_any_more() -> None:
    running = in_volcanos_group(spec={"nodeName": "n"})
    assert amiss(facts(served={}, fleet=Fleet((running,)))) == []


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (PolicyParts(policy=True, bound=False, text=NAMES_US), "no binding puts it into force"),
        (PolicyParts(policy=False, bound=True), "the policy is not"),
        (
            PolicyParts(policy=True, bound=True, text='object.spec.schedulerName == "other"'),
            "do not name gang-scheduler",
        ),
    ],
)
def test_half_a_policy(parts: PolicyParts, said: str) -> None:
    (found,) = amiss(facts(policies={HOLD: parts, GPU_ENV: NONE}))
    assert (found.check, found.level) == (f"policy {HOLD}", "error")
    assert said in found.what
    assert found.mend


def test_a_policy_names_each_of_our_schedulers() -> None:
    found = amiss(facts(settings=settings(schedulerNames=["gang-scheduler", "two"])))
    assert [each.what for each in found if each.check == f"policy {HOLD}"] == [
        "its conditions do not name two, one of the extender's schedulerNames: those pods pass by it"
    ]


def test_filter_mode_needs_neither_policy_nor_the_right_to_patch_pods() -> None:
    assert amiss(facts(policies={HOLD: NONE, GPU_ENV: NONE}, rights=DENIED)) == []


def test_held_pods_need_the_right_to_patch_them_even_without_the_policy() -> None:
    held = pod(spec={"schedulingGates": [{"name": HOLD_GATE}]})
    (found,) = amiss(facts(policies={HOLD: NONE, GPU_ENV: NONE}, rights=DENIED, fleet=Fleet((held,))))
    assert "held pods never lose their gate" in found.what
    assert found.mend == "kubectl apply -f manifests/hold/rbac.yaml"


def test_policies_on_a_kubernetes_that_does_not_run_them() -> None:
    (found,) = amiss(facts(version=(1, 35, 0), processes=(process(version=(1, 35, 0)),)))
    assert (found.check, found.level) == (f"policy {HOLD}", "warning")


def test_a_share_of_a_gpu_of_which_nobody_tells_the_container() -> None:
    share = {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1.0"}
    sharing = pod(annotations=share, spec={"containers": [{"name": "main"}]})
    (found,) = amiss(facts(fleet=Fleet((sharing,))))
    assert "may see every GPU" in found.what
    assert "kubectl apply -k manifests/gpu-env" in found.mend
    assert amiss(facts(fleet=Fleet((sharing,), told=frozenset({sharing.metadata.uid})))) == []
    assert amiss(facts(fleet=Fleet((sharing,)), policies={HOLD: WHOLE, GPU_ENV: WHOLE})) == []


def test_hamis_plugin_without_the_right_to_lock_its_nodes() -> None:
    denied = {**dict.fromkeys(EVERY_RIGHT, True), Right("", "nodes", "patch"): False}
    assert amiss(facts(rights=denied)) == []
    (found,) = amiss(facts(rights=denied, fleet=Fleet(hami_nodes=("gpu-0",))))
    assert found.mend == "kubectl apply -f manifests/hami/rbac.yaml"


def test_what_could_not_be_read_is_unknown() -> None:
    unseen = Unseen("we may not read it")
    found = amiss(facts(served=unseen, policies={HOLD: unseen, GPU_ENV: unseen}, fleet=unseen, extenders=unseen))
    assert {each.level for each in found} == {"unknown"}
    assert {f"policy {HOLD}", f"policy {GPU_ENV}", f"API {VOLCANO}", "pods", "the extender itself"} <= {
        each.check for each in found
    }
