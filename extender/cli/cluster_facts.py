"""What does the API server say of rights, kinds, policies, pods and nodes?"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson
from msgspec import MsgspecError
from msgspec.json import Decoder

from extender.cli.asking import NOT_ENDED, Asker, UnseenError
from extender.doctor.facts import Fleet, PolicyParts, Version
from extender.doctor.finding import Unseen
from extender.doctor.permissions import EVERY_RIGHT, Right, Who
from extender.wire import core_v1
from extender.wire.cards.hami_inventory import REGISTER

Object = dict[str, Any]

_AT_ONCE = 8
"""Reviews at a time: fifty in a row would take seconds over a long line, and all at once is no way to ask."""

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1"
_VARIABLE = b'"NVIDIA_VISIBLE_DEVICES"'
_HAMI = REGISTER.encode()
_PODS = Decoder(core_v1.Pod)
_NODES = Decoder(core_v1.Node)


async def ask_version(asker: Asker) -> Version | Unseen:
    """Return which Kubernetes the API server is."""
    answer = await asker.find("/version")
    if answer is None or isinstance(answer, Unseen):
        return answer or Unseen("the API server has no /version")
    numbers = [int("".join(filter(str.isdigit, answer.get(each, "0"))) or 0) for each in ("major", "minor")]
    return numbers[0], numbers[1], 0


async def ask_rights(asker: Asker, identities: Mapping[Who, str]) -> Mapping[Right, bool | Unseen]:
    """Ask whether each right is there: as ourselves if that is whose it is, or on behalf of whoever has it."""
    me = await asker.create(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews", _review("authentication", "SelfSubjectReview")
    )
    we = "" if isinstance(me, Unseen) else me["status"]["userInfo"].get("username")
    turn = asyncio.Semaphore(_AT_ONCE)

    async def ask(right: Right) -> bool | Unseen:
        async with turn:
            identity = identities[right.who]
            return await (_may_we(asker, right) if we == identity else _may(asker, right, identity))

    answers = await asyncio.gather(*(ask(right) for right in EVERY_RIGHT))
    return dict(zip(EVERY_RIGHT, answers, strict=True))


def _review(group: str, kind: str, spec: Object | None = None) -> Object:
    return {"apiVersion": f"{group}.k8s.io/v1", "kind": kind} | ({} if spec is None else {"spec": spec})


async def _may_we(asker: Asker, right: Right) -> bool | Unseen:
    spec = {"resourceAttributes": _attributes(right)}
    return _allowed(
        await asker.create(
            f"{_REVIEWS}/selfsubjectaccessreviews", _review("authorization", "SelfSubjectAccessReview", spec)
        )
    )


async def _may(asker: Asker, right: Right, identity: str) -> bool | Unseen:
    *_, namespace, _name = identity.split(":")
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    spec = {"resourceAttributes": _attributes(right), "user": identity, "groups": groups}
    return _allowed(
        await asker.create(f"{_REVIEWS}/subjectaccessreviews", _review("authorization", "SubjectAccessReview", spec))
    )


def _attributes(right: Right) -> dict[str, str]:
    resource, _, sub = right.resource.partition("/")
    where = {"namespace": right.namespace, "name": right.name}
    return {"group": right.group, "resource": resource, "subresource": sub, "verb": right.verb, **where}


def _allowed(answer: Object | Unseen) -> bool | Unseen:
    return answer if isinstance(answer, Unseen) else bool(answer["status"]["allowed"])


async def ask_served(asker: Asker, kinds: Iterable[str]) -> Mapping[str, tuple[str, ...]] | Unseen:
    """Return in which versions each kind (`resource.group`) is served, if it is."""
    groups = await asker.find("/apis")
    if groups is None or isinstance(groups, Unseen):
        return groups or Unseen("the API server tells of no API groups")
    versions = {group["name"]: [each["version"] for each in group["versions"]] for group in groups["groups"]}
    served: dict[str, tuple[str, ...]] = {}
    for kind in kinds:
        resource, _, group = kind.partition(".")
        having = [each for each in versions.get(group, ()) if await _has(asker, group, each, resource)]
        if having:
            served[kind] = tuple(having)
    return served


async def _has(asker: Asker, group: str, version: str, resource: str) -> bool:
    listed = await asker.find(f"/apis/{group}/{version}")
    return isinstance(listed, dict) and any(each["name"] == resource for each in listed["resources"])


async def ask_policies(asker: Asker, names: Iterable[str]) -> Mapping[str, PolicyParts | Unseen]:
    """Return of each policy what is installed; a binding counts by the policy that it names."""
    bindings = await asker.find(f"{_ADMISSION}/mutatingadmissionpolicybindings")
    if isinstance(bindings, Unseen):
        return dict.fromkeys(names, bindings)
    bound = {each["spec"].get("policyName", "") for each in (bindings or {}).get("items", ())}
    return {name: await _policy(asker, name, is_bound=name in bound) for name in names}


async def _policy(asker: Asker, name: str, *, is_bound: bool) -> PolicyParts | Unseen:
    policy = await asker.find(f"{_ADMISSION}/mutatingadmissionpolicies/{name}")
    if isinstance(policy, Unseen):
        return policy
    conditions = ((policy or {}).get("spec") or {}).get("matchConditions") or ()
    return PolicyParts(policy is not None, is_bound, " ".join(each["expression"] for each in conditions))


async def ask_fleet(asker: Asker, scheduler_names: Iterable[str]) -> Fleet | Unseen:
    """Return the pods that have not ended and wait or name our schedulers, and the nodes with HAMi's plugin."""
    ours = frozenset(scheduler_names)
    pods: list[core_v1.Pod] = []
    told: set[str] = set()
    bound_s: dict[str, float] = {}
    try:
        async for item in asker.items("/api/v1/pods", fieldSelector=NOT_ENDED):
            pod = _pod(item)
            if pod is not None and (not pod.spec.node_name or pod.spec.scheduler_name in ours):
                pods.append(pod)
                told.update([pod.metadata.uid] if _VARIABLE in item else ())
                bound_s |= {pod.metadata.uid: since_s} if (since_s := _bound_s(item)) else {}
        hami = [_NODES.decode(item).metadata.name async for item in asker.items("/api/v1/nodes") if _HAMI in item]
    except UnseenError as error:
        return error.unseen
    return Fleet(tuple(pods), frozenset(told), bound_s, tuple(hami))


def _bound_s(item: bytes) -> float:
    for each in orjson.loads(item).get("status", {}).get("conditions") or ():
        if (each.get("type"), each.get("status")) == ("PodScheduled", "True") and each.get("lastTransitionTime"):
            return datetime.fromisoformat(each["lastTransitionTime"]).timestamp()
    return 0.0


def _pod(item: bytes) -> core_v1.Pod | None:
    try:
        return _PODS.decode(item)
    except (MsgspecError, orjson.JSONDecodeError):  # the extender leaves it out as well
        return None
