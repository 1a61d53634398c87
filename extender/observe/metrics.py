"""Which figures do we expose on /metrics? Each is defined here, once, with bounded labels (never a pod or a node)."""

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

_VERB_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""From a filter call on one node (well below a millisecond) to a bind held as long as a gang may take to come."""


class Metrics:
    """All metrics, in a registry of their own."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry()
        self.build_info = Info("gang_extender_build", "What runs here.", registry=self.registry)
        self.build_info.info({"version": version, "python": platform.python_version()})
        self._count_calls()
        self._gauge_state()
        self._count_watches()
        self._count_writes()

    def _count_calls(self) -> None:
        self.verb_duration = Histogram(
            "gang_extender_verb_duration_seconds",
            "How long kube-scheduler waited for an answer.",
            ["verb", "result"],
            buckets=_VERB_BUCKETS_S,
            registry=self.registry,
        )
        self.repeat_filter_calls = self._counter(
            "repeat_filter_calls",
            "Filter calls for a pod that was answered before; above one a second, a rejection's text is flapping.",
        )
        self.model_verdicts = self._counter(
            "model_verdicts", "Nodes on which our model of kube-scheduler's filters was compared with what it offered."
        )
        self.model_disagreements = self._counter(
            "model_disagreements",
            "Of these, where they differed; a few come from one knowing of a pod earlier than the other.",
            "plugin",
            "direction",
        )
        self.tls_reloads = self._counter(
            "tls_reloads",
            "Looks at the TLS files that found new ones: taken, or refused (at each look until they are mended).",
            "result",
        )
        self.tls_refusals = self._counter(
            "tls_refusals", "Clients of the verbs that were sent away: their certificate, or that they had none."
        )

    def _gauge_state(self) -> None:
        self.leading = self._gauge("leading", "Whether it decides here: 1, or 0 while it stands by.")
        self.gangs = self._gauge("gangs", "Gangs by state.", "state")
        self.reservations = self._gauge("reservations", "Members that room is held for and that are not bound yet.")
        self.tasks = self._gauge("tasks", "What goes on at the same time: watches, writers, calls that wait.")
        self.held_binds = self._gauge("held_binds", "Bind calls that wait for their gang.")
        self.queued_binds = self._gauge(
            "queued_binds", "Bind calls that wait until a GPU device plugin has taken up the pod before them."
        )

    def _count_watches(self) -> None:
        self.watch_reconnects = self._counter(
            "watch_reconnects", "Ends of a list or watch, each followed by another try.", "resource", "reason"
        )
        self.watch_skipped_objects = self._counter(
            "watch_skipped_objects", "Listed or watched objects that could not be decoded.", "resource"
        )

    def _count_writes(self) -> None:
        self.bindings = self._counter("bindings", "Pods that were to be bound.", "result")
        self.nominations = self._counter("nominations", "Changes of status.nominatedNodeName.", "result")
        self.releases = self._counter("releases", "Pods whose scheduling gate was to be taken off.", "result")
        self.pod_group_statuses = self._counter("pod_group_statuses", "Changes of a PodGroup's status.", "result")
        self.events = self._counter("events", "Announcements to be written as Events.", "result")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"gang_extender_{name}_total", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"gang_extender_{name}", text, labels, registry=self.registry)
