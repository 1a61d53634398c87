"""What a gang's members are told of their seats with their Bindings."""

from msgspec import structs

from extender.model.pod import Pod
from extender.wire.seat_annotations import sorted_rank_of
from tests.bind_rig import BindRig
from tests.builders import a_node, a_pod
from tests.network import LEVELS, nodes_of

RANK = "gang-extender.io/rank"
DOMAIN = "gang-extender.io/topology-domain"


async def bind(rig: BindRig, *pods: Pod) -> list[Pod]:
    """Bind these together; return them as the watch shows them."""
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods, nodes, strict=True)]
    await rig.settle()
    assert [await call for call in calls] == [""] * len(pods)
    bound = []
    for pod, node in zip(pods, nodes, strict=True):
        rank = sorted_rank_of(rig.binder.annotations[pod.name])
        bound.append(structs.replace(rig.bind(pod, node), sorted_rank=rank))
        rig.cluster.upsert_pod(bound[-1])
    return bound


def told(rig: BindRig, key: str) -> dict[str, str]:
    return {name: texts[key] for name, texts in sorted(rig.binder.annotations.items()) if key in texts}


async def test_each_member_gets_its_number_and_its_domain() -> None:
    rig = BindRig(*nodes_of({"s/a": [2], "s/b": [2]}), levels=LEVELS)
    await bind(rig, *[a_pod(f"w-{i}", gang="g", created_at=9 - i) for i in range(4)])
    assert told(rig, RANK) == {"w-0": "0", "w-1": "1", "w-2": "2", "w-3": "3"}
    domains = told(rig, DOMAIN)
    assert domains == {
        "w-0": "block=a,spine=s",
        "w-1": "block=a,spine=s",
        "w-2": "block=b,spine=s",
        "w-3": "block=b,spine=s",
    }


async def test_members_without_numbers_are_numbered_by_seat() -> None:
    rig = BindRig(*nodes_of({"s/a": [1], "s/b": [2], "t/c": [1]}), levels=LEVELS)
    names = ["w-x", "w-y", "w-z", "w-v"]
    bound = await bind(rig, *[a_pod(name, gang="g") for name in names])
    by_rank = sorted(bound, key=lambda pod: pod.sorted_rank or 0)
    assert [pod.node_name for pod in by_rank] == ["b-0", "b-0", "a-0", "c-0"]


async def test_roles_are_numbered_apart() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    ps, *workers = [a_pod(f"{role}-{i}", gang="g", role=role) for role, i in [("ps", 0), ("worker", 0), ("worker", 1)]]
    rig.let_through(a_pod("worker-2", gang="g"), ps, *workers)
    calls = [rig.call(pod, "n1") for pod in rig.cluster.pods.values()]
    await rig.settle()
    assert [await call for call in calls] == [""] * 4
    assert told(rig, RANK) == {"ps-0": "0", "worker-0": "0", "worker-1": "1", "worker-2": "2"}
    assert told(rig, DOMAIN) == {}


async def test_who_replaces_a_member_takes_its_rank() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    bound = await bind(rig, *[a_pod(f"w-{name}", gang="g", min_available=3) for name in "abc"])
    (lost,) = [pod for pod in bound if pod.sorted_rank == 1]
    rig.delete(lost)
    rig.later()
    new = a_pod("w-new", gang="g", min_available=3)
    rig.create(new)
    call = rig.call(new, rig.node_for(new) or "n1")
    await rig.settle()
    assert await call == ""
    assert told(rig, RANK)["w-new"] == "1"


async def test_a_pod_without_a_gang_is_told_nothing() -> None:
    rig = BindRig(*nodes_of({"s/a": [2]}), levels=LEVELS)
    pod = a_pod("alone")
    rig.create(pod)
    assert await rig.call(pod, "a-0") == ""
    assert rig.binder.annotations == {"alone": {}}


async def test_two_that_come_late_at_once_get_two_ranks() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    await bind(rig, *[a_pod(f"w-{name}", gang="g", min_available=2) for name in "ab"])
    late = [a_pod(f"late-{name}", gang="g", min_available=2) for name in "ab"]
    rig.create(*late)
    calls = [rig.call(pod, "n1") for pod in late]
    await rig.settle()
    assert [await call for call in calls] == [""] * 2
    assert sorted(told(rig, RANK).values()) == ["0", "1", "2", "3"]
