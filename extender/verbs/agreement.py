"""Does our model of kube-scheduler's filters still agree with it, here and now?

Each filter call names nodes that passed kube-scheduler's own plugins, so every call is a test of our model. What it
counts includes moments when one of the two knew of a pod a little earlier; what goes on counting is a fault of the
model.
"""

from collections.abc import Iterable, Sequence

import structlog

from extender.decide import sample
from extender.decide.fit import fit_node
from extender.decide.node_reasons import PLUGINS
from extender.decide.trial import Trial
from extender.model.claim import BadGangClaim
from extender.model.node import NodeRoom
from extender.model.pod import Pod
from extender.model.verdict import Reason
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.state.reservations import Stage
from extender.wire.extender_v1 import ExtenderArgs

COMPARED_NODES = 2
"""Of a larger cluster, so many nodes per call, the others in later ones: no answer takes much longer for it."""

COMPARED_CALLS = 10
"""Where pods mean something to one another all nodes have to be looked at for it, so that one call in so many is
compared, on as many more nodes."""

WE_REFUSE = "we_refuse"
"""kube-scheduler offers a node that the model does not let the pod go to."""

WE_ALLOW = "we_allow"
"""kube-scheduler does not offer a node that the model would; by which plugin is not told."""

_log = structlog.get_logger()


class Agreement:
    """Compares each call with the model and counts where they differ."""

    def __init__(self, cluster: Cluster, metrics: Metrics) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._calls = -1
        self._next = 0
        self._logged: set[tuple[str, str]] = set()

    def compare(self, args: ExtenderArgs) -> None:
        """Compare on some nodes; call it before the call changes what is reserved."""
        self._calls += 1
        pod = self._cluster.pods.get(args.pod.uid, args.pod)
        if isinstance(pod.gang, BadGangClaim):
            return
        if pod.shape.relations is None and not self._cluster.repels:
            self._compare(pod, self._sample(args, pod, COMPARED_NODES), None)
            return
        has_turn = self._calls % COMPARED_CALLS == 0 or self._cluster.node_count <= sample.LEAST
        if has_turn and (pod.shape.relations is None or not self._uncertain_nodes(pod)):
            some = self._sample(args, pod, COMPARED_CALLS * COMPARED_NODES)
            self._compare(pod, some, Trial(self._cluster.snapshot()))

    def _sample(self, args: ExtenderArgs, pod: Pod, count: int) -> list[tuple[NodeRoom, bool]]:
        """Return nodes to compare on, each with whether it was offered; some are only where all that pass are."""
        room_of, names = self._cluster.room_of, args.node_names
        if self._cluster.node_count > sample.LEAST or args.pod.nominated_node in names or pod.shape.is_provisional:
            first = self._next % max(1, len(names))
            self._next += count
            return [(room, True) for name in names[first : first + count] if (room := room_of(name)) is not None]
        return [(room, name in names) for name, room in self._cluster.snapshot().rooms.items()]

    def _compare(self, pod: Pod, nodes: Iterable[tuple[NodeRoom, bool]], trial: Trial | None) -> None:
        """Compare on these nodes; with a `trial` where it is for other pods, too, to let the pod in."""
        differing = []
        for room, offered in nodes:
            self._metrics.model_verdicts.inc()
            reasons = trial.fit(pod.occupant, room.node.name) if trial else fit_node(pod.shape, room)
            if offered == bool(reasons):
                differing.append((room.node.name, reasons, offered))
        uncertain = self._uncertain_nodes(pod) if differing else ()
        for name, reasons, offered in differing:
            if name not in uncertain:
                self._disagree(pod, name, reasons, offered=offered)

    def _uncertain_nodes(self, pod: Pod) -> set[str]:
        """Return the nodes with room that kube-scheduler may not know of: only planned, or held for this pod."""
        planned = Stage.PLANNED
        return {
            slot.node
            for reservation in self._cluster.reservations
            for slot in reservation.slots
            if slot.stage is planned or slot.holder == pod.uid
        }

    def _disagree(self, pod: Pod, name: str, reasons: Sequence[Reason], *, offered: bool) -> None:
        if reasons and type(reasons[0]) not in PLUGINS:  # of cards it knows nothing
            return
        plugin, direction = (PLUGINS[type(reasons[0])], WE_REFUSE) if offered else ("unknown", WE_ALLOW)
        self._metrics.model_disagreements.labels(plugin, direction).inc()
        if (plugin, direction) not in self._logged:
            self._logged.add((plugin, direction))
            who = f"{pod.namespace}/{pod.name}"
            _log.warning("the model disagrees", plugin=plugin, direction=direction, pod=who, node=name)
