"""What does a Lease of coordination.k8s.io say, and how is it written?

As client-go has it, so that its tools and candidates understand ours: times in microseconds, and a count of how often
the holder changed.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from extender.model.lease import LeaseRecord
from extender.wire import core_v1
from extender.wire.kube import Kind, ObjectId, Seen
from extender.wire.malformed import decode
from extender.wire.micro_time import micro_time

PATH = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

GIVEN_UP_S = 1
"""What client-go writes as the duration of a lease that it gives up; 0 is not allowed."""


class _LeaseSpec(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(Struct):
    metadata: core_v1.ObjectMeta
    spec: _LeaseSpec = field(default_factory=_LeaseSpec)


class _SpecOnly(Struct):
    spec: _LeaseSpec = field(default_factory=_LeaseSpec)


_LEASE = Decoder(_Lease)
_SPEC_ONLY = Decoder(_SpecOnly)


def read_lease(body: bytes) -> LeaseRecord:
    """Return what the lease says; raises MalformedBody."""
    return _record_of(decode(_SPEC_ONLY, body, "Lease").spec)


def _seen(body: Raw) -> Seen[LeaseRecord]:
    lease = _LEASE.decode(body)
    meta = lease.metadata
    return Seen(ObjectId(meta.uid, meta.namespace, meta.name), meta.resource_version, _record_of(lease.spec))


LEASES: Kind[LeaseRecord] = Kind("Lease", _seen)


def held_spec(before: Mapping[str, Any], identity: str, duration_s: int, epoch_s: float) -> dict[str, Any]:
    """Return the spec of a lease that `identity` takes, or renews, now; `before` is its spec, empty for a new one."""
    now = micro_time(epoch_s)
    is_renewal = before.get("holderIdentity") == identity
    transitions = before.get("leaseTransitions") or 0
    return {
        **before,
        "holderIdentity": identity,
        "leaseDurationSeconds": duration_s,
        "acquireTime": before.get("acquireTime", now) if is_renewal else now,
        "renewTime": now,
        "leaseTransitions": transitions if is_renewal or not before else transitions + 1,
    }


def given_up_spec(before: Mapping[str, Any], epoch_s: float) -> dict[str, Any]:
    """Return the spec of a lease that its holder gives up, so that the next one need not wait for its end."""
    now = micro_time(epoch_s)
    given_up = {"holderIdentity": "", "leaseDurationSeconds": GIVEN_UP_S, "acquireTime": now, "renewTime": now}
    return {**before, **given_up}


def _record_of(spec: _LeaseSpec) -> LeaseRecord:
    return LeaseRecord(
        spec.holder_identity or "",
        float(spec.lease_duration_seconds or 0),
        spec.renew_time or "",
        spec.lease_transitions or 0,
    )
