"""`python -m e2e.bench`: measure, print a table and keep the figures as JSON; on a real control plane where need be."""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, get_args

from e2e.bench import backlog, full_cluster
from e2e.bench.arrivals import ARRIVALS
from e2e.bench.bar_chart import draw_bars
from e2e.bench.contenders import CONTENDERS
from e2e.bench.contenders import VARIANTS as CONTENDING_VARIANTS
from e2e.bench.fragmentation import measure_against_optimum, measure_fragmentation
from e2e.bench.growth.parts import PARTS, USUAL_SIZES, Sizes
from e2e.bench.report import Row, medians, percentile, table, write
from e2e.bench.schedulers import VARIANTS
from e2e.bench.soak import soak, summary
from e2e.bench.stream import LONGEST_BACKOFF_S, measure_stream
from e2e.bench.throughput import NAMED_BY, SPEED, Shape, measure_throughput
from e2e.bench.time_to_whole import EVENTS, Waits, measure_time_to_whole
from e2e.bench.waiting_load import measure_waiting_load
from e2e.cluster import Cluster, Mode, Namespace, start_cluster

_AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]

_namespaces = itertools.count(1)


def main() -> int:
    """Run the bench that the arguments name."""
    options = _parser().parse_args()
    rows: list[Row] = []
    for row in options.run(options):
        rows.append(row)
        if options.out:
            write(options.out, rows)
    shown = options.summarize(rows, options)
    for _, alike in itertools.groupby(shown, key=tuple):
        print("", table(list(alike)), sep="\n")
    if getattr(options, "plot", None):
        draw_bars(options.plot, shown, options.named_by)
    return 0


def _on_clusters(options: argparse.Namespace) -> Iterator[Row]:
    for mode in options.mode:
        with start_cluster(mode=mode) as cluster:
            for variant in options.variant:
                cluster.restart_gang_scheduler(VARIANTS[variant].settings, VARIANTS[variant].flags)
                for figures in options.measure(cluster, options):
                    row = {"mode": mode, "kube-scheduler": variant, **figures}
                    print(table([row]), flush=True)
                    yield row


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench", description=__doc__)
    kept = argparse.ArgumentParser(add_help=False)
    kept.set_defaults(summarize=lambda rows, _: rows)
    kept.add_argument("--out", type=Path, metavar="FILE", help="write the figures there as JSON")
    shared = argparse.ArgumentParser(add_help=False, parents=[kept])
    shared.set_defaults(run=_on_clusters)
    shared.add_argument("--mode", nargs="+", default=["filter"], choices=get_args(Mode), help="how pods wait")
    shared.add_argument("--variant", nargs="+", default=["as shipped"], choices=list(VARIANTS), metavar="NAME")
    shared.add_argument("--updates", type=float, default=5, metavar="PER_SECOND", help="of a running pod's status")
    benches = parser.add_subparsers(required=True, metavar="BENCH")
    load = benches.add_parser("waiting-load", parents=[shared], help="filter calls while gangs wait")
    load.add_argument("--pods", type=int, default=200, help="how many wait, in gangs of ten")
    load.add_argument("--seconds", type=float, default=60)
    load.set_defaults(measure=_waiting_load)
    whole = benches.add_parser("time-to-whole", parents=[shared], help="seconds until a gang is bound")
    whole.add_argument("--tries", type=int, default=50)
    whole.add_argument("--waits", type=float, nargs=2, default=(0.5, 3.0), metavar=("LEAST", "MOST"))
    whole.add_argument("--seed", type=int, default=1)
    whole.add_argument("--event", nargs="+", default=list(EVENTS), choices=list(EVENTS), metavar="EVENT")
    whole.set_defaults(measure=_time_to_whole)
    _add_placing(benches.add_parser, kept)
    _add_growth(benches.add_parser, kept)
    _add_throughput(benches.add_parser, kept)
    soaking = benches.add_parser("soak", parents=[kept], help="whether the extender's process grows at mixed load")
    soaking.add_argument("--minutes", type=float, default=30)
    soaking.add_argument("--seed", type=int, default=1)
    soaking.set_defaults(
        run=lambda options: _told(soak(options.minutes, options.seed)), summarize=lambda rows, _: summary(rows)
    )
    return parser


def _add_placing(add_parser: _AddParser, kept: argparse.ArgumentParser) -> None:
    cards = add_parser("fragmentation", parents=[kept], help="whole GPUs kept free; needs no control plane")
    cards.add_argument("--nodes", type=int, default=16)
    cards.add_argument("--cards", type=int, default=4, help="of each node")
    cards.add_argument("--arrivals", type=int, default=2000, help="of each stream")
    cards.add_argument("--streams", type=int, default=5, help="of each load")
    cards.add_argument("--load", type=float, nargs="+", default=[0.5, 0.7, 0.9], help="parts of all cards asked for")
    cards.set_defaults(run=_fragmentation)
    small = add_parser("packing", parents=[kept], help="the same for small sets, against CP-SAT's optimum")
    small.add_argument("--sets", type=int, default=500)
    small.set_defaults(run=lambda options: measure_against_optimum(cases=options.sets))
    jobs = add_parser("stream", parents=[kept], help="a day's training jobs; needs no control plane")
    jobs.add_argument("--nodes", type=int, nargs="+", default=[8, 16], help="of four GPUs each")
    jobs.add_argument("--jobs", type=int, default=1158, help="of each stream; as many as come in a day")
    jobs.add_argument("--streams", type=int, default=5)
    jobs.add_argument("--seed", type=int, default=0, help="of the first stream")
    jobs.add_argument(
        "--backoff", type=float, default=LONGEST_BACKOFF_S, metavar="SECONDS", help="the longest; 0: none"
    )
    jobs.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures there as a PNG")
    jobs.set_defaults(run=_stream, named_by=("GPUs", "placed as"))


def _add_growth(add_parser: _AddParser, kept: argparse.ArgumentParser) -> None:
    growing = add_parser("growth", parents=[kept], help="costs by size; needs no control plane")
    growing.add_argument("--part", nargs="+", default=list(PARTS), choices=list(PARTS))
    growing.add_argument("--nodes", type=int, nargs="+", default=USUAL_SIZES.nodes, help="of the plan")
    growing.add_argument("--members", type=int, nargs="+", default=USUAL_SIZES.members, help="of the plan")
    growing.add_argument("--clusters", type=int, nargs="+", default=USUAL_SIZES.clusters, help="nodes of the rest")
    growing.add_argument(
        "--usual", type=int, nargs=2, default=USUAL_SIZES.usual, metavar=("NODES", "MEMBERS"), help="beside what grows"
    )
    growing.add_argument("--pods-per-node", type=int, default=USUAL_SIZES.pods_per_node)
    growing.add_argument("--tries", type=int, default=USUAL_SIZES.tries, help="of a plan; in proportion, of the rest")
    growing.set_defaults(run=_growth)


def _growth(options: argparse.Namespace) -> Iterator[Row]:
    sizes = Sizes(
        nodes=tuple(options.nodes),
        members=tuple(options.members),
        usual=tuple(options.usual),
        clusters=tuple(options.clusters),
        pods_per_node=options.pods_per_node,
        tries=options.tries,
    )
    for part in options.part:
        yield from PARTS[part](sizes)


def _add_throughput(add_parser: _AddParser, kept: argparse.ArgumentParser) -> None:
    bound = add_parser("throughput", parents=[kept], help="pods bound a second, ours and others in turn")
    bound.add_argument("--contender", nargs="+", default=list(CONTENDERS), choices=[*CONTENDERS, *CONTENDING_VARIANTS])
    bound.add_argument("--shape", type=Shape.of, nargs="+", default=[Shape(50, 20)], metavar="GANGSxMEMBERS")
    bound.add_argument("--nodes", type=int, nargs="+", default=[5000], help="of eight GPUs each")
    bound.add_argument("--arrival", nargs="+", default=list(ARRIVALS), choices=list(ARRIVALS))
    bound.add_argument("--rounds", type=int, default=3)
    bound.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures there as a PNG")
    bound.set_defaults(run=_throughput, summarize=_medians, named_by=NAMED_BY, ranged=SPEED)
    behind = add_parser("backlog", parents=[kept], help="the same behind gangs that cannot run, and without")
    behind.add_argument("--mode", nargs="+", default=list(get_args(Mode)), choices=get_args(Mode), help="how pods wait")
    behind.add_argument("--nodes", type=int, default=200, help="of eight GPUs each")
    behind.add_argument("--pods", type=int, default=5000, help="how many cannot run")
    behind.add_argument(
        "--shape", type=Shape.of, default=Shape(20, 20), metavar="GANGSxMEMBERS", help="of those that can"
    )
    behind.add_argument("--rounds", type=int, default=3)
    behind.set_defaults(run=_backlog, summarize=_medians, named_by=backlog.NAMED_BY, ranged=SPEED)
    full = add_parser("full-cluster", parents=[kept], help="what it takes to know all of one, and kube-scheduler's")
    full.add_argument("--nodes", type=int, default=5000)
    full.add_argument("--pods-per-node", type=int, default=10)
    full.add_argument("--rounds", type=int, default=3)
    full.set_defaults(run=_full_cluster, summarize=_medians, named_by=full_cluster.NAMED_BY, ranged=full_cluster.READY)


def _medians(rows: Sequence[Row], options: argparse.Namespace) -> list[Row]:
    return medians(rows, options.named_by, options.ranged)


def _full_cluster(options: argparse.Namespace) -> Iterator[Row]:
    asked = {"nodes": options.nodes, "pods_per_node": options.pods_per_node, "rounds": options.rounds}
    return _told(full_cluster.measure_full_cluster(**asked))


def _backlog(options: argparse.Namespace) -> Iterator[Row]:
    asked = {"nodes": options.nodes, "pods": options.pods, "shape": options.shape, "rounds": options.rounds}
    return _told(backlog.measure_backlog(options.mode, **asked))


def _told(rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        print(table([row]), flush=True)
        yield row


def _throughput(options: argparse.Namespace) -> Iterator[Row]:
    known = {**CONTENDERS, **CONTENDING_VARIANTS}
    rows = measure_throughput(
        {name: known[name] for name in options.contender},
        shapes=options.shape,
        nodes=options.nodes,
        arrivals=options.arrival,
        rounds=options.rounds,
    )
    return _told(rows)


def _stream(options: argparse.Namespace) -> Iterator[Row]:
    seeds = range(options.seed, options.seed + options.streams)
    return measure_stream(nodes=options.nodes, jobs=options.jobs, seeds=seeds, longest_backoff_s=options.backoff)


def _fragmentation(options: argparse.Namespace) -> Iterator[Row]:
    return measure_fragmentation(
        nodes=options.nodes,
        cards=options.cards,
        arrivals=options.arrivals,
        loads=options.load,
        seeds=range(options.streams),
    )


def _waiting_load(cluster: Cluster, options: argparse.Namespace) -> Iterator[Row]:
    with _clean(cluster) as namespace:
        load = measure_waiting_load(
            cluster, namespace, pods=options.pods, for_s=options.seconds, updates_per_s=options.updates
        )
    yield {
        "waiting pods": load.waiting,
        "seconds": load.seconds,
        "filter calls": load.filter_calls,
        "calls/s": load.filter_calls_per_s,
    }


def _time_to_whole(cluster: Cluster, options: argparse.Namespace) -> Iterator[Row]:
    for event in options.event:
        with _clean(cluster) as namespace:
            seconds = measure_time_to_whole(
                cluster,
                namespace,
                event=event,
                tries=options.tries,
                seed=options.seed,
                waits=Waits(*options.waits),
                updates_per_s=options.updates,
            )
        figures = {"p50 s": percentile(seconds, 50), "p99 s": percentile(seconds, 99), "max s": max(seconds)}
        yield {"event": event, "tries": len(seconds), **figures, "above 1 s": sum(each > 1 for each in seconds)}


@contextmanager
def _clean(cluster: Cluster) -> Iterator[Namespace]:
    """Give a namespace of its own on a cluster that has no nodes before and after."""
    namespace = cluster.namespace(f"bench-{next(_namespaces)}")
    yield namespace
    namespace.delete()
    cluster.delete_nodes()


if __name__ == "__main__":
    sys.exit(main())
