"""Is a gang whole again after a process was killed in the midst of its life?

One round: a gang comes, its life is stopped at a step, a second gang comes that wants the same room, and a process is
killed. When all is up again one of the two gangs is whole and the other has nothing; once the first is deleted, the
other becomes whole, so that no reservation is left; then nothing is held any more.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from typing import Literal, TypeVar

import yaml
from msgspec import Struct

from e2e.client import ApiError
from e2e.cluster import EXTENDER, GANG_SCHEDULER, Cluster, Object, start_cluster, wait_for
from e2e.components import DEDICATED_SCHEDULER
from e2e.faults.blows import Blow, fit_clock, right_clock, strike
from e2e.faults.checker import Bounds, Violation
from e2e.faults.crossing import Crossing, Fate, open_crossing
from e2e.faults.history import recorded
from e2e.faults.steps import Step
from e2e.processes import DeadlineExceededError, figures

T = TypeVar("T")

Course = Literal["fresh", "waiting", "held"]
"""How a gang's life begins: with room at once; turned away until room gets free; behind our gate, in hold mode."""

Rival = Literal["gang", "alone"]
"""Who wants the same room: a gang like the first one, or as many pods without a gang."""

MEMBERS = 2
"""The fewest of which one can be missing."""

RECOVERY_S = 120.0
"""Where the API server dies again and again, its clients, kube-scheduler and ours, come back after 30 s each."""

_NAME = "gang.scheduling.koordinator.sh/name"
_MIN_AVAILABLE = "gang.scheduling.koordinator.sh/min-available"
_BLOCKER = "blocker"
_BOUNDS = Bounds(partial_s=RECOVERY_S, stale_node_s=RECOVERY_S)
_SCHEDULER: Object = {"leaderElection": {"leaderElect": False}}  # else each death would cost a lease's time
_UNELECTED: Object = {"leaderElection": {"mode": "none"}}  # the extender of a kube-scheduler that nobody elects
_IMPATIENT_GANGS = {"gatheringSeconds": 3.0, "bindingSeconds": 3.0}
_POLL_S = 0.02
_REACH_S = 8.0
_OUTAGE_S = 30.0


class Round(Struct, frozen=True):
    """What to do: stop a gang's life at the step and kill the process."""

    step: Step
    target: str
    fate: Fate
    rival: Rival = "gang"
    blow: Blow = Blow()


class Outcome(Struct, frozen=True):
    """What became of it; `problems` is empty where all went well."""

    round: Round
    reached: bool
    problems: tuple[str, ...] = ()
    recovery_s: float = 0.0
    """From the kill until one gang was whole."""

    served_s: float = 0.0
    """From the kill until the process served again."""

    in_part_s: float = 0.0
    """How long a gang was in part without a break, at most, once the process served again."""

    was_in_part: bool = False
    """Whether a gang was in part when the process was killed."""

    trace: tuple[str, ...] = ()


class Ground:
    """A control plane with room for one gang, whose extender is behind the crossing."""

    def __init__(self, cluster: Cluster, crossing: Crossing) -> None:
        self.cluster = cluster
        self.crossing = crossing
        self.course: Course = "fresh"
        self.namespace = cluster.namespace("kills")
        self._lives = 0

    def follow(self, course: Course) -> None:
        """Let lives take this course from now on."""
        if (course == "held") != (self.course == "held"):
            self.cluster.set_mode("hold" if course == "held" else "filter")
        self.course = course

    def expect(self, blow: Blow) -> None:
        """Make ready for such blows from now on: no time-out is longer than a pause, a clock that jumps is ours."""
        is_impatient = blow.kind == "pause"
        self.cluster.restart_gang_scheduler(_impatient_scheduler() if is_impatient else _SCHEDULER)
        if is_impatient:
            self.cluster.restart_extender(_IMPATIENT_GANGS)
        else:
            self.cluster.restart_extender(settings=_UNELECTED)
        if blow.kind == "jump":
            fit_clock(self.cluster)

    def list_steps(self) -> list[Step]:
        """Let a gang live undisturbed and return the steps of its life."""
        gang = self._next_gang("a")
        life = self.crossing.begin(frozenset(names(gang)), None)
        self._let_come(gang)
        self._wait_whole(gang)
        time.sleep(0.3)  # its last messages
        self.clear()
        return list(life.steps)

    def play(self, round_: Round) -> Outcome:
        """Play a round; whatever went wrong, the ground is empty afterwards."""
        gang, rival = self._next_gang("a"), self._next_gang("b")
        life = self.crossing.begin(frozenset(names(gang)), round_.step)
        try:
            self._let_come(gang)
            if not self.crossing.stopped.wait(_REACH_S):
                return Outcome(round_, reached=False, trace=tuple(map(str, life.steps)))
            for name in names(rival):
                self._create(member(rival, name) if round_.rival == "gang" else pod(name))
            return self._strike(round_, gang, rival)
        except DeadlineExceededError as error:
            return Outcome(round_, reached=True, problems=(str(error),), trace=tuple(map(str, life.steps)))
        finally:
            self.crossing.go_on()
            right_clock(self.cluster)
            self.clear()

    def clear(self) -> None:
        """Delete all pods, and wait until no room is held."""
        steadily(lambda: self.cluster.api.delete(f"{self.namespace.path}/pods", grace_period_s=0))
        wait_for(lambda: not steadily(self.namespace.pods), _OUTAGE_S, "all pods are gone")

    def _strike(self, round_: Round, gang: str, rival: str) -> Outcome:
        was_in_part = 0 < len(self._bound()[gang]) < MEMBERS
        trace = tuple(map(str, self.crossing.life.steps))
        with ExitStack() as watching:
            is_watched = round_.target in (EXTENDER, GANG_SCHEDULER)
            history = watching.enter_context(recorded(self.cluster, _BOUNDS)) if is_watched else None
            began_s = time.monotonic()
            strike(self.cluster, self.crossing, round_.target, round_.blow, round_.fate)
            served_s = time.monotonic()
            if history is None:  # the end of the API server, or of its etcd, ends the checker's watches
                history = watching.enter_context(recorded(self.cluster, _BOUNDS))
            problems, whole_s, in_part_s = self._recover(gang, rival, rival_is_gang=round_.rival == "gang")
            violations = history.judged().violations
        return Outcome(
            round_,
            reached=True,
            problems=(*problems, *(f"{each.invariant}: {each.text}" for each in violations if _is_judged(each))),
            recovery_s=whole_s - began_s,
            served_s=served_s - began_s,
            in_part_s=in_part_s,
            was_in_part=was_in_part,
            trace=trace,
        )

    def _recover(self, gang: str, rival: str, *, rival_is_gang: bool) -> tuple[list[str], float, float]:
        """Wait until one of both is whole; return what is wrong, when that was, and how long one was in part."""
        began_s = time.monotonic()
        in_part_since_s: float | None = None
        longest_s = 0.0
        while True:
            sizes = {each: len(bound) for each, bound in self._bound().items()}
            now_s = time.monotonic()
            if in_part_since_s is not None:
                longest_s = max(longest_s, now_s - in_part_since_s)
            is_in_part = 0 < sizes[gang] < MEMBERS or (rival_is_gang and 0 < sizes[rival] < MEMBERS)
            in_part_since_s = (in_part_since_s or now_s) if is_in_part else None
            if all(sizes.values()):
                return [f"both have room, which is for one: {sizes}"], now_s, longest_s
            if MEMBERS in sizes.values():
                first, second = sorted((gang, rival), key=lambda each: -sizes[each])
                return list(self._judge(first, second)), now_s, longest_s
            if now_s - began_s > RECOVERY_S:
                return [f"none is whole after {RECOVERY_S:g} s: {sizes}"], now_s, longest_s
            time.sleep(_POLL_S)

    def _judge(self, first: str, second: str) -> Iterator[str]:
        """Say what is wrong with one gang that is whole and another that comes after it."""
        for name in names(first):
            steadily(lambda name=name: self.namespace.delete_pod(name))  # type: ignore[misc]
        try:
            self._wait_whole(second)
        except DeadlineExceededError as error:
            yield f"the second gang is not whole once the first is gone: {error}"
        for each in steadily(self.namespace.pods):
            if each["spec"].get("schedulingGates"):
                yield f"{each['metadata']['name']} still has a gate"
        try:
            wait_for(lambda: self._reservations() == 0, 10.0, "no room is held when all are bound")
        except DeadlineExceededError as error:
            yield str(error)

    def _reservations(self) -> float:
        return figures(f"{self.cluster.probe_url}/metrics").get("gang_extender_reservations", -1.0)

    def _bound(self) -> dict[str, set[str]]:
        """Return the names of the bound pods of the gang and of its rival."""
        bound = {f"{which}{self._lives}": set[str]() for which in "ab"}
        for each in steadily(self.namespace.pods):
            gang, _, index = each["metadata"]["name"].partition("-")
            if index and each["spec"].get("nodeName"):
                bound[gang].add(each["metadata"]["name"])
        return bound

    def _wait_whole(self, gang: str) -> None:
        end_s = time.monotonic() + RECOVERY_S
        while len(self._bound()[gang]) < MEMBERS:
            if time.monotonic() > end_s:
                raise DeadlineExceededError(f"gang {gang} has {self._bound()} after {RECOVERY_S:g} s")
            time.sleep(_POLL_S)

    def _next_gang(self, which: str) -> str:
        self._lives += which == "a"
        return f"{which}{self._lives}"

    def _let_come(self, gang: str) -> None:
        """Create the members, each once the one before it was answered: so every life has the same steps."""
        waits = self.course == "waiting"
        if waits:
            self._create(pod(_BLOCKER))
            wait_for(lambda: steadily(self._blocks), RECOVERY_S, "the pod that keeps the gang waiting is bound")
        for position, name in enumerate(names(gang), start=1):
            self._create(member(gang, name))
            if self.course != "held" and (waits or position < MEMBERS):
                self._wait_until_answered(position)
        if waits:
            steadily(lambda: self.namespace.delete_pod(_BLOCKER))

    def _blocks(self) -> bool:
        blocker = self.namespace.pod(_BLOCKER)
        return blocker is not None and bool(blocker["spec"].get("nodeName"))

    def _wait_until_answered(self, count: int) -> None:
        end_s = time.monotonic() + _REACH_S
        crossing = self.crossing
        while crossing.life.count("filter", "answer") < count and not crossing.stopped.is_set():
            if time.monotonic() > end_s:
                raise DeadlineExceededError(f"no {count}th filter answer")
            time.sleep(_POLL_S)
        time.sleep(0.05)  # until the pod is told that it is turned away, which the extender hears of

    def _create(self, made: Object) -> None:
        steadily(lambda: self.cluster.api.create(f"{self.namespace.path}/pods", made))


def _is_judged(violation: Violation) -> bool:
    """Leave out whose node was for them: the history begins in the midst of a life, with nodes as they are by then."""
    return violation.invariant != "a pod against its constraints"


def names(gang: str) -> list[str]:
    """Return the names of a gang's pods."""
    return [f"{gang}-{index}" for index in range(MEMBERS)]


def member(gang: str, name: str) -> Object:
    """Return a pod of the gang."""
    made = pod(name)
    made["metadata"]["annotations"] = {_NAME: gang, _MIN_AVAILABLE: str(MEMBERS)}
    return made


def pod(name: str) -> Object:
    """Return a pod that needs a GPU of its own."""
    gpu = {"nvidia.com/gpu": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "gang-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example.com/train", "resources": {"limits": gpu}}],
        },
    }


def steadily(call: Callable[[], T]) -> T:
    """Call the API server until it answers; it may be on its way back."""
    end_s = time.monotonic() + _OUTAGE_S
    while True:
        try:
            return call()
        except (OSError, HTTPException):
            if time.monotonic() > end_s:
                raise
        except ApiError as error:
            if error.status < 500 or time.monotonic() > end_s:
                raise
        time.sleep(_POLL_S)


@contextmanager
def open_ground() -> Iterator[Ground]:
    """Start a control plane with a node for each member of one gang, and the crossing before its extender."""
    with (
        start_cluster(progress=_hush) as cluster,
        open_crossing(cluster.api_url, cluster.extender_url, cluster.tls) as crossing,
    ):
        cluster.reroute(f"http://127.0.0.1:{crossing.api_port}", f"http://127.0.0.1:{crossing.extender_port}")
        for index in range(MEMBERS):
            cluster.add_node(f"gpu-{index}", gpus=1)
        yield Ground(cluster, crossing)


def _impatient_scheduler() -> Object:
    """Return settings with a lease and time-outs that are over within seconds."""
    config: Object = yaml.safe_load(DEDICATED_SCHEDULER.read_text(encoding="utf-8"))
    for entry in config["extenders"]:
        entry["httpTimeout"] = "5s" if "bindVerb" in entry else "1s"
    lease = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}
    settings = {"extenders": config["extenders"], "leaderElection": config["leaderElection"] | lease}
    return settings | {"podMaxBackoffSeconds": 1}  # as in earnest, far below gangs.bindingSeconds


def _hush(_line: str) -> None:
    """Say nothing of a start."""
