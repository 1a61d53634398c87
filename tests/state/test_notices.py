"""Who is told why it waits, and when."""

from extender.state.notices import LONGEST_UNTOLD_S, UNTOLD_S
from tests.builders import a_node, a_pod
from tests.rig import Rig


def told(rig: Rig) -> list[tuple[str, str]]:
    """Return each FailedScheduling Event so far: the pod and what it says."""
    return [(event.pod.name, event.note) for event in rig.announcements if event.reason == "FailedScheduling"]


def test_a_member_that_filter_was_never_asked_about_is_told_after_a_second_and_once() -> None:
    rig = Rig(a_node("n1", gpu=0))
    rig.create(a_pod("w0", gang="g", min_available=2))
    rig.later()
    assert not told(rig)
    rig.later(UNTOLD_S)
    rig.later(60)
    ((name, text),) = told(rig)
    assert name == "w0"
    assert 'Gang "default/g"' in text


def test_a_member_that_filter_turned_away_is_not_told_again() -> None:
    rig = Rig(a_node("n1", gpu=1))
    members = [a_pod(f"w{n}", gang="g", min_available=2) for n in range(2)]
    rig.create(*members)
    for member in members:
        rig.text_for(member)
    rig.later(UNTOLD_S)
    rig.later(UNTOLD_S)
    assert not told(rig)


def test_an_incomplete_gang_that_has_room_says_that_it_waits_for_its_members() -> None:
    rig = Rig(a_node("n1"))
    member = a_pod("w0", gang="g", min_available=2)
    rig.create(member)
    assert rig.node_for(member) == "n1"
    rig.later()
    rig.later(UNTOLD_S)
    assert told(rig) == [
        ("w0", 'Gang "default/g" has room and waits for its members: fewer than its min-available 2 exist')
    ]


def test_members_that_get_room_within_the_second_are_told_nothing() -> None:
    rig = Rig(a_node("n1"))
    rig.create(a_pod("w0", gang="g", min_available=2))
    rig.later()
    rig.create(a_pod("w1", gang="g", min_available=2))
    rig.later()
    rig.later(UNTOLD_S)
    assert not told(rig)


def test_members_are_told_nothing_while_others_still_come() -> None:
    rig = Rig(a_node("n1", gpu=0))
    for number in range(10):
        rig.create(a_pod(f"w{number}", gang="g", min_available=20))
        rig.later(0.9 * UNTOLD_S)
    assert not told(rig)
    rig.later(UNTOLD_S)
    assert [name for name, _ in told(rig)] == [f"w{number}" for number in range(10)]


def test_members_are_told_in_the_end_though_others_still_come() -> None:
    rig = Rig(a_node("n1", gpu=0))
    step_s = 0.9 * UNTOLD_S
    for number in range(round(LONGEST_UNTOLD_S / step_s) + 2):
        rig.create(a_pod(f"w{number}", gang="g", min_available=100))
        rig.later(step_s)
    names = [name for name, _ in told(rig)]
    assert names[0] == "w0"
    assert len(names) < 4


def test_members_of_a_gang_that_nobody_declares_are_told() -> None:
    rig = Rig(a_node("n1"))
    rig.create(a_pod("w0", gang="g", min_available=None))
    rig.later()
    rig.later(UNTOLD_S)
    ((_, text),) = told(rig)
    assert "nobody says how many members it needs" in text


def test_a_reason_that_changes_is_told_at_once_to_those_who_were_told_another() -> None:
    rig = Rig(a_node("n1", gpu=0))
    member = a_pod("w0", gang="g", min_available=2)
    rig.create(member)
    assert "gets rejected" in rig.text_for(member)
    rig.cluster.upsert_node(a_node("n1"))
    rig.later()
    assert [name for name, _ in told(rig)] == ["w0"]
    assert "waits for its members" in told(rig)[0][1]
