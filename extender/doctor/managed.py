"""Do the entries' managedResources name what they should, where they should?

An entry that names resources is called only for pods that ask for one of them; one that names none, for every pod.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from extender.doctor.entries import Wiring
from extender.doctor.finding import Check, Problem
from extender.wire.cards.qualifiers import QUALIFIERS

MARKS: Final = ("gang-extender.io/member", "gang-extender.io/member-bind")
"""What scheduler-config/shared.yaml asks of pods: the first for filter, the second for bind."""

_EXTENDED = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def every_member_comes(wiring: Wiring) -> Iterator[Problem]:
    """Name nothing that a member may lack: a mark in a shared kube-scheduler, and nothing in one of our own."""
    for place in wiring.ours:
        names = {each.name for each in place.entry.managed}
        if not names:
            continue
        if not wiring.shared:
            what = (
                f"the extender is called only for pods that ask for {_list(names)}: other members are placed without it"
            )
            yield Problem(what, "remove managedResources here: this kube-scheduler has no other pods", place.at)
        elif foreign := {name for name in names if name not in MARKS}:
            what = (
                f"{_list(foreign)} is no mark: members that ask for none, as parameter servers, are placed without us"
            )
            mark = MARKS["bindVerb" in place.entry.verbs]
            yield Problem(what, f"managedResources: [{{name: {mark}, ignoredByScheduler: true}}]", place.at)


def nobody_else_comes(wiring: Wiring) -> Iterator[Problem]:
    """Keep the pods of other profiles away."""
    for place in wiring.ours if wiring.shared else ():
        if not place.entry.managed:
            others = _list(set(wiring.config.names) - set(wiring.settings.scheduler_names))
            what = (
                f"there is no managedResources: every pod of {others} comes to the extender as well, and fails with it"
            )
            mark = MARKS["bindVerb" in place.entry.verbs]
            yield Problem(what, f"managedResources: [{{name: {mark}, ignoredByScheduler: true}}]", place.at)


def marks_need_no_node(wiring: Wiring) -> Iterator[Problem]:
    """Have kube-scheduler not look for the marks on nodes."""
    for place in wiring.ours:
        for each in place.entry.managed:
            if each.name in MARKS and not each.ignored_by_scheduler:
                what = f"{each.name} is looked for on nodes, and none offers it: no member ever fits"
                yield Problem(what, f"- {{name: {each.name}, ignoredByScheduler: true}}", place.at)


def names_are_taken(wiring: Wiring) -> Iterator[Problem]:
    """Be names that kube-scheduler takes."""
    every = [(index, each.name) for index, e in enumerate(wiring.config.extenders or ()) for each in e.managed]
    counts = Counter(name for _, name in every)
    for name, count in counts.items():
        if count > 1:
            mend = "give each entry a name of its own (shared.yaml has two marks)"
            what = f"{name} is in {count} entries: kube-scheduler refuses the file (duplicate managed resource name)"
            yield Problem(what, mend, "extenders")
        if not _EXTENDED.fullmatch(name) or "kubernetes.io/" in name:
            what = f"{name!r} is no name of an extended resource: kube-scheduler refuses the file"
            yield Problem(what, f"name: {MARKS[0]}", "extenders")


def qualifiers_need_no_node(wiring: Wiring) -> Iterator[Problem]:
    """Ignore what only says how much of a GPU is wanted."""
    entries = wiring.config.extenders or ()
    ignored = {each.name for entry in entries for each in entry.managed if each.ignored_by_scheduler}
    missing = sorted(QUALIFIERS - ignored)
    if wiring.ours and missing:
        lines = "".join(f"\n  - {{name: {name}, ignoredByScheduler: true}}" for name in missing)
        yield Problem(
            f"kube-scheduler looks for {_list(set(missing))} on nodes: pods that ask for shares of GPUs so never fit",
            f"an entry without verbs (see scheduler-config/dedicated.yaml):\n- urlPrefix: http://127.0.0.1:"
            f"{wiring.settings.server.port}/v1\n  managedResources:{lines}",
            "extenders",
            "warning",
        )


def nothing_is_replaced(wiring: Wiring) -> Iterator[Problem]:
    """Leave no ignoredResources of the user's: ignoredByScheduler replaces them, in every profile."""
    entries = wiring.config.extenders or ()
    ours = {each.name for entry in entries for each in entry.managed if each.ignored_by_scheduler}
    for profile in wiring.config.profiles or ():
        for plugin in profile.plugin_config or ():
            said = (
                set((plugin.args or {}).get("ignoredResources") or ()) if plugin.name == "NodeResourcesFit" else set()
            )
            if ours and said - ours:
                what = f"ignoredByScheduler replaces ignoredResources ({_list(said - ours)}) of NodeResourcesFit"
                lines = ", ".join(f"{{name: {name}, ignoredByScheduler: true}}" for name in sorted(said - ours))
                mend = f"name them in the entry without verbs: managedResources: [{lines}]"
                yield Problem(what, mend, f"profile {profile.scheduler_name}", "warning")


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))


MANAGED: Final[tuple[Check[Wiring], ...]] = (
    Check("managedResources: every member comes", every_member_comes),
    Check("managedResources: nobody else comes", nobody_else_comes),
    Check("managedResources: marks are ignored by kube-scheduler", marks_need_no_node),
    Check("managedResources: names", names_are_taken),
    Check("managedResources: terms of GPU sharing", qualifiers_need_no_node),
    Check("ignoredResources of NodeResourcesFit", nothing_is_replaced),
)
