"""Are the kinds that declare gangs there in a version that we read, and the policies in force?"""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.doctor.facts import Facts, PolicyParts
from extender.doctor.finding import Finding, Unseen, unknown
from extender.doctor.permissions import LEASE, NAMESPACE, Part, Right
from extender.model.pod import HOLD_GATE
from extender.watch.sources import JOB_VERSIONS, POD_GROUP_PATHS
from extender.wire.job_owner import BATCH_JOB, GROUP_OF

HOLD: Final = "gang-extender-hold"
GPU_ENV: Final = "gang-extender-gpu-env"
POLICIES: Final = {HOLD: "manifests/hold", GPU_ENV: "manifests/gpu-env"}
"""By the name of the policy and of its binding: what installs them."""

PATCH_PODS: Final = Right("", "pods", "patch")
POLICIES_SINCE: Final = (1, 36, 0)

READ_VERSIONS: Final[Mapping[str, str]] = {
    **{f"podgroups.{api}": path.rpartition("/")[2] for api, path in POD_GROUP_PATHS.items()},
    **{f"{kind.lower()}s.{GROUP_OF[kind]}": version for kind, version in JOB_VERSIONS.items() if kind != BATCH_JOB},
    "devices.scheduling.koordinator.sh": "v1alpha1",
}
"""By `resource.group`: the version in which we read it."""


def check_kinds(facts: Facts, wanted: Mapping[str, int]) -> Iterator[Finding]:
    """Say of each kind whether it is served as we read it; `wanted` counts the pods that need it, by kind."""
    served = facts.served
    for kind, version in READ_VERSIONS.items():
        name, pods = f"API {kind}", wanted.get(kind, 0)
        if isinstance(served, Unseen):
            yield unknown(name, served)
        elif version in served.get(kind, ()):
            yield Finding(name, "ok", where=version)
        elif kind in served:
            what = f"it is served as {', '.join(served[kind])} and not as {version}, so the extender does not see it"
            yield Finding(name, "error", what, mend=f"install the release of its CRD that has {version}")
        elif pods:
            what = (
                f"it is not installed, and {pods} pod{'s' * (pods > 1)} that wait name one: nobody declares their gangs"
            )
            yield Finding(name, "error", what, mend=_install(kind))
        else:
            yield Finding(name, "ok", where="not installed, and nobody asks for it")


def _install(kind: str) -> str:
    if kind == "podgroups.scheduling.k8s.io":
        return "kube-apiserver --feature-gates=GenericWorkload=true --runtime-config=scheduling.k8s.io/v1alpha2=true"
    return f"install the CRD {kind}, or write min-available on the pods: see the README, whatever your jobs say already"


def parts_in_use(facts: Facts) -> set[Part]:
    """Return what this cluster needs the rights for."""
    fleet = facts.fleet
    hold = facts.policies.get(HOLD)
    held = not isinstance(fleet, Unseen) and any(
        gate.name == HOLD_GATE for pod in fleet.pods for gate in pod.spec.scheduling_gates or ()
    )
    parts: set[Part] = {"base"}
    if held or (isinstance(hold, PolicyParts) and (hold.policy or hold.bound)):
        parts.add("hold")
    if not isinstance(fleet, Unseen) and fleet.hami_nodes:
        parts.add("hami")
    if facts.settings.gangs.from_jobs:
        parts.add("jobs")
    election = facts.settings.leader_election
    if (election.mode, election.resource_namespace, election.resource_name) == ("sidecar", NAMESPACE, LEASE):
        parts.add("election")  # in any other case, its administrator has named the lease in a role as well
    return parts


def check_policies(facts: Facts, shares: int) -> Iterator[Finding]:
    """Say of each policy whether it is whole; `shares` counts the pods whose containers need gpu-env's variable."""
    for name, folder in POLICIES.items():
        check, parts = f"policy {name}", facts.policies.get(name, Unseen("not asked"))
        if isinstance(parts, Unseen):
            yield unknown(check, parts)
        else:
            yield from _check_policy(check, parts, folder, facts)
    gpu_env = facts.policies.get(GPU_ENV)
    if shares and isinstance(gpu_env, PolicyParts) and not gpu_env.policy:
        what = f"{shares} pod{'s' * (shares > 1)} ask for shares of GPUs that no device plugin hands out, and lack the"
        what += " variable NVIDIA_VISIBLE_DEVICES: their containers may see every GPU of the node"
        mend = f"kubectl apply -k {POLICIES[GPU_ENV]} (before the pods are created), or write it into the template"
        yield Finding("containers are told their GPUs", "error", what, mend=mend)


def _check_policy(check: str, parts: PolicyParts, folder: str, facts: Facts) -> Iterator[Finding]:
    findings = list(_faults(check, parts, folder, facts))
    where = "" if parts.policy or parts.bound else "not installed"
    yield from findings or [Finding(check, "ok", where=where)]


def _faults(check: str, parts: PolicyParts, folder: str, facts: Facts) -> Iterator[Finding]:
    apply = f"kubectl apply -f {folder}/policy.yaml"
    if parts.policy and not parts.bound:
        yield Finding(check, "error", "no binding puts it into force: new pods pass by it", mend=apply)
    if parts.bound and not parts.policy:
        yield Finding(check, "error", "its binding is there, the policy is not: new pods pass by it", mend=apply)
    for name in facts.settings.scheduler_names if parts.policy else ():
        if f'"{name}"' not in parts.text and f"'{name}'" not in parts.text:
            what = f"its conditions do not name {name}, one of the extender's schedulerNames: those pods pass by it"
            mend = f'matchConditions: names-our-scheduler: object.spec.schedulerName == "{name}"'
            yield Finding(check, "error", what, mend=mend)
    if (parts.policy or parts.bound) and isinstance(facts.version, tuple) and facts.version < POLICIES_SINCE:
        what = (
            f"MutatingAdmissionPolicy is not in use by itself before Kubernetes {POLICIES_SINCE[0]}.{POLICIES_SINCE[1]}"
        )
        yield Finding(check, "warning", what, mend="write the gate, or the variable, into the pods' templates")
