"""Does our model of kube-scheduler's filters still agree with it, here and now?

Each filter call names nodes that passed kube-scheduler's own plugins, so every call is a test of our model. What it
counts includes moments when one of the two knew of a pod a little earlier; what goes on counting is a fault of the
model.
"""

import structlog

from extender.decide import sample
from extender.decide.node_reasons import PLUGINS
from extender.decide.trial import Trial
from extender.model.claim import BadGangClaim
from extender.model.pod import Pod
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.state.reservations import Stage
from extender.wire.extender_v1 import ExtenderArgs

COMPARED_NODES = 20
"""Of a larger cluster, so many nodes per call that is compared."""

COMPARED_CALLS = 10
"""Of a larger cluster, one call in so many is compared, which costs as much as the rest of its answer."""

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
        if self._calls % COMPARED_CALLS and self._cluster.node_count > sample.LEAST:
            return
        pod = self._cluster.pods.get(args.pod.uid, args.pod)
        uncertain = self._uncertain_nodes(pod)
        if (uncertain and pod.shape.relations is not None) or isinstance(pod.gang, BadGangClaim):
            return
        trial = Trial(self._cluster.snapshot())
        for name, offered in self._sample(args, pod):
            if name not in uncertain:
                self._compare_on(name, pod, trial, offered=offered)

    def _sample(self, args: ExtenderArgs, pod: Pod) -> list[tuple[str, bool]]:
        """Return nodes to compare on, each with whether it was offered; some are only where all that pass are."""
        rooms = self._cluster.snapshot().rooms
        first = self._next % max(1, len(args.node_names))
        self._next += COMPARED_NODES
        names = [name for name in args.node_names[first : first + COMPARED_NODES] if name in rooms]
        if len(rooms) > sample.LEAST or args.pod.nominated_node in args.node_names or pod.shape.is_provisional:
            return [(name, True) for name in names]
        return [(name, name in args.node_names) for name in rooms]

    def _uncertain_nodes(self, pod: Pod) -> set[str]:
        """Return the nodes with room that kube-scheduler may not know of: only planned, or held for this pod."""
        planned = Stage.PLANNED
        return {
            slot.node
            for reservation in self._cluster.reservations
            for slot in reservation.slots
            if slot.stage is planned or slot.holder == pod.uid
        }

    def _compare_on(self, name: str, pod: Pod, trial: Trial, *, offered: bool) -> None:
        self._metrics.model_verdicts.inc()
        reasons = trial.fit(pod.occupant, name)
        if offered == (not reasons) or (reasons and type(reasons[0]) not in PLUGINS):  # of cards it knows nothing
            return
        plugin, direction = (PLUGINS[type(reasons[0])], WE_REFUSE) if offered else ("unknown", WE_ALLOW)
        self._metrics.model_disagreements.labels(plugin, direction).inc()
        if (plugin, direction) not in self._logged:
            self._logged.add((plugin, direction))
            who = f"{pod.namespace}/{pod.name}"
            _log.warning("the model disagrees", plugin=plugin, direction=direction, pod=who, node=name)
