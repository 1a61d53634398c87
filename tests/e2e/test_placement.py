"""Where does a TFJob run? Beside where the stock kube-scheduler, which knows no gangs, puts the same job.

Both are the real kube-scheduler, and the job's pods are made by Kubeflow's own training operator. What both did is
printed at the end.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e import scenarios
from e2e.bench.report import Row, table
from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.nodes import make_node
from tests.e2e.pods import pod
from tests.manifests.files import scheduler_config

pytestmark = [pytest.mark.usefixtures("training_operator"), pytest.mark.timeout(120)]

OURS, STOCK = "gang-scheduler", "default-scheduler"
NO_SCORES = "gang-scheduler, no scores"
"""Ours, not asking the extender which node is best."""
DEADLINE_S = 20.0

Where = dict[str, list[str]]
"""By node: who is there, as `ps-0` and `worker-0`."""


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest) -> Iterator[list[Row]]:
    """Collect what both schedulers did, and print it at the end."""
    rows: list[Row] = []
    yield rows
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        request.config.get_terminal_writer().write(f"\n{table(rows)}\n" if rows else "", flush=True)


def test_a_job_that_fits_on_one_of_several_nodes_lands_whole_on_the_tightest_of_them(
    cluster: Cluster, namespace: Namespace, seen: list[Row]
) -> None:
    cluster.add_nodes(
        [
            make_node("all-but-the-ps", gpus=4, cpu="16"),  # a PS and a worker need 4 CPUs each
            make_node("cpu-only", cpu="64"),
            make_node("eight", gpus=8),
            make_node("four", gpus=4),
            make_node("six", gpus=6),
            make_node("two", gpus=2),
        ]
    )
    ours, stock = place_by_both(namespace, tf_job(namespace), seen)
    assert ours == {"four": ["ps-0", "worker-0", "worker-1", "worker-2", "worker-3"]}
    assert len(stock) > 1


def test_a_job_too_large_for_any_node_spans_the_fewest_with_its_last_workers_where_few_are(
    cluster: Cluster, namespace: Namespace, seen: list[Row]
) -> None:
    offers = {"a-one": 1, "b-two": 2, "c-one": 1, "d-four": 4, "e-two": 2, "f-none": 0}
    cluster.add_nodes([make_node(name, gpus) for name, gpus in offers.items()])
    ours, stock = place_by_both(namespace, tf_job(namespace, workers=7), seen)
    assert {offers[node]: names for node, names in ours.items()} == {
        4: ["ps-0", "worker-0", "worker-1", "worker-2", "worker-3"],
        2: ["worker-4", "worker-5"],
        1: ["worker-6"],
    }
    assert len(stock) > len(ours)


def test_a_job_that_needs_no_gpu_stays_off_a_node_with_gpus_that_takes_it_whole(
    cluster: Cluster, namespace: Namespace, seen: list[Row]
) -> None:
    cluster.add_nodes([make_node("cpu-0", cpu="12"), make_node("cpu-1", cpu="12"), make_node("gpus", gpus=8, cpu="64")])
    ours, stock = place_by_both(namespace, tf_job(namespace, gpus=0), seen)
    assert set(ours) == {"cpu-0", "cpu-1"}
    assert "gpus" in stock


@pytest.mark.parametrize(("role", "name"), [("Worker", "worker-4"), ("PS", "ps-1")])
def test_who_is_added_later_lands_beside_the_parameter_server_because_of_our_scores(
    cluster: Cluster, namespace: Namespace, seen: list[Row], role: str, name: str
) -> None:
    """Three nodes are offered: the PS's, which is the fullest, another worker's, and an empty one."""
    run_on_two_nodes(cluster, namespace)
    cluster.add_node("empty", gpus=8, cpu="64")
    scored = add_one(namespace, role, name)
    take_away(namespace, role, name)
    with kube_scheduler_without_scores(cluster):
        unscored = add_one(namespace, role, name)
    seen.append(row(f"{name} added", OURS, {scored: [name]}))
    seen.append(row(f"{name} added", NO_SCORES, {unscored: [name]}))
    assert (scored, unscored) == ("home", "empty")


def test_once_the_parameter_servers_node_is_full_who_is_added_lands_beside_a_worker(
    cluster: Cluster, namespace: Namespace
) -> None:
    run_on_two_nodes(cluster, namespace)
    cluster.add_node("empty", gpus=8, cpu="64")
    assert add_one(namespace, "Worker", "worker-4") == "home"
    assert add_one(namespace, "Worker", "worker-5") == "second"


def test_a_pod_that_needs_no_gpu_stays_off_the_nodes_with_gpus_because_of_our_scores(
    cluster: Cluster, namespace: Namespace, seen: list[Row]
) -> None:
    cluster.add_nodes([make_node("gpus", gpus=8, cpu="64"), make_node("nearly-full", cpu="8")])
    namespace.apply(pod_of_cpus("filler", "6", node="nearly-full"), pod_of_cpus("scored", "1"))
    scored = node_of(namespace, "scored")
    with kube_scheduler_without_scores(cluster):
        namespace.apply(pod_of_cpus("unscored", "1"))
        unscored = node_of(namespace, "unscored")
    seen.append(row("one pod, no GPUs", OURS, {scored: ["it"]}))
    seen.append(row("one pod, no GPUs", NO_SCORES, {unscored: ["it"]}))
    assert (scored, unscored) == ("nearly-full", "gpus")


def place_by_both(namespace: Namespace, job: Object, seen: list[Row]) -> tuple[Where, Where]:
    """Return where the job's pods run, by our scheduler and then by the stock one on the same empty nodes."""
    both = []
    for scheduler in (OURS, STOCK):
        its_own = by(scheduler, job)
        place = run(namespace, its_own)
        workers = job["spec"]["tfReplicaSpecs"]["Worker"]
        what = f"{workers['replicas']} workers" + ("" if gpus_of(workers) else ", no GPUs")
        seen.append(row(f"1 PS, {what}", scheduler, place))
        both.append(place)
        delete(namespace, its_own)
    return both[0], both[1]


def delete(namespace: Namespace, job: Object) -> None:
    """Delete a job and its pods, which the garbage collector may take half a minute to do after the kind is new."""
    api = namespace.cluster.api
    api.delete(api.path_of(job))

    def is_gone() -> bool:
        api.delete(f"{namespace.path}/pods", grace_period_s=0)
        return not namespace.pods()

    wait_for(is_gone, DEADLINE_S, "the job's pods are gone")


def run_on_two_nodes(cluster: Cluster, namespace: Namespace) -> None:
    """Run the PS with three workers on `home`, the fourth on `second`, and leave room for one more on each."""
    cluster.add_nodes([make_node("home", gpus=4, cpu="24"), make_node("second", gpus=2)])
    namespace.apply(pod("filler", node="home"))
    node_of(namespace, "filler")
    expected = {"home": ["ps-0", "worker-0", "worker-1", "worker-2"], "second": ["worker-3"]}
    assert run(namespace, tf_job(namespace)) == expected
    namespace.delete_pod("filler")
    wait_for(lambda: namespace.pod("filler") is None, DEADLINE_S, "the filler is gone")


def run(namespace: Namespace, job: Object) -> Where:
    """Apply the job, wait until all its pods run, and return where."""
    namespace.apply(job)
    size = sum(role["replicas"] for role in job["spec"]["tfReplicaSpecs"].values())
    selector = f"training.kubeflow.org/job-name={job['metadata']['name']}"
    wait_for(lambda: len(namespace.running(selector)) == size, DEADLINE_S, f"all {size} run")
    place: Where = {}
    for each in namespace.pods(selector):
        name = each["metadata"]["name"].removeprefix(f"{job['metadata']['name']}-")
        place.setdefault(each["spec"]["nodeName"], []).append(name)
    return {node: sorted(names) for node, names in sorted(place.items())}


def add_one(namespace: Namespace, role: str, name: str) -> str:
    """Let the job have one more of this role, and return the node where it runs."""
    scale(namespace, role, by=1)
    return node_of(namespace, f"job1-{name}")


def take_away(namespace: Namespace, role: str, name: str) -> None:
    scale(namespace, role, by=-1)
    wait_for(lambda: namespace.pod(f"job1-{name}") is None, DEADLINE_S, f"{name} is gone")


def scale(namespace: Namespace, role: str, *, by: int) -> None:
    path = namespace.cluster.api.path_of(scenarios.tf_job(namespace.name))
    replicas = namespace.cluster.api.get(path)["spec"]["tfReplicaSpecs"][role]["replicas"]
    namespace.cluster.api.patch(path, {"spec": {"tfReplicaSpecs": {role: {"replicas": replicas + by}}}})


def node_of(namespace: Namespace, name: str) -> str:
    """Return the node of this pod as soon as it runs."""
    wait_for(lambda: name in namespace.running(), DEADLINE_S, f"{name} runs")
    found = namespace.pod(name)
    assert found is not None
    node: str = found["spec"]["nodeName"]
    return node


@contextmanager
def kube_scheduler_without_scores(cluster: Cluster) -> Iterator[None]:
    """Let our kube-scheduler ask the extender for everything but scores, for a while."""
    extenders = scheduler_config("dedicated.yaml")["extenders"]
    for entry in extenders:
        entry.pop("prioritizeVerb", None)
    cluster.restart_gang_scheduler({"extenders": extenders})
    try:
        yield
    finally:
        cluster.restart_gang_scheduler()


def tf_job(namespace: Namespace, *, workers: int = 4, gpus: int = 1) -> Object:
    """Return a TFJob of one parameter server and so many workers with these GPUs each, all one gang."""
    job = scenarios.tf_job(namespace.name)
    roles = job["spec"]["tfReplicaSpecs"]
    roles["Worker"]["replicas"] = workers
    roles["Worker"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus
    for role in roles.values():
        role["template"]["metadata"]["annotations"]["gang.scheduling.koordinator.sh/min-available"] = str(workers + 1)
    return job


def by(scheduler: str, job: Object) -> Object:
    """Return the job for this scheduler, under a name of its own: the operator remembers names for a while."""
    job = copy.deepcopy(job)
    job["metadata"]["name"] = "job1" if scheduler == OURS else "stock"
    for role in job["spec"]["tfReplicaSpecs"].values():
        role["template"]["spec"]["schedulerName"] = scheduler
    return job


def gpus_of(role: Object) -> int:
    gpus: int = role["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    return gpus


def pod_of_cpus(name: str, cpu: str, node: str = "") -> Object:
    made = pod(name, gpus=0, node=node)
    made["spec"]["containers"][0]["resources"]["limits"] = {"cpu": cpu}
    return made


def row(job: str, scheduler: str, place: Where) -> Row:
    places = (f"{node}: {' '.join(names)}" for node, names in place.items())
    return {"job": job, "scheduler": scheduler, "nodes": len(place), "where": "; ".join(places)}
