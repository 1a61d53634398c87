"""How is a disagreement kept? As a test that needs no control plane: the objects, and what kube-scheduler said."""

import orjson
import yaml
from msgspec import Raw

from e2e.client import Object, parse_objects
from e2e.fidelity.opinion import opinion_on
from e2e.fidelity.play import Disagreement
from extender.state.cluster import Cluster
from extender.wire.kube import NAMESPACES, NODES, PODS, VOLUME_CLAIMS, VOLUMES


def nodes_that_fit(objects: str, pod_name: str) -> list[str]:
    """Return where our model lets this pod go, in a cluster given as a YAML stream of its objects."""
    cluster = Cluster(["nobody"])
    for each in parse_objects(objects):
        body = Raw(orjson.dumps(each))
        match each["kind"]:
            case "Node":
                cluster.upsert_node(NODES.read(body).object)
            case "Namespace":
                cluster.upsert_namespace(NAMESPACES.read(body).object)
            case "PersistentVolume":
                cluster.upsert_volume(VOLUMES.read(body).object)
            case "PersistentVolumeClaim":
                cluster.upsert_claim(VOLUME_CLAIMS.read(body).object)
            case "Pod":
                cluster.upsert_pod(PODS.read(body).object)
            case kind:
                raise ValueError(f"{kind}: only nodes, namespaces, volumes, claims and pods are read")
    (pod,) = (pod for pod in cluster.pods.values() if pod.name == pod_name)
    return sorted(opinion_on(pod.occupant, cluster.snapshot()).fits)


def as_test(found: Disagreement) -> str:
    """Return the source of a test that fails until we agree."""
    stream = yaml.safe_dump_all([_without_noise(each) for each in found.objects], sort_keys=False)
    return (
        f"# {found.case}: {found.pod}\n"
        f"# ours:   {found.our_reasons}\n# theirs: {found.their_reasons}\n"
        "from e2e.fidelity.replay import nodes_that_fit\n\n"
        f'OBJECTS = """\n{stream}"""\n\n\n'
        f"def test_{found.pod.replace('-', '_')}_goes_where_kube_scheduler_lets_it() -> None:\n"
        f'    assert nodes_that_fit(OBJECTS, "{found.pod}") == {sorted(found.theirs)}\n'
    )


def _without_noise(obj: Object) -> Object:
    status = obj.get("status", {})
    kept = {key: status[key] for key in ("allocatable", "phase") if key in status}
    return obj | {"status": kept}
