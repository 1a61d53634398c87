"""What the API server's answer to a list or a watch says.

Objects are decoded one by one: one that cannot be read is skipped and reported as a problem, and never costs its page
or its watch. Generic over kinds: another kind is one more `Kind`.
"""

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from extender.model.device import CardPolicy, NodeCards
from extender.model.disruption_budget import DisruptionBudget
from extender.model.job import TrainingJob
from extender.model.namespace import Namespace
from extender.model.node import Node
from extender.model.pod import Pod
from extender.model.pod_group import KOORDINATOR, SCHEDULER_PLUGINS, UPSTREAM, VOLCANO, PodGroup
from extender.model.volume import PersistentVolume, VolumeClaim
from extender.wire import core_v1
from extender.wire.cards.koordinator_inventory import Device, device_cards
from extender.wire.disruption_budgets import PodDisruptionBudget, disruption_budget_of
from extender.wire.job_owner import BATCH_JOB, ELASTIC_JOB, PYTORCH_JOB, TF_JOB, TORCH_JOB
from extender.wire.jobs import BatchJob, OperatorJob, batch_job_of, operator_job_of
from extender.wire.malformed import UNREADABLE, MalformedBody, decode
from extender.wire.objects import namespace_of, node_of, pod_of
from extender.wire.pod_groups import MinMemberPodGroup, UpstreamPodGroup, pod_group_of, upstream_pod_group_of
from extender.wire.volumes import PersistentVolumeClaim, Volume, persistent_volume_of, volume_claim_of


class _HasMetadata(Protocol):
    @property
    def metadata(self) -> core_v1.ObjectMeta: ...


W = TypeVar("W", bound=_HasMetadata)
M = TypeVar("M")


class ObjectId(Struct, frozen=True, gc=False):
    """Which object: a name may be given again, a UID is not."""

    uid: str
    namespace: str
    name: str


class Seen(Struct, Generic[M], frozen=True, gc=False):
    """One version of an object."""

    id: ObjectId
    resource_version: str
    object: M


class Kind(Struct, Generic[M], frozen=True):
    """A kind of object; `read` turns its JSON into the model's noun and raises one of UNREADABLE."""

    name: str
    read: Callable[[Raw], Seen[M]]


class ListPage(Struct, frozen=True):
    """One page of a list, its objects unread. `continue_token` is empty on the last one."""

    resource_version: str
    continue_token: str
    items: tuple[Raw, ...]


class Page(Struct, Generic[M], frozen=True):
    """The objects of a page; `problems` has a sentence for each that is skipped."""

    objects: tuple[Seen[M], ...]
    problems: tuple[str, ...]


class Changed(Struct, Generic[M], frozen=True, gc=False):
    """ADDED or MODIFIED."""

    seen: Seen[M]


class Deleted(Struct, frozen=True, gc=False):
    """DELETED. Only the metadata is read, so that an unreadable object can go, too."""

    id: ObjectId
    resource_version: str


class Bookmark(Struct, frozen=True, gc=False):
    """BOOKMARK: everything before this version was sent; with `initial_events_end` also a WatchList's initial state."""

    resource_version: str
    initial_events_end: bool


class WatchError(Struct, frozen=True, gc=False):
    """ERROR: the API server ends the watch. `code` is that of HTTP; 410 means that the version asked for is too old."""

    code: int
    reason: str
    message: str
    retry_after_s: int


class Unreadable(Struct, frozen=True, gc=False):
    """An event whose object was skipped; `resource_version` is empty where even the metadata cannot be read."""

    resource_version: str
    problem: str


Event: TypeAlias = Changed[M] | Deleted | Bookmark | WatchError | Unreadable


def _kind(name: str, wire_type: type[W], model_of: Callable[[W], M]) -> Kind[M]:
    decoder = Decoder(wire_type)

    def read(body: Raw) -> Seen[M]:
        wire = decoder.decode(body)
        return Seen(_id_of(wire.metadata), wire.metadata.resource_version, model_of(wire))

    return Kind(name, read)


def _id_of(meta: core_v1.ObjectMeta) -> ObjectId:
    return ObjectId(meta.uid, meta.namespace, meta.name)


def node_kind(policy: CardPolicy) -> Kind[Node]:
    """Return nodes, with their cards by this policy."""
    return _kind("Node", core_v1.Node, partial(node_of, policy=policy))


def device_kind(policy: CardPolicy) -> Kind[NodeCards]:
    """Return Koordinator's Devices, with the cards that they name by this policy."""
    return _kind("Device", Device, partial(device_cards, policy=policy))


PODS: Kind[Pod] = _kind("Pod", core_v1.Pod, pod_of)
NODES: Kind[Node] = node_kind(CardPolicy())
NAMESPACES: Kind[Namespace] = _kind("Namespace", core_v1.Namespace, namespace_of)
VOLUME_CLAIMS: Kind[VolumeClaim] = _kind("PersistentVolumeClaim", PersistentVolumeClaim, volume_claim_of)
VOLUMES: Kind[PersistentVolume] = _kind("PersistentVolume", Volume, persistent_volume_of)
DISRUPTION_BUDGETS: Kind[DisruptionBudget] = _kind("PodDisruptionBudget", PodDisruptionBudget, disruption_budget_of)
POD_GROUPS: dict[str, Kind[PodGroup]] = {
    UPSTREAM: _kind("PodGroup", UpstreamPodGroup, partial(upstream_pod_group_of, UPSTREAM)),
    **{
        api: _kind("PodGroup", MinMemberPodGroup, partial(pod_group_of, api))
        for api in (KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO)
    },
}
"""By API group."""
JOBS: dict[str, Kind[TrainingJob]] = {
    **{
        kind: _kind(kind, OperatorJob, partial(operator_job_of, kind))
        for kind in (TF_JOB, PYTORCH_JOB, ELASTIC_JOB, TORCH_JOB)
    },
    BATCH_JOB: _kind(BATCH_JOB, BatchJob, partial(batch_job_of, BATCH_JOB)),
}
"""By kind."""


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = field(name="continue", default="")


class _List(Struct):
    metadata: _ListMeta
    items: list[Raw] | None


class _MetadataOnly(Struct):
    metadata: core_v1.ObjectMeta


class _WatchEvent(Struct):
    type: str
    object: Raw


class _BookmarkMeta(Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None


class _BookmarkObject(Struct):
    metadata: _BookmarkMeta


class _StatusDetails(Struct, rename="camel"):
    retry_after_seconds: int = 0


class _Status(Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _StatusDetails | None = None


_LIST = Decoder(_List)
_METADATA_ONLY = Decoder(_MetadataOnly)
_WATCH_EVENT = Decoder(_WatchEvent)
_BOOKMARK = Decoder(_BookmarkObject)
_STATUS = Decoder(_Status)


def open_page(kind: Kind[M], body: bytes) -> ListPage:
    """Return the page of a list with its objects unread; raises MalformedBody when it is none."""
    page = decode(_LIST, body, f"list of {kind.name} objects")
    return ListPage(page.metadata.resource_version, page.metadata.continue_token, tuple(page.items or ()))


def read_page(kind: Kind[M], page: ListPage) -> Page[M]:
    """Read the objects of a page."""
    objects: list[Seen[M]] = []
    problems: list[str] = []
    for item in page.items:
        try:
            objects.append(kind.read(item))
        except UNREADABLE as error:
            problems.append(_skipped(kind, item, error).problem)
    return Page(tuple(objects), tuple(problems))


def decode_event(kind: Kind[M], line: bytes) -> Event[M]:
    """Return what one line of a watch says; raises MalformedBody when it is no event."""
    event = decode(_WATCH_EVENT, line, f"watch event of {kind.name} objects")
    match event.type:
        case "ADDED" | "MODIFIED":
            return _changed(kind, event.object)
        case "DELETED":
            meta = decode(_METADATA_ONLY, event.object, f"deleted {kind.name}").metadata
            return Deleted(_id_of(meta), meta.resource_version)
        case "BOOKMARK":
            bookmark = decode(_BOOKMARK, event.object, f"bookmark of {kind.name} objects").metadata
            ends = (bookmark.annotations or {}).get("k8s.io/initial-events-end") == "true"
            return Bookmark(bookmark.resource_version, ends)
        case "ERROR":
            status = decode(_STATUS, event.object, "Status object of a watch error")
            retry_after_s = status.details.retry_after_seconds if status.details else 0
            return WatchError(status.code, status.reason, status.message, retry_after_s)
        case unknown:
            raise MalformedBody(f"This is no watch event of {kind.name} objects: its type is {unknown!r}.")


def _changed(kind: Kind[M], item: Raw) -> Changed[M] | Unreadable:
    try:
        return Changed(kind.read(item))
    except UNREADABLE as error:
        return _skipped(kind, item, error)


def _skipped(kind: Kind[M], item: Raw, error: Exception) -> Unreadable:
    try:
        meta = _METADATA_ONLY.decode(item).metadata
    except UNREADABLE:
        return Unreadable("", f"{kind.name} without readable metadata: {error}")
    return Unreadable(meta.resource_version, f"{kind.name} {meta.namespace}/{meta.name}: {error}")
