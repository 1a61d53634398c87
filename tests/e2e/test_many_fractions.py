"""Five hundred tenths of a GPU on sixty-four GPUs at once, of whose bindings every twentieth fails for a while.

The API server itself refuses these, by an admission policy. Kubelets and GPUs are stand-ins; nodes name their GPUs as
KubeShare's collector does.
"""

from collections import Counter
from collections.abc import Iterator

import orjson
import pytest
from msgspec import Raw

from e2e.client import ApiError
from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.nodes import make_node
from extender.wire.kube import PODS
from tests.e2e.pods import pod

PODS_MADE, NODES, CARDS = 500, 8, 8
CARD_MIB = 16 * 1024
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
NAME = "refused-bindings"
REFUSED = "every twentieth binding fails"


@pytest.fixture
def gpu_nodes(cluster: Cluster) -> Iterator[None]:
    """Eight nodes of eight GPUs."""
    nodes = [make_node(f"gpu-{number}", gpus=CARDS) for number in range(NODES)]
    for node in nodes:
        name = node["metadata"]["name"]
        named = ",".join(f"GPU-{name}-{number}:{CARD_MIB}" for number in range(CARDS))
        node["metadata"]["annotations"] = {"kubeshare/gpu_info": named}
    cluster.add_nodes(nodes)
    yield
    cluster.delete_nodes()


@pytest.fixture
def refused_bindings(cluster: Cluster, namespace: Namespace) -> Iterator[None]:
    """Have the API server refuse to bind the pods of this namespace whose number is a multiple of twenty."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
        "validations": [{"expression": "!object.metadata.name.matches('[02468]0$')", "message": REFUSED}],
    }
    kinds = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": NAME}}
    cluster.api.create(POLICIES, {**kinds, "kind": "ValidatingAdmissionPolicy", "spec": spec})
    bound = {"policyName": NAME, "validationActions": ["Deny"]}
    cluster.api.create(BINDINGS, {**kinds, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound})
    wait_for(lambda: is_refused(cluster, namespace), deadline_s=20, why="the API server refuses bindings")
    yield
    allow(cluster)


def allow(cluster: Cluster) -> None:
    for path in (BINDINGS, POLICIES):
        if cluster.api.find(f"{path}/{NAME}"):
            cluster.api.delete(f"{path}/{NAME}")


def is_refused(cluster: Cluster, namespace: Namespace) -> bool:
    """Try it on a pod that is not there, which the API server looks for only once it has asked its policies."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "gpu-0"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "nobody-00"}, "target": target}
    try:
        cluster.api.create(f"{namespace.path}/pods/nobody-00/binding", body)
    except ApiError as error:
        return REFUSED in error.message
    return False


def share(name: str, tenths: int) -> Object:
    """Return a pod that asks for so many tenths of a GPU, in KubeShare 2's labels."""
    labels = {"sharedgpu/gpu_request": str(tenths / 10), "sharedgpu/gpu_limit": "1.0"}
    return pod(name, gpus=0, labels=labels)


def used_milli(cluster: Cluster, namespace: Namespace) -> Counter[str]:
    """Return how much of each card the pods were given, by what stands on them."""
    used: Counter[str] = Counter()
    bodies = cluster.api.get(f"{namespace.path}/pods")["items"]
    for body in bodies:
        read = PODS.read(Raw(orjson.dumps(body))).object
        used.update({card.uuid: card.core_milli for card in read.cards})
    return used


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("gpu_nodes", "refused_bindings")
def test_all_are_placed_in_the_end_and_no_gpu_has_more_than_its_size_on_it(
    cluster: Cluster, namespace: Namespace
) -> None:
    # 1. All but every twentieth run.
    for number in range(PODS_MADE):
        namespace.apply(share(f"tenth-{number:03}", 1))
    wait_for(lambda: len(namespace.running()) == 475, deadline_s=120, why="475 pods run")
    assert all(each <= 1000 for each in used_milli(cluster, namespace).values())
    waiting = {each["metadata"]["name"] for each in namespace.pods()} - set(namespace.running())
    assert waiting == {f"tenth-{number:03}" for number in range(0, PODS_MADE, 20)}

    # 2. So do these, once their bindings are let through.
    allow(cluster)
    wait_for(lambda: len(namespace.running()) == PODS_MADE, deadline_s=90, why="all pods run")
    used = used_milli(cluster, namespace)
    assert sum(used.values()) == 100 * PODS_MADE
    assert max(used.values()) == 1000

    # 3. Nothing is still held for anybody: every GPU that nobody uses can be had whole.
    left = NODES * CARDS - len(used)
    assert left == 14, "ten to a GPU"
    namespace.apply(*(share(f"whole-{number}", 10) for number in range(left)))
    wait_for(lambda: len(namespace.running()) == PODS_MADE + left, deadline_s=60, why="the other GPUs are taken whole")
