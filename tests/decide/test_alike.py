"""Who may change places with whom."""

from extender.decide.alike import group_alike
from extender.model.member import Member, Squad
from extender.model.node import NodeRoom
from extender.model.pod import AffinityTerm, Relations, Requirement, Tags
from extender.model.snapshot import Snapshot
from tests.builders import a_node, a_shape

EMPTY = Snapshot(1, {"n1": NodeRoom(a_node("n1"))})


def names(squads: list[Squad]) -> list[list[str]]:
    return [[member.name for member in squad.members] for squad in squads]


def test_equal_shapes_are_alike_whether_or_not_they_are_one_object() -> None:
    members = [Member(a_shape(), "worker", name=name) for name in "ab"]
    assert members[0].shape is not members[1].shape
    others = [Member(a_shape(gpu=2), "worker", name="c"), Member(a_shape(), "ps", name="d")]
    assert names(group_alike([*members, *others, members[0]], EMPTY)) == [["a", "b", "a"], ["c"], ["d"]]


def test_labels_set_members_apart_only_when_somebody_selects_by_them() -> None:
    def member(name: str, color: str, relations: Relations | None = None) -> Member:
        return Member(a_shape(relations=relations), name=name, tags=Tags("default", {"color": color}))

    plain = [member("a", "red"), member("b", "blue")]
    assert names(group_alike(plain, EMPTY)) == [["a", "b"]]
    apart = Relations(anti_affinity=(AffinityTerm("zone", (Requirement("color", "In", ("red",)),)),))
    assert names(group_alike([*plain, member("c", "red", apart)], EMPTY)) == [["a"], ["b"], ["c"]]
