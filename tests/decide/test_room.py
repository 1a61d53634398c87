"""What is remembered of rooms from one snapshot to the next."""

from extender.decide.room import capacity_on, nodes_with_room, total_capacity
from extender.model.node import NodeRoom
from extender.model.snapshot import Snapshot
from tests.builders import a_node, a_pod, a_room, a_shape, a_share, some_cards

HALF = a_shape(gpu=0, cards=a_share(500))


def test_what_was_worked_out_for_a_node_holds_until_its_room_changes() -> None:
    nodes = [a_node(name, inventory=some_cards(1)) for name in ("n1", "n2")]
    before = Snapshot(1, {node.name: NodeRoom(node) for node in nodes})
    assert total_capacity(HALF, before) == 4
    full = a_room(nodes[0], *(a_pod(name, shape=HALF) for name in "ab"))
    taken = full.having(a_pod("c", shape=HALF).occupant).on(a_node("n1", inventory=some_cards(0)))
    after = Snapshot(2, {**before.rooms, "n1": taken}, remembered=before.remembered)
    assert nodes_with_room(HALF, after) == {"n2"}
    assert (capacity_on("n1", HALF, after), capacity_on("n2", HALF, after)) == (0, 2)
    again = Snapshot(3, before.rooms, remembered=before.remembered)
    assert total_capacity(HALF, again) == 4
