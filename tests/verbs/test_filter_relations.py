"""The filter verb for members that ask something of each other: kube-scheduler knows only of those it has placed."""

from typing import Any

from extender.model.node import Node
from extender.model.pod import AffinityTerm, Pod, Relations, Requirement, SpreadConstraint
from tests.builders import a_node, a_pod, a_shape
from tests.rig import Rig

PS = (Requirement("role", "In", ("ps",)),)
BESIDE_PS = Relations(affinity=(AffinityTerm("zone", PS, ("default",)),))


def member(name: str, role: str, relations: Relations | None = None, **options: Any) -> Pod:
    shape = a_shape(relations=relations)
    return a_pod(name, gang="g", min_available=3, role=role, shape=shape, labels={"role": role}, **options)


def zones(**gpus: int) -> list[Node]:
    return [a_node(zone, gpu=gpu, labels={"zone": zone}) for zone, gpu in gpus.items()]


def test_a_member_that_waits_for_a_sibling_keeps_its_node_and_is_nominated_when_the_sibling_is_placed() -> None:
    rig = Rig(*zones(a=1, b=3))
    workers = [member(f"w{i}", "worker", BESIDE_PS, created_at=i) for i in range(2)]
    server = member("ps", "ps", created_at=2)
    rig.create(*workers)
    for worker in workers:
        rig.turn_away(worker)  # no node passes kube-scheduler's own filters, so that we are not asked
    rig.later()
    rig.create(server)
    rig.later()
    assert rig.reserved() == 3
    assert rig.nominations == [], "the workers would be turned away again"
    assert rig.node_for(workers[0], []) is None
    assert rig.reserved() == 3, "not being offered says nothing of the node"

    assert rig.node_for(server) == "b"
    rig.later()

    assert [(each.name, each.node) for each in rig.nominations] == [("w0", "b"), ("w1", "b")]
    assert [rig.node_for(worker) for worker in workers] == ["b", "b"]


def test_a_member_whose_turn_it_is_elsewhere_takes_the_node_of_a_sibling() -> None:
    spread = Relations(spread=(SpreadConstraint(1, "zone", (Requirement("role", "In", ("worker",)),)),))
    rig = Rig(*zones(a=2, b=1))
    workers = [member(f"w{i}", "worker", spread, created_at=i) for i in range(3)]
    rig.create(*workers)
    planned = [rig.node_for(workers[0])]
    planned.append(rig.node_for(workers[2], ["b"]))
    planned.append(rig.node_for(workers[1]))
    assert planned == ["a", "b", "a"]


def test_a_pod_that_lets_members_in_has_their_gang_planned() -> None:
    rig = Rig(*zones(a=1, b=3))
    workers = [member(f"w{i}", "worker", BESIDE_PS, created_at=i) for i in range(3)]
    rig.create(*workers)
    assert "didn't match pod affinity rules" in rig.text_for(workers[0])

    rig.create(a_pod("alone", node="b", gpu=0, labels={"role": "ps"}))
    rig.later()

    assert rig.node_for(workers[0]) == "b"
