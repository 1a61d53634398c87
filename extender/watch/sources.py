"""What do we watch? Another kind is one more function here and one more `Kind` in `wire.kube`."""

from extender.model.namespace import Namespace
from extender.model.node import Node
from extender.model.pod import Pod
from extender.state.cluster import Cluster
from extender.watch.reflector import Source
from extender.wire.kube import NAMESPACES, NODES, PODS


def pods(cluster: Cluster) -> Source[Pod]:
    """Every pod: foreign ones take room, too."""
    return Source(
        resource="pods",
        path="/api/v1/pods",
        kind=PODS,
        replace=cluster.replace_pods,
        upsert=cluster.upsert_pod,
        remove=lambda gone: cluster.remove_pod(gone.uid),
    )


def nodes(cluster: Cluster) -> Source[Node]:
    """Every node."""
    return Source(
        resource="nodes",
        path="/api/v1/nodes",
        kind=NODES,
        replace=cluster.replace_nodes,
        upsert=cluster.upsert_node,
        remove=lambda gone: cluster.remove_node(gone.name),
    )


def namespaces(cluster: Cluster) -> Source[Namespace]:
    """Every namespace: pods' affinity may select by a namespace's labels."""
    return Source(
        resource="namespaces",
        path="/api/v1/namespaces",
        kind=NAMESPACES,
        replace=cluster.replace_namespaces,
        upsert=cluster.upsert_namespace,
        remove=lambda gone: cluster.remove_namespace(gone.name),
    )
