"""What kube-scheduler was once seen to judge otherwise than we did, kept as it was found."""

import orjson
import pytest
import yaml

from e2e.fidelity.generate import generate_case
from e2e.fidelity.play import Disagreement
from e2e.fidelity.replay import as_test, nodes_that_fit

ANTI_AFFINITY_BY_NAMESPACE = """
apiVersion: v1
kind: Node
metadata: {name: beside-db, uid: n1, labels: {kubernetes.io/hostname: beside-db}}
status: {allocatable: {cpu: "4", pods: "20"}}
---
apiVersion: v1
kind: Node
metadata: {name: empty, uid: n2, labels: {kubernetes.io/hostname: empty}}
status: {allocatable: {cpu: "4", pods: "20"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: red, uid: s1, labels: {env: prod}}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: red, uid: p1, labels: {app: db}}
spec: {nodeName: beside-db, containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cache, namespace: red, uid: p2, labels: {app: cache}}
spec:
  containers: [{name: c}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {app: db}}
          namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}
"""


def test_a_pods_own_namespace_selector_selects_every_namespace_when_it_selects_one_without_labels() -> None:
    assert nodes_that_fit(ANTI_AFFINITY_BY_NAMESPACE, "cache") == ["empty"]


def test_a_disagreement_is_printed_as_a_test_that_runs() -> None:
    objects = list(yaml.safe_load_all(ANTI_AFFINITY_BY_NAMESPACE))
    found = Disagreement("seed 1, cluster 2", "cache", frozenset(), frozenset({"beside-db"}), "ours", "theirs", objects)
    names: dict[str, object] = {}
    exec(as_test(found), names)  # noqa: S102 - it is made of the lines above
    test = names["test_cache_goes_where_kube_scheduler_lets_it"]
    assert callable(test)
    with pytest.raises(AssertionError):
        test()


def test_a_seed_makes_the_same_clusters_again() -> None:
    def case(seed: int, number: int) -> bytes:
        made = generate_case(seed, number, pods=5)
        return orjson.dumps(
            [made.nodes, made.volumes, made.claims, made.residents, made.pending, made.terminating, made.finished]
        )

    assert case(1, 2) == case(1, 2)
    assert case(1, 2) != case(1, 3)
    assert case(1, 2) != case(2, 2)
