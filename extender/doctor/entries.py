"""Do the extender entries of a kube-scheduler call the extender as it must be called?

scheduler-config/dedicated.yaml gives the reasons for what is right; here they are said of what is wrong.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from extender.config import GangExtenderConfiguration
from extender.doctor.finding import Check, Level, Problem
from extender.doctor.scheduler_config import Entry, SchedulerConfig, TlsConfig
from extender.effects.binding import LAST_LOOK_S
from extender.effects.node_lock import RELEASE_S
from extender.verbs.bind import POSTING_S, TURN_AFTER_S
from extender.verbs.server import PREFIX

BEYOND_BINDING_S: Final = TURN_AFTER_S + POSTING_S + LAST_LOOK_S + RELEASE_S
"""How much longer than gangs.bindingSeconds a bind call may take."""

LOOP_S: Final = (0.5, 5.0)
"""The time-outs within which filter, prioritize and preempt are sensible: a pause of the machine is ridden out, and
the one scheduling loop does not stand for longer than kube-scheduler's own default."""

OUTWEIGHS: Final = 15
"""The least weight with which a full score is above all that the default plugins say (1,400 points)."""

VERBS: Final = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "bindVerb": "bind"}

_WITHOUT: Final[dict[str, tuple[Level, str]]] = {
    "filterVerb": ("error", "gangs are not held together: kube-scheduler places every pod by itself"),
    "prioritizeVerb": ("warning", "further members of a gang go to nodes without regard to the gang"),
    "preemptVerb": (
        "error",
        "kube-scheduler evicts pods for gangs that still would not be whole, one node after another",
    ),
    "bindVerb": ("error", "kube-scheduler binds the members one by one, so that half a gang may run"),
}
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Place(Struct, frozen=True):
    """An entry and where it is in the file."""

    index: int
    entry: Entry

    @property
    def at(self) -> str:
        """Return where, as it is shown."""
        return f"extenders[{self.index}]"

    @property
    def url(self) -> SplitResult:
        """The parts of its URL; the port is None where it makes no sense."""
        return urlsplit(self.entry.url_prefix)


class Wiring(Struct, frozen=True):
    """One kube-scheduler's configuration beside the extender's settings."""

    config: SchedulerConfig
    settings: GangExtenderConfiguration

    @property
    def tls(self) -> bool:
        """Whether the extender serves the verbs with TLS, to clients with a certificate, and with nothing else."""
        return self.settings.server.tls is not None

    @property
    def places(self) -> list[Place]:
        """Every entry that is called."""
        return [Place(index, entry) for index, entry in enumerate(self.config.extenders or ()) if entry.verbs]

    @property
    def ours(self) -> list[Place]:
        """The entries that call us: by their port, or where none has it, by the path."""
        by_port = [place for place in self.places if _port(place.url) == self.settings.server.port]
        return by_port or [place for place in self.places if place.url.path.rstrip("/") == PREFIX]

    @property
    def others(self) -> list[Place]:
        """The entries of other extenders."""
        ours = {place.index for place in self.ours}
        return [place for place in self.places if place.index not in ours]

    @property
    def shared(self) -> bool:
        """Whether it schedules pods that are none of ours, too."""
        return bool(set(self.config.names) - set(self.settings.scheduler_names))


def is_wired(wiring: Wiring) -> Iterator[Problem]:
    """Have at least one entry."""
    if not wiring.ours:
        port = wiring.settings.server.port
        others = ", ".join(place.entry.url_prefix for place in wiring.others)
        yield Problem(
            f"no entry calls the extender (port {port}, path {PREFIX})"
            + (f"; there are others: {others}" if others else ""),
            "take the extenders from scheduler-config/dedicated.yaml, or shared.yaml, and restart kube-scheduler",
            "extenders",
        )


def verbs_are_called(wiring: Wiring) -> Iterator[Problem]:
    """Have every verb once, by its name."""
    for name, verb in VERBS.items() if wiring.ours else ():
        having = [place for place in wiring.ours if name in place.entry.verbs]
        if not having:
            level, consequence = _WITHOUT[name]
            yield Problem(
                f"{name} is missing: {consequence}", f"{_entry_for(name, wiring)}: {name}: {verb}", level=level
            )
        if len(having) > 1:
            where = " and ".join(place.at for place in having)
            yield Problem(f"{name} is in {len(having)} entries", f"keep {name} in one entry", where, "warning")
        for place in having:
            if place.entry.verbs[name] != verb:
                said = place.entry.verbs[name]
                yield Problem(f"{name} is {said!r}, which the extender answers with 404", f"{name}: {verb}", place.at)


def _entry_for(name: str, wiring: Wiring) -> str:
    if name == "bindVerb":
        return "add an entry with httpTimeout: 90s and"
    return f"add to {wiring.ours[0].at}"


def calls_reach_us(wiring: Wiring) -> Iterator[Problem]:
    """Name an address, a port and a path where we listen."""
    server = wiring.settings.server
    for place in wiring.ours:
        url = place.url
        right = f"urlPrefix: {url.scheme}://{url.hostname}:{server.port}{PREFIX}"
        if _port(url) != server.port:
            yield Problem(f"it calls port {_port(url)}, the extender listens on {server.port}", right, place.at)
        if url.path.rstrip("/") != PREFIX:
            yield Problem(f"it calls path {url.path or '/'}, the extender answers under {PREFIX}", right, place.at)
        if server.address in _LOOPBACK and url.hostname not in _LOOPBACK:
            yield Problem(
                f"it calls {url.hostname}, the extender listens on {server.address} alone",
                f"urlPrefix: http://{server.address}:{server.port}{PREFIX}, with the extender in kube-scheduler's pod",
                place.at,
            )


def tls_agrees(wiring: Wiring) -> Iterator[Problem]:
    """Speak as we do; with TLS, know whom to trust, and say who calls."""
    for place in wiring.ours:
        entry, scheme = place.entry, place.url.scheme
        if scheme == "https" and not wiring.tls:
            yield Problem("it calls https, the extender answers plain HTTP", "urlPrefix: http://...", place.at)
        if scheme == "http" and wiring.tls:
            yield Problem("it calls plain HTTP, the extender takes TLS alone", "urlPrefix: https://...", place.at)
        if scheme == "https":
            yield from _blind_trust(place)
            yield from _nameless(place) if wiring.tls else ()
        elif entry.enable_https or entry.tls_config:
            mend = "remove enableHTTPS and tlsConfig, or write https in urlPrefix where the extender serves it"
            yield Problem("enableHTTPS or tlsConfig is set, but urlPrefix says http", mend, place.at, "warning")


def _blind_trust(place: Place) -> Iterator[Problem]:
    tls, mend = place.entry.tls_config or TlsConfig(), "tlsConfig: {caFile: ...}"
    if tls.insecure:
        yield Problem("tlsConfig.insecure checks no certificate", mend, place.at, "warning")
    elif place.entry.enable_https and not (tls.ca_file or tls.ca_data):
        yield Problem("without a CA enableHTTPS checks no certificate", mend, place.at, "warning")


def _nameless(place: Place) -> Iterator[Problem]:
    tls = place.entry.tls_config or TlsConfig()
    if not (tls.cert_file or tls.cert_data):
        what = "it shows no client certificate, and the extender answers nobody without one"
        yield Problem(what, "tlsConfig: {certFile: ..., keyFile: ..., caFile: ...}", place.at)


def only_names_are_sent(wiring: Wiring) -> Iterator[Problem]:
    """Be nodeCacheCapable."""
    for place in wiring.ours:
        if not place.entry.node_cache_capable:
            what = (
                "nodeCacheCapable is false: calls carry whole nodes, and kube-scheduler 1.36 scores these as if empty"
            )
            yield Problem(what, "nodeCacheCapable: true", place.at)


def nobody_is_ignored(wiring: Wiring) -> Iterator[Problem]:
    """Not be ignorable."""
    for place in wiring.ours:
        if place.entry.ignorable:
            what = "ignorable is true: while the extender is away or says no at bind, members are bound one by one"
            yield Problem(what, "ignorable: false", place.at)


def bind_outlasts_the_wait(wiring: Wiring) -> Iterator[Problem]:
    """Give bind longer than a gang may take to come."""
    binding_s = wiring.settings.gangs.binding_seconds
    needed_s = binding_s + BEYOND_BINDING_S
    for place in wiring.ours:
        if place.entry.bind_verb and place.entry.timeout_s < needed_s:
            yield Problem(
                f"bind calls end after {_said(place.entry)}, and wait {needed_s:g} s for their gang"
                f" (gangs.bindingSeconds {binding_s:g} and {BEYOND_BINDING_S:g} more)",
                f"httpTimeout: {max(90.0, needed_s):g}s",
                place.at,
            )


def the_loop_is_not_held(wiring: Wiring) -> Iterator[Problem]:
    """Give the verbs of the scheduling loop a short time-out."""
    least_s, most_s = LOOP_S
    for place in wiring.ours:
        verbs, timeout_s = place.entry.verbs.keys() - {"bindVerb"}, place.entry.timeout_s
        if verbs and timeout_s > most_s:
            split = "; give bindVerb an entry of its own" if place.entry.bind_verb else ""
            what = f"a call that hangs stops all scheduling for {_said(place.entry)}"
            yield Problem(what, f"httpTimeout: 2s{split}", place.at, "warning")
        if verbs and timeout_s < least_s:
            what = f"{_said(place.entry)} is shorter than a pause of the machine: calls fail, and pods back off"
            yield Problem(what, "httpTimeout: 2s", place.at, "warning")


def _said(entry: Entry) -> str:
    return f"{entry.timeout_s:g} s" + ("" if entry.http_timeout else " (the default: httpTimeout is not set)")


def the_score_counts(wiring: Wiring) -> Iterator[Problem]:
    """Give prioritize a weight above the plugins'."""
    for place in wiring.ours:
        weight = place.entry.weight
        if place.entry.prioritize_verb and weight <= 0:
            yield Problem(f"weight is {weight}: kube-scheduler refuses the file", f"weight: {OUTWEIGHS}", place.at)
        elif place.entry.prioritize_verb and weight < OUTWEIGHS:
            what = f"with weight {weight} the default plugins may outvote the extender"
            yield Problem(what, f"weight: {OUTWEIGHS}", place.at, "warning")


def nobody_else_is_in_the_way(wiring: Wiring) -> Iterator[Problem]:
    """Let no other extender bind our pods, nor refuse the node that we have chosen."""
    filters = [place.index for place in wiring.ours if place.entry.filter_verb]
    for place in wiring.others:
        entry = place.entry
        if entry.bind_verb:
            binders = sum(1 for each in wiring.places if each.entry.bind_verb)
            what = "another extender has the bindVerb, which only one may have"
            what += ": kube-scheduler refuses the file" if binders > 1 else ": gangs are bound without us"
            yield Problem(what, "remove its bindVerb, or run it in another kube-scheduler", place.at)
        if entry.filter_verb and filters and (entry.ignorable or place.index > filters[0]):
            what = "another extender filters after ours, and may refuse the one node that was chosen for a member"
            mend = "put its entry before ours, and not ignorable (those come last)"
            yield Problem(what, mend, place.at, "warning")


def _port(url: SplitResult) -> int | None:
    try:
        return url.port or _DEFAULT_PORTS.get(url.scheme)
    except ValueError:
        return None


ENTRIES: Final[tuple[Check[Wiring], ...]] = (
    Check("extender entries", is_wired),
    Check("verbs", verbs_are_called),
    Check("urlPrefix", calls_reach_us),
    Check("TLS of the entries", tls_agrees),
    Check("nodeCacheCapable", only_names_are_sent),
    Check("ignorable", nobody_is_ignored),
    Check("httpTimeout of bind", bind_outlasts_the_wait),
    Check("httpTimeout of filter, prioritize and preempt", the_loop_is_not_held),
    Check("weight", the_score_counts),
    Check("other extenders", nobody_else_is_in_the_way),
)
