"""How is the extender put together? The composition root: the only place that knows every class.

API server --watch--> Cluster --verbs: filter, prioritize, preempt, bind--> kube-scheduler
                         |
                         +------ cycle ------> nominations, releases, bindings, Events --> API server
"""

import asyncio
import gc
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import structlog
from aiohttp import web

from extender.apiserver import ApiServer, connect
from extender.config import GangExtenderConfiguration, ServerConfig
from extender.cycle import Cycle, Effects
from extender.effects.binding import Binder
from extender.effects.events import EventRecorder
from extender.effects.gates import Release
from extender.effects.node_lock import NodeLocks
from extender.effects.nomination import Nomination
from extender.effects.pod_patches import PodPatches
from extender.effects.podgroup_status import PodGroupStatusWriter
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.state.expiry import Deadlines
from extender.state.planning import Planner
from extender.verbs.agreement import Agreement
from extender.verbs.barrier import Barrier
from extender.verbs.bind import Bind, Posting
from extender.verbs.callers import only
from extender.verbs.certificates import Certificates
from extender.verbs.filter import Filter
from extender.verbs.health import Health
from extender.verbs.preempt import Preempt
from extender.verbs.server import KEEP_ALIVE_S, Answers, Verbs, make_app
from extender.verbs.turns import Turns
from extender.watch.reflector import Reflector, Source
from extender.watch.sources import (
    JOB_VERSIONS,
    POD_GROUP_PATHS,
    devices,
    disruption_budgets,
    jobs,
    namespaces,
    nodes,
    pod_groups,
    pods,
    volume_claims,
    volumes,
)

SHUTDOWN_S = 5.0
"""For answers under way, among them those of held bind calls: kube-scheduler tries them again."""

BACKLOG = 1024
"""All members of a gang come to bind at once, with a connection each."""

_log = structlog.get_logger()


async def serve(config: GangExtenderConfiguration) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises KubeconfigError, CertificateError and OSError (a port is taken) at the start.
    """
    async with connected(config.kubeconfig) as api:
        await App(config, api).run()


@asynccontextmanager
async def connected(kubeconfig: str) -> AsyncIterator[ApiServer]:
    """Connect to the API server, and disconnect at the end."""
    api = await connect(kubeconfig)
    try:
        yield api
    finally:
        await api.close()


class App:
    """The extender of one configuration on one API server."""

    def __init__(self, config: GangExtenderConfiguration, api: ApiServer) -> None:
        self._config = config
        self._metrics = Metrics(version("gang-extender"))
        self._cluster = Cluster(
            config.scheduler_names, derive_gangs=config.gangs.from_jobs, levels=config.topology.levels_of_network
        )
        gangs = config.gangs
        deadlines = Deadlines(gangs.gathering_seconds, gangs.binding_seconds, gangs.patience_seconds)
        self._planner = Planner(self._cluster, deadlines)
        self._barrier = Barrier(self._cluster, self._metrics)
        self._turns = Turns(self._cluster, self._metrics)
        self._watches: list[Reflector[Any]] = [
            Reflector(source, api, self._metrics) for source in _sources(self._cluster, config)
        ]
        watches = {watch.source.resource: watch for watch in self._watches}
        self._health = Health(self._cluster, watches, self._metrics)
        self._nominations = PodPatches(api, self._metrics.nominations, self._is_current)
        self._releases = PodPatches(api, self._metrics.releases, self._is_wanted)
        self._recorder = EventRecorder(api, self._metrics, socket.gethostname(), time.time)
        self._statuses = PodGroupStatusWriter(api, self._metrics, POD_GROUP_PATHS)
        self._cycle = Cycle(
            self._cluster,
            self._planner,
            self._barrier,
            self._turns,
            Effects(
                nominate=self._nominations.submit,
                release=self._releases.submit,
                announce=self._recorder.announce,
                report=self._statuses.submit,
            ),
        )
        locks = NodeLocks(api, self._turns.lock_use, time.time)
        posting = Posting(Binder(api, self._metrics), locks, time.time, gangs.binding_seconds)
        bind = Bind(self._cluster, self._planner, self._barrier, self._turns, posting)
        answers = Answers(
            filter=Filter(self._cluster, self._planner, config.percentage_of_nodes_to_score),
            preempt=Preempt(self._cluster, self._planner),
            bind=bind,
            agreement=Agreement(self._cluster, self._metrics),
        )
        self._certificates = Certificates(config.server.tls, self._metrics) if config.server.tls else None
        self._verbs = Verbs(self._cluster, answers, self._metrics, self._health.is_ready)

    async def run(self) -> None:
        """Serve until told to stop."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_number, stop.set)
        async with self._serving(self._config.server), asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(job)
                for job in (
                    *(watch.run() for watch in self._watches),
                    self._nominations.run(),
                    self._releases.run(),
                    self._recorder.run(),
                    self._statuses.run(),
                    self._cycle.run(self._health.is_ready, self._begin),
                    *([self._certificates.run()] if self._certificates else []),
                )
            ]
            await stop.wait()
            _log.info("stopping")
            self._barrier.refuse_all()
            self._turns.refuse_all()
            for task in running:
                task.cancel()

    def _begin(self) -> None:
        """Take up what the process before this one has left, now that everything is listed.

        Pods that it let through and that are on their way are looked out for as long as bind calls are waited for.
        """
        gc.collect()
        gc.freeze()  # a full collection takes 50 ms with 50,000 pods
        is_waiting, undecided = self._cluster.gangs.is_waiting, self._cluster.undecided
        undecided.inherit(pod.uid for pod in self._cluster.pods.values() if is_waiting(pod) and not pod.held)
        asyncio.get_running_loop().call_later(self._config.gangs.binding_seconds, undecided.disinherit)

    @asynccontextmanager
    async def _serving(self, server: ServerConfig) -> AsyncIterator[None]:
        verbs = make_app(self._verbs, self._health.routes(), self._metrics, server.max_body_mib * 2**20)
        context = None
        if server.tls and self._certificates:
            context = self._certificates.context
            verbs.middlewares.insert(0, only(server.tls.client_names, self._certificates.refuse))
        probes = web.Application()
        probes.add_routes(self._health.routes())
        async with (
            _listening(verbs, server.address, server.port, context),
            _listening(probes, server.probe_address, server.probe_port),
        ):
            tls = server.tls is not None
            _log.info("serving", verbs=f"{server.address}:{server.port}", tls=tls, probes=server.probe_port)
            yield

    def _is_current(self, nomination: Nomination) -> bool:
        pod = self._cluster.pods.get(nomination.uid)
        return pod is not None and self._cluster.node_to_try(pod) == (nomination.node or pod.nominated_node) != ""

    def _is_wanted(self, release: Release) -> bool:
        return self._cycle.releases.is_wanted(release.uid)


def _sources(cluster: Cluster, config: GangExtenderConfiguration) -> list[Source[Any]]:
    kinds = JOB_VERSIONS if config.gangs.from_jobs else ()
    policy = config.gpus.policy_of_cards
    return [
        nodes(cluster, policy),
        devices(cluster, policy),
        pods(cluster),
        namespaces(cluster),
        disruption_budgets(cluster),
        volume_claims(cluster),
        volumes(cluster),
        *(pod_groups(cluster, api) for api in POD_GROUP_PATHS),
        *(jobs(cluster, kind) for kind in kinds),
    ]


@asynccontextmanager
async def _listening(
    app: web.Application, address: str, port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=KEEP_ALIVE_S, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port, ssl_context=context, backlog=BACKLOG).start()
        yield
    finally:
        await runner.cleanup()
