"""Pods of one template share their shape."""

from extender.state.cluster import Cluster
from tests.builders import a_pod


def test_pods_that_ask_for_the_same_share_one_shape() -> None:
    cluster = Cluster(("default-scheduler",))
    for name, gpu in (("a", 1), ("b", 1), ("c", 2)):
        cluster.upsert_pod(a_pod(name, gpu=gpu))
    a, b, c = cluster.pods.values()
    assert a.shape is b.shape
    assert a.shape != c.shape
