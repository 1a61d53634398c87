"""How a gang is put into words: names, counts, and Koordinator's terms, which every dialect's pods may add.

Mirrors the parsing of Koordinator's coscheduling (apis/extension/coscheduling.go), but strict: what Koordinator ignores
silently is said to the author here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar, cast, get_args

from msgspec import MsgspecError, structs
from msgspec.json import Decoder

from extender.model.claim import BadGangClaim, GangClaim, GangKey, Ignored, MatchPolicy, Terms, gang_key
from extender.wire.core_v1 import Pod
from extender.wire.job_owner import owning_job
from extender.wire.topology_dialects import topology_of

T = TypeVar("T")

PREFIX: Final = "gang.scheduling.koordinator.sh"
MIN_AVAILABLE: Final = f"{PREFIX}/min-available"
TOTAL: Final = f"{PREFIX}/total-number"
MODE: Final = f"{PREFIX}/mode"
WAITING_TIME: Final = f"{PREFIX}/waiting-time"
GROUPS: Final = f"{PREFIX}/groups"
MATCH_POLICIES: Final = (f"{PREFIX}/match-policy", "pod-group.scheduling.sigs.k8s.io/match-policy")
"""The second is an alias of the first."""

LABEL_MIN_AVAILABLE: Final = "pod-group.scheduling.sigs.k8s.io/min-available"

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
"""Wider than an object's name, for the sake of existing jobs, but fit to be shown in one line of an event."""
_COUNT = re.compile(r"\+?[0-9]{1,9}")
_DURATION = re.compile(r"\+?((?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"([0-9.]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_UNIT_S = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
MOST_GROUPS: Final = 64
"""Gangs that are bound together: more than any job has roles, and each is looked at whenever another one is planned."""
_SHOWN = 63
"""Characters of a bad value that are shown: an annotation may hold 256 KiB."""
WHOLE_NUMBER: Final = "a whole number of 1 or more"

_RENDEZVOUS = re.compile(r"--nnodes[= ]['\"]?([0-9]{1,6})(?![0-9])")
"""torchrun's and dlrover-run's: `MIN:MAX` or one number; a variable that only the shell knows says nothing here."""

_NAMES = Decoder(list[str])
_NO_TERMS = Terms()
_TERM_KEYS = frozenset({TOTAL, MODE, WAITING_TIME, GROUPS, *MATCH_POLICIES})


def claim_of(
    pod: Pod, where: str, name: str, *, pod_group: str = "", fallback_min: int | None = None
) -> GangClaim | BadGangClaim:
    """Return the pod's claim on the gang `name`, which is written at `where`, with all that the pod says of it.

    `fallback_min` is the dialect's own min-available, for pods without Koordinator's label or annotation.
    """
    namespace = pod.metadata.namespace
    if not _NAME.fullmatch(name):
        problem = f"{written(where, name)}: it must be at most 253 letters, digits, '-', '_' and '.'"
        return BadGangClaim(gang_key(namespace, name[:_SHOWN]), problem)
    return complete(pod, GangClaim(gang_key(namespace, name), fallback_min, pod_group=pod_group))


def complete(pod: Pod, claim: GangClaim) -> GangClaim | BadGangClaim:
    """Return the claim with min-available and the terms that the pod's metadata adds to it."""
    found = _min_available(pod)
    if isinstance(found, str):
        return BadGangClaim(claim.key, found, claim.derived)
    terms = read_terms(pod.metadata.annotations or {})
    overruled = _overruled_by_label(pod)
    return GangClaim(
        claim.key,
        claim.min_available if found is None else found,
        structs.replace(terms, ignored=(*terms.ignored, overruled)) if overruled else terms,
        pod_group=claim.pod_group,
        job=claim.job or owning_job(pod.metadata).key,
        job_role=claim.job_role,
        derived=claim.derived,
        rendezvous_min=_rendezvous_min(pod),
    )


def read_terms(annotations: Mapping[str, str]) -> Terms:
    """Return what stands on a pod or on a PodGroup: Koordinator's terms, and any dialect's of topology."""
    return with_topology(_read_koordinator(annotations), topology_of(annotations))


def with_topology(terms: Terms, topology: Terms | None) -> Terms:
    """Return the terms with what others say of topology, where they do: all that either requires holds."""
    if topology is None:
        return terms
    return structs.replace(
        terms,
        required=(*(terms.required or ()), *(topology.required or ())) or None,
        preferred=terms.preferred or topology.preferred,
        ignored=(*terms.ignored, *topology.ignored),
    )


def _read_koordinator(annotations: Mapping[str, str]) -> Terms:
    if _TERM_KEYS.isdisjoint(annotations):
        return _NO_TERMS
    ignored: list[Ignored] = []

    def read(keys: Sequence[str], parse: Callable[[str], T | None], wanted: str) -> T | None:
        key = next((key for key in keys if key in annotations), None)
        if key is None:
            return None
        value = parse(annotations[key])
        if value is None:
            ignored.append(Ignored(f"annotation {key}", annotations[key][:_SHOWN], wanted))
        return value

    return Terms(
        total=read([TOTAL], count_of, WHOLE_NUMBER),
        strict=read([MODE], {"Strict": True, "NonStrict": False}.get, "Strict or NonStrict"),
        waiting_s=read([WAITING_TIME], _seconds, "a duration above 0 such as 600s or 1h30m"),
        groups=read([GROUPS], _gang_keys, f'a JSON list such as ["namespace/gang-a"] of at most {MOST_GROUPS} gangs'),
        match_policy=read(MATCH_POLICIES, _match_policy, f"one of {', '.join(get_args(MatchPolicy))}"),
        ignored=tuple(ignored),
    )


def count_of(text: str) -> int | None:
    """Return the whole number of 1 or more that the text is, or None."""
    return int(text) or None if _COUNT.fullmatch(text.strip()) else None


def bad_count(key: GangKey, where: str, value: str) -> BadGangClaim:
    """Return what becomes of a claim whose count is none."""
    return BadGangClaim(key, f"{written(where, value)}: it must be {WHOLE_NUMBER}")


def written(where: str, value: str) -> str:
    """Return the beginning of a sentence on a value that cannot be used."""
    return f"{where} is {value[:_SHOWN]!r}"


def _min_available(pod: Pod) -> int | str | None:
    """Return the number, or what is wrong with it."""
    for what, values, key in (
        ("label", pod.metadata.labels, LABEL_MIN_AVAILABLE),
        ("annotation", pod.metadata.annotations, MIN_AVAILABLE),
    ):
        if values and key in values:
            text = values[key]
            return count_of(text) or f"{written(f'{what} {key}', text)}: it must be {WHOLE_NUMBER}"
    return None


def _overruled_by_label(pod: Pod) -> Ignored | None:
    """Return the annotation with min-available where the pod's own label says another number."""
    label = (pod.metadata.labels or {}).get(LABEL_MIN_AVAILABLE)
    annotation = (pod.metadata.annotations or {}).get(MIN_AVAILABLE)
    if label is None or annotation is None or count_of(annotation) == count_of(label):
        return None
    wanted = f"{count_of(label)}, as label {LABEL_MIN_AVAILABLE} says"
    return Ignored(f"annotation {MIN_AVAILABLE}", annotation[:_SHOWN], wanted)


def _rendezvous_min(pod: Pod) -> int:
    for container in pod.spec.containers or ():
        found = _RENDEZVOUS.search(" ".join((*(container.command or ()), *(container.args or ()))))
        if found:
            return int(found[1])
    return 0


def _match_policy(text: str) -> MatchPolicy | None:
    return cast("MatchPolicy", text) if text in get_args(MatchPolicy) else None


def _gang_keys(text: str) -> tuple[GangKey, ...] | None:
    try:
        names = _NAMES.decode(text)
    except (MsgspecError, RecursionError):
        return None
    if len(names) > MOST_GROUPS or not all(map(_is_gang_key, names)):
        return None
    return tuple(sorted({GangKey(name) for name in names}))


def _is_gang_key(text: str) -> bool:
    namespace, slash, name = text.partition("/")
    return bool(slash and _NAME.fullmatch(namespace) and _NAME.fullmatch(name))


def _seconds(text: str) -> float | None:
    """Return what Go's time.ParseDuration makes of the text; None where that is an error or not positive."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(amount) * _UNIT_S[unit] for amount, unit in _DURATION_PART.findall(text)) or None
