"""Workers beside their leaders, on no more nodes than the gang uses anyhow; and members without GPUs off GPU nodes."""

from collections import Counter

from extender.decide.draft import Batch
from extender.decide.gang import admit_gang
from extender.decide.leaders import bring_together
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.member import Member, Squad
from extender.model.node import Node, NodeRoom
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placed, Placement
from tests.builders import a_node, a_pod, a_shape, a_share, some_cards

SERVER = a_shape(gpu=0, cpu_milli=1000)
WORKER = a_shape(gpu=1, cpu_milli=1000)


def snapshot_of(*nodes: Node) -> Snapshot:
    return Snapshot(1, {node.name: NodeRoom(node) for node in nodes})


def plan(snapshot: Snapshot, servers: int, workers: int, worker_gpu: int = 1) -> tuple[Placement, ...]:
    worker = WORKER if worker_gpu else a_shape(gpu=0, cpu_milli=1000)
    pods = [a_pod(f"ps-{i}", shape=SERVER, role="ps") for i in range(servers)]
    pods += [a_pod(f"w-{i}", shape=worker) for i in range(workers)]
    admission = admit_gang(Gang(GangKey("default/g"), servers + workers, waiting=tuple(pods)), snapshot)
    assert isinstance(admission, Placed)
    return admission.placements


def counts(placements: tuple[Placement, ...], role: str) -> dict[str, int]:
    return dict(Counter(each.node for each in placements if each.role == role))


def test_each_group_of_workers_has_a_parameter_server_beside_it() -> None:
    placements = plan(snapshot_of(*(a_node(f"n{i}", gpu=8, cpu_milli=5000) for i in (1, 2))), servers=2, workers=8)
    assert (counts(placements, "ps"), counts(placements, "worker")) == ({"n1": 1, "n2": 1}, {"n1": 4, "n2": 4})


def test_a_server_moves_to_most_of_the_workers() -> None:
    snapshot = snapshot_of(a_node("n1", gpu=2), a_node("n2", gpu=4))
    server = Squad(SERVER, "ps", (), [Member(SERVER, "ps")])
    workers = Squad(WORKER, "worker", (), [Member(WORKER, "worker")] * 6)
    seated = [Batch("n1", server, 1), Batch("n1", workers, 2), Batch("n2", workers, 4)]
    assert bring_together(seated, snapshot) == [Batch("n2", server, 1), *seated[1:]]
    assert bring_together(seated, snapshot, avoid={("n2", SERVER)}) == seated, "where it was refused"


def test_members_that_change_places_get_cards_that_are_free_there() -> None:
    snapshot = snapshot_of(*(a_node(f"n{i}", gpu=0, cpu_milli=3000, inventory=some_cards(2)) for i in (1, 2)))
    half = a_shape(gpu=0, cpu_milli=1000, cards=a_share(500))
    pods = [a_pod(f"ps-{i}", shape=SERVER, role="ps") for i in range(2)]
    pods += [a_pod(f"w-{i}", shape=half) for i in range(4)]
    admission = admit_gang(Gang(GangKey("default/g"), 6, waiting=tuple(pods)), snapshot)
    assert isinstance(admission, Placed)
    assert counts(admission.placements, "ps") == {"n1": 1, "n2": 1}
    assert Counter((each.node, share.core_milli) for each in admission.placements for share in each.cards) == {
        ("n1", 500): 2,
        ("n2", 500): 2,
    }


def test_fewer_nodes_where_filling_them_in_another_order_comes_to_fewer() -> None:
    sizes = {"a": (2, 2000), "b": (4, 4000), "c": (2, 3000)}
    snapshot = snapshot_of(*(a_node(name, gpu=gpu, cpu_milli=cpu) for name, (gpu, cpu) in sizes.items()))
    assert {each.node for each in plan(snapshot, servers=2, workers=5)} == {"b", "c"}


def test_a_gang_that_needs_no_gpu_stays_off_the_nodes_that_have_some_while_others_do() -> None:
    snapshot = snapshot_of(a_node("gpu", gpu=8, cpu_milli=64_000), *(a_node(n, gpu=0, cpu_milli=2000) for n in "ab"))
    assert {each.node for each in plan(snapshot, servers=0, workers=4, worker_gpu=0)} == {"a", "b"}
    assert {each.node for each in plan(snapshot, servers=0, workers=5, worker_gpu=0)} == {"a", "b", "gpu"}


def test_a_parameter_server_belongs_beside_its_workers_whatever_gpus_are_there() -> None:
    snapshot = snapshot_of(a_node("gpu", gpu=4, cpu_milli=8000), a_node("cpu", gpu=0))
    assert {each.node for each in plan(snapshot, servers=1, workers=4)} == {"gpu"}
