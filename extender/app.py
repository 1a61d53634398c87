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
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, NamedTuple, NoReturn, assert_never

import structlog
from aiohttp import web

from extender.apiserver import ApiServer, connect
from extender.config import GangExtenderConfiguration, LeaderElectionConfig, ServerConfig
from extender.cycle import Cycle, Effects
from extender.decide.explain import NOT_SYNCED, STANDING_BY, STOPPING
from extender.effects.binding import LAST_LOOK_S, Binder
from extender.effects.events import EventRecorder
from extender.effects.fence import Fence
from extender.effects.gates import Release
from extender.effects.lease import AlwaysLeads, Lead, Lease, OwnLease
from extender.effects.node_lock import NodeLocks
from extender.effects.nomination import Nomination
from extender.effects.pod_patches import PodPatches
from extender.effects.podgroup_status import PodGroupStatusWriter
from extender.model.pod_group import StatusReport
from extender.observe.metrics import Metrics
from extender.state.beginning import begin, let_go_of_notes
from extender.state.cluster import Cluster
from extender.state.expiry import Deadlines
from extender.state.leadership import Leadership
from extender.state.planning import Planner
from extender.verbs.agreement import Agreement
from extender.verbs.barrier import Barrier
from extender.verbs.bind import POSTING_S, Bind, Posting
from extender.verbs.callers import only
from extender.verbs.certificates import Certificates
from extender.verbs.filter import Filter
from extender.verbs.health import Health
from extender.verbs.preempt import Preempt
from extender.verbs.server import KEEP_ALIVE_S, Answers, Verbs, make_app
from extender.verbs.turns import Turns
from extender.watch.fresh_view import is_fresh_view
from extender.watch.reflector import Reflector, Source
from extender.watch.sources import (
    JOB_VERSIONS,
    POD_GROUP_PATHS,
    devices,
    disruption_budgets,
    jobs,
    leases,
    namespaces,
    nodes,
    pod_groups,
    pods,
    volume_claims,
    volumes,
)

DRAIN_S = POSTING_S + LAST_LOOK_S + 1.0
"""For Bindings that are being posted when we are told to stop: a gang that goes through the barrier goes whole."""

NEWS_S = 1.0
"""For what is still to be written then: that a gang was placed is told by nobody else."""

SHUTDOWN_S = 0.5
"""For answers that are on their way by then."""

IDLE_S = 1.0
"""How often who stands by lets go of what has piled up."""

SYNC_POLL_S = 0.02
"""How often who leads looks whether the first lists are in."""

BACKLOG = 1024
"""All members of a gang come to bind at once, with a connection each."""

_log = structlog.get_logger()


async def serve(config: GangExtenderConfiguration) -> None:
    """Serve until SIGINT or SIGTERM.

    Who has led and does so no longer begins anew with an empty state: nothing of what was decided before holds. Raises
    KubeconfigError, CertificateError and OSError (a port is taken) at the start.
    """
    stop = _told_to_stop()
    metrics = Metrics(version("gang-extender"))
    async with connected(config.kubeconfig) as api:
        election = _election(config.leader_election, api, metrics)
        while not stop.is_set():
            await App(config, api, metrics, election).run(stop)
            gc.unfreeze()
            gc.collect()
        await election.give_up()


def _told_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    return stop


@asynccontextmanager
async def connected(kubeconfig: str) -> AsyncIterator[ApiServer]:
    """Connect to the API server, and disconnect at the end."""
    api = await connect(kubeconfig)
    try:
        yield api
    finally:
        await api.close()


class Election(NamedTuple):
    """Who leads, what must run for that to be known, and what is done at the end."""

    lead: Lead
    jobs: Callable[[], list[Coroutine[Any, Any, NoReturn]]]
    give_up: Callable[[], Coroutine[Any, Any, None]]


def _election(config: LeaderElectionConfig, api: ApiServer, metrics: Metrics) -> Election:
    host = socket.gethostname()  # a pod's containers share it, and kube-scheduler's identity begins with it
    lease: Lease
    match config.mode:
        case "none":
            alone = AlwaysLeads()
            return Election(alone, list, alone.give_up)
        case "sidecar":
            lead = Lead(Leadership(lambda holder: holder.rpartition("_")[0] == host))
            lease = Lease(api, config.resource_namespace, config.resource_name, lead)
        case "service":
            identity = f"{host}_{uuid.uuid4()}"
            lead = Lead(Leadership(lambda holder: holder == identity))
            seconds = config.lease_duration_seconds
            lease = OwnLease(api, config.resource_namespace, config.resource_name, lead, identity, seconds)
        case never:
            assert_never(never)
    watch = Reflector(leases(lease.collection, lease.name, lease.news.set), api, metrics)
    return Election(lead, lambda: [watch.run(), lease.run()], lease.give_up)


class App:
    """The extender of one configuration on one API server, until it has led and leads no longer, or is to stop."""

    def __init__(self, config: GangExtenderConfiguration, api: ApiServer, metrics: Metrics, election: Election) -> None:
        self._config = config
        self._api = api
        self._metrics = metrics
        self._election = election
        self._lead = lead = election.lead
        self._term = ""
        """In which we decide; empty while we stand by."""
        self._is_stopping = False
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
        stands_by_ready = config.leader_election.mode == "sidecar"
        self._health = Health(self._cluster, watches, metrics, str if stands_by_ready else self._why_not)
        fenced = Fence(api, lambda: lead.until(self._is_leading))
        self._nominations = PodPatches(fenced, self._metrics.nominations, self._is_current)
        self._releases = PodPatches(fenced, self._metrics.releases, self._is_wanted)
        self._recorder = EventRecorder(fenced, self._metrics, socket.gethostname(), time.time)
        self._statuses = PodGroupStatusWriter(fenced, self._metrics, POD_GROUP_PATHS, self._is_last)
        self._cycle = Cycle(self._cluster, self._planner, self._barrier, self._turns, self._effects())
        locks = NodeLocks(fenced, self._turns.lock_use, time.time)
        posting = Posting(Binder(fenced, self._metrics), locks, time.time, gangs.binding_seconds)
        self._bind = Bind(self._cluster, self._planner, self._barrier, self._turns, posting)
        self._certificates = Certificates(config.server.tls, self._metrics) if config.server.tls else None
        self._verbs = Verbs(self._cluster, self._answers(), self._metrics, self._why_not)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop, or until we have led and do so no longer."""
        async with self._serving(self._config.server), asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(job)
                for job in (
                    *(watch.run() for watch in self._watches),
                    self._nominations.run(),
                    self._releases.run(),
                    self._recorder.run(),
                    self._statuses.run(),
                    *self._election.jobs(),
                    *([self._certificates.run()] if self._certificates else []),
                )
            ]
            leading, stopping = (tasks.create_task(job) for job in (self._lead_a_term(), stop.wait()))
            await asyncio.wait((leading, stopping), return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                await self._drain()
            self._metrics.leading.set(0)
            self._refuse_all()
            for task in (*running, leading, stopping):
                task.cancel()

    async def _lead_a_term(self) -> None:
        """Decide from when we lead until we do not."""
        term = await self._stand_by()
        if not await is_fresh_view(self._api, self._cluster, self._config.scheduler_names):
            _log.warning("our view of the cluster is too old to lead: listing it anew")
            return
        if self._lead.term == term:
            self._begin(term)
            async with asyncio.TaskGroup() as tasks:
                cycles = tasks.create_task(self._cycle.run(lambda: not self._why_not()))
                await self._lead.until(lambda: self._lead.term != term)
                cycles.cancel()
            _log.warning("we lead no longer: beginning anew")

    async def _stand_by(self) -> str:
        """Wait until everything is listed and we lead; return our term."""
        while not (self._lead.is_sure and self._health.is_ready()):
            let_go_of_notes(self._cluster)
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._lead.until(lambda: self._lead.is_sure)
            if self._lead.is_sure:
                await asyncio.sleep(SYNC_POLL_S)
        return self._lead.term

    def _begin(self, term: str) -> None:
        """Take up what the one who led before has left, now that everything is listed.

        Pods that were let through and that are on their way are looked out for as long as bind calls are waited for.
        """
        gc.collect()
        gc.freeze()  # a full collection takes 50 ms with 50,000 pods
        begin(self._cluster)
        binding_s = self._config.gangs.binding_seconds
        asyncio.get_running_loop().call_later(binding_s, self._cluster.undecided.disinherit)
        self._term = term
        self._metrics.leading.set(1)
        _log.info("leading", term=term)

    def _effects(self) -> Effects:
        return Effects(
            nominate=self._nominations.submit,
            release=self._releases.submit,
            announce=self._recorder.announce,
            report=self._statuses.submit,
        )

    def _answers(self) -> Answers:
        return Answers(
            filter=Filter(self._cluster, self._planner, self._config.percentage_of_nodes_to_score),
            preempt=Preempt(self._cluster, self._planner),
            bind=self._bind,
            agreement=Agreement(self._cluster, self._metrics),
        )

    def _is_leading(self) -> bool:
        return bool(self._term) and self._lead.is_sure and self._lead.term == self._term

    def _why_not(self) -> str:
        """Say why nothing is decided here now; empty when it is."""
        if self._is_stopping:
            return STOPPING
        if not self._health.is_ready():
            return NOT_SYNCED
        return "" if self._is_leading() else STANDING_BY

    async def _drain(self) -> None:
        """Take no more calls; let what is being posted come to its end, and be told."""
        _log.info("stopping")
        self._is_stopping = True
        self._refuse_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                while self._bind.under_way:  # noqa: ASYNC110 - each ends with an answer of the API server
                    await asyncio.sleep(0.01)
        with suppress(TimeoutError):
            async with asyncio.timeout(NEWS_S):
                await self._recorder.until_written()

    def _refuse_all(self) -> None:
        self._barrier.refuse_all()
        self._turns.refuse_all()

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
            _listening("server.address and port", verbs, server.address, server.port, context),
            _listening("server.probeAddress and probePort", probes, server.probe_address, server.probe_port),
        ):
            tls = server.tls is not None
            _log.info("serving", verbs=f"{server.address}:{server.port}", tls=tls, probes=server.probe_port)
            yield

    def _is_current(self, nomination: Nomination) -> bool:
        pod = self._cluster.pods.get(nomination.uid)
        return pod is not None and self._cluster.node_to_try(pod) == (nomination.node or pod.nominated_node) != ""

    def _is_last(self, report: StatusReport) -> bool:
        return self._cycle.statuses.is_current(report)

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
    setting: str, app: web.Application, address: str, port: int, context: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=KEEP_ALIVE_S, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address, port, ssl_context=context, backlog=BACKLOG).start()
        except OSError as error:
            raise OSError(f"{setting}: {address!r} and {port}: {error.strerror}") from error
        yield
    finally:
        await runner.cleanup()
