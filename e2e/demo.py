"""Four workers that each need a GPU meet a cluster that has two: what does the gang extender do, and what does it say?

Every step is checked against the API server; `run` answers 0 only if all that is printed as expected was seen there.
"""

import time
from collections import Counter

from e2e import scenarios
from e2e.cluster import EXTENDER, Cluster, DeadlineExceededError, Namespace, start_cluster, wait_for
from e2e.elasticjob.launcher import start_elasticjob_operator
from e2e.nodes import read_nodes

NAMESPACE = "dlrover"
WORKERS = "elasticjob.dlrover/replica-type=worker"
EXPLAINED_POD = "torch-mnist-gang-edljob-worker-2"
EXPLANATION = (
    f'Gang "dlrover/torch-mnist-gang" gets rejected due to member Pod "{EXPLAINED_POD}" is unschedulable with reason '
    '"0/13 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint '
    "{node-role.kubernetes.io/control-plane: }, 8 node(s) didn't match Pod's node affinity/selector.\""
)

_DEADLINE_S = 30.0  # ten times what a step takes on two busy cores
_STEADY_S = 3.0  # longer than kube-scheduler's first back-off and the planner's next try

_INTRODUCTION = """\
Real: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, and the gang extender.
Stand-ins: the kubelets (nodes are fake, no container runs) and DLRover's operator and job master (they make the pods of
an ElasticJob as DLRover does).
"""


def run() -> int:
    """Show the scenario; return the process's exit status. Raises BuildError, StartError, ApiError."""
    print(_INTRODUCTION)
    started_s = time.monotonic()
    try:
        with start_cluster(progress=_say) as cluster:
            start_elasticjob_operator(cluster)
            status = _show(cluster)
    except KeyboardInterrupt:
        print("Ended before all of it was seen.")
        return 1
    print(f"The demo took {time.monotonic() - started_s:.0f} s.")
    return status


def _show(cluster: Cluster) -> int:
    _heading("Thirteen nodes: 3 of the control plane, 8 without GPUs, 2 with one GPU each")
    cluster.add_nodes(read_nodes(scenarios.FOLDER / "thirteen-nodes.yaml"))
    demo = cluster.namespace(NAMESPACE)
    try:
        _nothing_runs(demo)
        _two_run(demo)
        _all_run(demo)
    except DeadlineExceededError as error:
        _print_instead(demo, error)
        return 1
    print("\nAll of it was seen on the API server.")
    return 0


def _nothing_runs(demo: Namespace) -> None:
    _heading("A job of 4 workers, min-available 4: nothing runs, and the workers' events say why")
    demo.apply(scenarios.seed_job(NAMESPACE, min_available=4))
    _expect_workers(demo, {"Pending": 4})
    wait_for(lambda: EXPLANATION in demo.describe_pod(EXPLAINED_POD), _DEADLINE_S, f"the event {EXPLANATION}")
    _expect_steady(demo, {"Pending": 4})
    _print_step(demo)


def _two_run(demo: Namespace) -> None:
    _heading("The job made anew with min-available 2: exactly two run")
    demo.cluster.kubectl("delete", "elasticjob", "torch-mnist-gang", "-n", NAMESPACE)
    wait_for(lambda: not demo.pods(), _DEADLINE_S, "the job's pods go with it")
    demo.apply(scenarios.seed_job(NAMESPACE, min_available=2))
    _expect_workers(demo, {"Running": 2, "Pending": 2})
    _expect_steady(demo, {"Running": 2, "Pending": 2})
    _print_step(demo)


def _all_run(demo: Namespace) -> None:
    _heading("Two more nodes with a GPU join: all four run")
    demo.cluster.add_nodes(read_nodes(scenarios.FOLDER / "two-more-gpu-nodes.yaml"))
    _expect_workers(demo, {"Running": 4})
    _print_step(demo)


def _phases(demo: Namespace) -> Counter[str]:
    return Counter(pod["status"]["phase"] for pod in demo.pods(WORKERS))


def _expect_workers(demo: Namespace, phases: dict[str, int]) -> None:
    wait_for(lambda: _phases(demo) == phases, _DEADLINE_S, f"workers by phase: {phases}")


def _expect_steady(demo: Namespace, phases: dict[str, int]) -> None:
    until = time.monotonic() + _STEADY_S
    while time.monotonic() < until:
        if (seen := _phases(demo)) != phases:
            raise DeadlineExceededError(f"workers by phase stay {phases}; they became {dict(seen)}")
        time.sleep(0.2)


def _print_step(demo: Namespace) -> None:
    _print_kubectl(demo, "get", "pods")
    print(f"\n$ kubectl describe pod {EXPLAINED_POD} -n {NAMESPACE}\n[...]")
    _, heading, events = demo.describe_pod(EXPLAINED_POD).partition("Events:")
    print(f"{heading}{events}".rstrip())


def _print_kubectl(demo: Namespace, *args: str) -> None:
    print(f"\n$ kubectl {' '.join(args)} -n {NAMESPACE}")
    print(demo.cluster.kubectl(*args, "-n", NAMESPACE).rstrip())


def _print_instead(demo: Namespace, error: DeadlineExceededError) -> None:
    print(f"\nNot seen: {error}\nInstead:")
    _print_kubectl(demo, "get", "pods")
    _print_kubectl(demo, "get", "events")
    print(f"\nThe extender's last log lines:\n{demo.cluster.log_tail(EXTENDER)}")


def _heading(text: str) -> None:
    print(f"\n== {text} ==", flush=True)


def _say(line: str) -> None:
    print(f"   {line}", flush=True)
