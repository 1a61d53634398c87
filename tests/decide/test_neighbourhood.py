"""Whether the pods that are there let one more in: kube-scheduler's PodTopologySpread and InterPodAffinity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.decide.neighbourhood import Neighbourhood
from extender.decide.trial import Trial
from extender.model.node import NodeRoom
from extender.model.pod import AffinityTerm, Occupant, Relations, Requirement, SpreadConstraint, Tags
from extender.model.snapshot import Snapshot
from extender.model.verdict import (
    PodAffinityUnmet,
    PodAntiAffinityViolated,
    Relation,
    RepelledByPods,
    SpreadLabelMissing,
    SpreadTooUneven,
)
from tests.builders import a_node, a_shape
from tests.decide.relations import incoming, objections, occupants, snapshots

APP = (Requirement("app", "In", ("db",)),)


def a_resident(app: str = "db", relations: Relations | None = None, *, terminating: bool = False) -> Occupant:
    return Occupant(a_shape(gpu=0, relations=relations), Tags("default", {"app": app}), terminating)


def zones(*pods_by_zone: tuple[Occupant, ...]) -> Snapshot:
    """Return a cluster of one node a zone, `z0` onwards, and one without."""
    rooms = {"bare": NodeRoom(a_node("bare"))}
    for index, pods in enumerate(pods_by_zone):
        name = f"z{index}"
        room = NodeRoom(a_node(name, labels={"zone": name}))
        for pod in pods:
            room = room.having(pod)
        rooms[name] = room
    return Snapshot(1, rooms)


def verdicts(pod: Occupant, snapshot: Snapshot) -> dict[str, Relation | None]:
    near = Trial(snapshot).neighbourhood(pod)
    return {name: near.why_not(room.node) if near else None for name, room in snapshot.rooms.items()}


def test_pods_are_spread_over_the_domains_that_there_are() -> None:
    pod = a_resident(relations=Relations(spread=(SpreadConstraint(1, "zone", APP),)))
    assert verdicts(pod, zones((a_resident(),), ())) == {
        "bare": SpreadLabelMissing(),
        "z0": SpreadTooUneven(),
        "z1": None,
    }


def test_too_few_domains_count_as_an_empty_one() -> None:
    pod = a_resident(relations=Relations(spread=(SpreadConstraint(1, "zone", APP, min_domains=3),)))
    full = verdicts(pod, zones((a_resident(),), (a_resident(),)))
    assert (full["z0"], full["z1"]) == (SpreadTooUneven(), SpreadTooUneven())


@pytest.mark.parametrize(
    "uncounted",
    [a_resident("web"), a_resident(terminating=True), Occupant(a_shape(), Tags("elsewhere", {"app": "db"}))],
    ids=["not selected", "terminating", "of another namespace"],
)
def test_pods_that_do_not_count_for_the_spread(uncounted: Occupant) -> None:
    pod = a_resident(relations=Relations(spread=(SpreadConstraint(1, "zone", APP),)))
    assert verdicts(pod, zones((uncounted,), ()))["z0"] is None


def test_a_pod_goes_where_those_are_that_it_wants_beside_it() -> None:
    pod = a_resident("web", Relations(affinity=(AffinityTerm("zone", APP, ("default",)),)))
    assert verdicts(pod, zones((a_resident(),), ())) == {
        "bare": PodAffinityUnmet(),
        "z0": None,
        "z1": PodAffinityUnmet(),
    }


def test_the_first_of_pods_that_want_each_other_goes_wherever_the_label_is() -> None:
    pod = a_resident(relations=Relations(affinity=(AffinityTerm("zone", APP, ("default",)),)))
    assert verdicts(pod, zones((), ())) == {"bare": PodAffinityUnmet(), "z0": None, "z1": None}


def test_a_pod_keeps_away_from_those_that_it_does_not_want_beside_it() -> None:
    pod = a_resident("web", Relations(anti_affinity=(AffinityTerm("zone", APP, ("default",)),)))
    assert verdicts(pod, zones((a_resident(),), ())) == {"bare": None, "z0": PodAntiAffinityViolated(), "z1": None}


def test_a_pod_without_any_wish_is_kept_off_by_those_of_others() -> None:
    hermit = a_resident("web", Relations(anti_affinity=(AffinityTerm("zone", APP, ("default",)),)))
    assert verdicts(a_resident(), zones((hermit,), ())) == {"bare": None, "z0": RepelledByPods(), "z1": None}
    assert verdicts(a_resident("web"), zones((hermit,), ()))["z0"] is None


def test_where_nobody_asks_anything_of_anybody_there_is_nothing_to_count() -> None:
    assert Trial(zones((a_resident(),), ())).neighbourhood(a_resident()) is None


@given(incoming, snapshots())
def test_the_verdict_is_that_of_the_rules_read_naively(pod: Occupant, snapshot: Snapshot) -> None:
    for name, room in snapshot.rooms.items():
        why_not = verdicts(pod, snapshot)[name]
        expected = objections(pod, room.node, snapshot)
        assert (why_not is None) == (not expected), (name, why_not, expected)
        if why_not is not None:
            assert RULES[type(why_not)] in expected


RULES: dict[type[Relation], str] = {
    SpreadLabelMissing: "label missing",
    SpreadTooUneven: "too uneven",
    PodAffinityUnmet: "affinity",
    PodAntiAffinityViolated: "anti-affinity",
    RepelledByPods: "repelled",
}


@given(incoming, snapshots(), st.lists(st.tuples(occupants, st.integers(0, 3)), max_size=4), st.integers(0, 4))
def test_counts_kept_up_to_date_are_those_of_the_cluster_as_it_became(
    pod: Occupant, snapshot: Snapshot, placed: list[tuple[Occupant, int]], kept: int
) -> None:
    names = list(snapshot.rooms)
    trial = Trial(snapshot)
    trial.neighbourhood(pod)
    marks = []
    for other, index in placed:
        marks.append(trial.mark())
        trial.place(other, names[index % len(names)])
    if kept < len(marks):
        trial.undo(marks[kept])

    became = Snapshot(2, {name: trial.room(name) for name in names}, snapshot.namespaces)

    repelling = [room for room in became.rooms.values() if room.repelling]
    afresh = Neighbourhood(pod, became.rooms.values(), repelling, became.namespaces)
    near = trial.neighbourhood(pod)
    for room in became.rooms.values():
        assert (near.why_not(room.node) if near else None) == afresh.why_not(room.node)
