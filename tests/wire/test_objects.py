"""Pods and nodes as the API server sends them become the model's."""

from typing import Any

import pytest
from msgspec import Raw, convert

from extender.decide.explain import explain_bad_claim
from extender.model.claim import BadGangClaim
from extender.model.device import Card, CardInventory, CardManager, CardPolicy, CardShare
from extender.model.namespace import Namespace
from extender.model.node import Node, Taint
from extender.model.pod import HOLD_GATE, NodeSelectorTerm, Pod, PodShape, Requirement, Toleration
from extender.wire import core_v1
from extender.wire.kube import NAMESPACES
from extender.wire.objects import node_of, pod_of
from extender.wire.quantity import BadQuantity
from tests.builders import a_pod, a_shape, gang_annotations, node_json, pod_json, whole_gpus


def pod(**parts: Any) -> Pod:
    return pod_of(convert(pod_json(**parts), core_v1.Pod))


def node(**parts: Any) -> Node:
    return node_of(convert(node_json(**parts), core_v1.Node), CardPolicy())


def test_a_waiting_member_of_a_gang() -> None:
    annotations = gang_annotations("g", 4)

    labels = {"training.kubeflow.org/replica-type": "worker"}
    assert pod(name="w0", metadata={"annotations": annotations}) == a_pod(
        "w0", gang="g", created_at=1767323045.0, labels=labels, shape=a_shape(cards=whole_gpus(1))
    )


def test_the_gang_belongs_to_the_namespace() -> None:
    annotations = gang_annotations("g", 4)
    claim = pod(namespace="team", metadata={"annotations": annotations}).gang
    assert claim is not None
    assert claim.key == "team/g"


def test_null_and_absent_parts_are_empty() -> None:
    bare = {
        "metadata": {"name": "w0", "uid": "u", "labels": None, "annotations": None, "creationTimestamp": None},
        "spec": {"containers": None, "tolerations": None, "nodeSelector": None, "affinity": None, "priority": None},
        "status": {"conditions": None, "containerStatuses": None},
    }
    read = pod_of(convert(bare, core_v1.Pod))
    assert read == Pod(uid="u", namespace="", name="w0", shape=PodShape(requests=(("pods", 1),)))


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True)],
)
def test_a_pod_is_finished_when_its_phase_says_so(phase: str, *, finished: bool) -> None:
    read = pod(spec={"nodeName": "n1"}, status={"phase": phase})
    assert (read.node_name, read.finished, read.occupies_node) == ("n1", finished, not finished)


def test_a_pod_with_a_deletion_timestamp_is_terminating_and_occupies_its_node() -> None:
    read = pod(metadata={"deletionTimestamp": "2026-01-02T03:04:05Z"}, spec={"nodeName": "n1"})
    assert read.terminating
    assert read.occupies_node


def test_of_a_gang_that_only_the_job_makes_it_is_known_when_it_cannot_be_planned() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sweep", "controller": True}
    tolerations = [{"key": f"example.com/{number:050}", "operator": "Exists"} for number in range(300)]
    gang = pod(metadata={"ownerReferences": [owner]}, spec={"tolerations": tolerations}).gang
    assert isinstance(gang, BadGangClaim)
    assert gang.derived
    named = pod(metadata={"annotations": gang_annotations("g", 4)}, spec={"tolerations": tolerations}).gang
    assert isinstance(named, BadGangClaim)
    assert not named.derived


def test_a_pod_without_a_gang_that_asks_for_too_much_is_called_a_pod() -> None:
    tolerations = [{"key": f"example.com/{number:050}", "operator": "Exists"} for number in range(300)]
    share = {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1"}
    gang = pod(metadata={"annotations": share}, spec={"tolerations": tolerations}).gang
    assert isinstance(gang, BadGangClaim)
    assert explain_bad_claim(gang).startswith('Pod "default/')


@pytest.mark.parametrize(
    ("gates", "gated", "held"),
    [
        (None, False, False),
        ([], False, False),
        (["example.com/quota"], True, False),
        ([HOLD_GATE], False, True),
        ([HOLD_GATE, "example.com/quota"], True, True),
    ],
)
def test_a_pod_is_held_by_our_scheduling_gate_and_gated_by_any_other(
    gates: list[str] | None, *, gated: bool, held: bool
) -> None:
    read = pod(spec={"schedulingGates": None if gates is None else [{"name": name} for name in gates]})
    assert (read.gated, read.held) == (gated, held)


@pytest.mark.parametrize(
    ("condition", "turned_away"),
    [
        ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}, True),
        ({"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}, True),
        ({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}, False),
        ({"type": "PodScheduled", "status": "True"}, False),
        ({"type": "Ready", "status": "False"}, False),
    ],
)
def test_a_pod_is_turned_away_once_the_scheduler_tried_in_vain(condition: dict[str, str], *, turned_away: bool) -> None:
    assert pod(status={"conditions": [{"type": "Initialized", "status": "True"}, condition]}).turned_away == turned_away


def test_where_a_pod_stands_with_the_scheduler() -> None:
    read = pod(spec={"priority": 7, "schedulerName": "other"}, status={"nominatedNodeName": "n2"})
    assert (read.priority, read.scheduler_name, read.nominated_node) == (7, "other", "n2")


def test_what_decides_who_may_be_killed_for_whom_is_read() -> None:
    read = pod(spec={"preemptionPolicy": "Never"}, status={"startTime": "2026-01-02T03:04:05Z"})
    assert (read.preempts, read.started_at) == (False, 1767323045.0)
    fresh = pod(spec={"preemptionPolicy": "PreemptLowerPriority"})
    assert (fresh.preempts, fresh.started_at) == (True, None)


@pytest.mark.parametrize(
    ("owner", "stays"),
    [
        ({"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}, True),
        ({"apiVersion": "v1", "kind": "Node", "controller": True}, True),
        ({"apiVersion": "apps/v1", "kind": "DaemonSet"}, False),
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}, False),
        ({"apiVersion": "apps.kruise.io/v1", "kind": "DaemonSet", "controller": True}, False),
    ],
)
def test_pods_of_daemon_sets_and_static_pods_stay_with_their_node(owner: dict[str, Any], *, stays: bool) -> None:
    assert pod(metadata={"ownerReferences": [{"name": "o", **owner}]}).stays_with_node == stays


def test_what_decides_on_the_node_is_read() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = [{"matchExpressions": [expression], "matchFields": [name]}, {}]
    required = {"nodeSelectorTerms": terms}
    shape = pod(
        spec={
            "nodeSelector": {"pool": "gpu", "arch": "amd64"},
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
            "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 5}, {"key": "k", "value": "v"}],
        }
    ).shape
    assert shape.node_selector == (("arch", "amd64"), ("pool", "gpu"))
    assert shape.required_terms == (
        NodeSelectorTerm((Requirement("zone", "In", ("a", "b")),), (Requirement("metadata.name", "In", ("n1",)),)),
        NodeSelectorTerm(),
    )
    assert shape.tolerations == (Toleration("gpu", "Exists"), Toleration("k", "Equal", "v"))


@pytest.mark.parametrize("affinity", [{}, {"nodeAffinity": {}}, {"podAffinity": {}}])
def test_without_required_node_affinity_there_are_no_terms(affinity: dict[str, Any]) -> None:
    assert pod(spec={"affinity": affinity}).shape.required_terms is None


def test_pods_of_equal_shape_share_it() -> None:
    first, second = pod(name="w0"), pod(name="w1")
    other = pod(name="w2", spec={"nodeSelector": {"pool": "gpu"}})
    assert first.shape is second.shape
    assert other.shape is not first.shape


def test_members_of_a_gang_share_its_claim() -> None:
    parts: dict[str, Any] = {"metadata": {"annotations": gang_annotations("g", 2)}}
    assert pod(name="w0", **parts).gang is pod(name="w1", **parts).gang


HALF_OF_A_GPU = {
    "kubeshare/gpu_request": "0.5",
    "kubeshare/gpu_limit": "1.0",
    "gang-extender.io/devices": (
        '{"node":"n1","cards":[{"index":1,"uuid":"GPU-b","milli":500,"bytes":1024,"container":0}]}'
    ),
}


def test_a_bound_pod_has_the_cards_that_are_written_on_it_and_an_unbound_one_a_leftover() -> None:
    metadata = {"annotations": HALF_OF_A_GPU}
    no_gpu = {"containers": [{"name": "main"}]}
    assert pod(metadata=metadata, spec={"nodeName": "n1", **no_gpu}).cards == (CardShare(1, "GPU-b", 500, 1024),)
    assert pod(metadata=metadata, spec=no_gpu).cards == ()
    assert pod(metadata=metadata, spec={"nodeName": "n2", **no_gpu}).cards == (), "it was copied from a pod on n1"


def test_a_bound_pod_awaits_its_plugin_and_an_unbound_one_has_a_leftover() -> None:
    written = {"ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1", "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}
    limits = {"aliyun.com/gpu-mem": "3"}
    asks = {"containers": [{"name": "main", "resources": {"requests": limits, "limits": limits}}]}
    bound, unbound = (pod(metadata={"annotations": written}, spec=asks | where) for where in ({"nodeName": "n1"}, {}))
    assert bound.awaits_plugin
    assert not unbound.awaits_plugin


def test_a_nodes_lock_is_no_change_of_the_node() -> None:
    """Else each pod that is bound there would have gangs planned anew."""
    register = {"hami.io/node-nvidia-register": "GPU-a,10,16384,100,V100,0,true:"}
    locked = register | {"hami.io/mutex.lock": "2026-01-02T03:04:05Z,default,w0"}
    assert node(metadata={"annotations": locked}) == node(metadata={"annotations": register})
    assert node(metadata={"annotations": register}).inventory is not None


def test_a_node_offers_its_allocatable() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
    read = node(
        name="n1",
        allocatable={"cpu": "31850m", "ephemeral-storage": "1Ki"},
        spec={"unschedulable": True, "taints": [taint]},
    )
    assert read == Node(
        name="n1",
        allocatable={
            "cpu": 31850,
            "memory": 256 * 2**30,
            "nvidia.com/gpu": 2,
            "pods": 110,
            "ephemeral-storage": 1024,
        },
        labels={"kubernetes.io/hostname": "n1"},
        taints=(Taint("gpu", "yes", "NoExecute"),),
        unschedulable=True,
        inventory=CardInventory(CardManager.OWN, (Card(0), Card(1)), frozenset({"nvidia.com/gpu"})),
    )


def test_a_node_that_has_said_nothing_yet_offers_nothing() -> None:
    fresh = {"metadata": {"name": "n1", "uid": "u"}, "spec": {"taints": None}, "status": {}}
    assert node_of(convert(fresh, core_v1.Node), CardPolicy()) == Node("n1")


def test_a_node_with_a_bad_amount_is_refused() -> None:
    with pytest.raises(BadQuantity, match="'much'"):
        node(allocatable={"cpu": "much"})


def test_a_namespace_has_its_labels() -> None:
    body = Raw(b'{"metadata":{"name":"team","uid":"u","labels":{"kubernetes.io/metadata.name":"team"}}}')
    assert NAMESPACES.read(body).object == Namespace("team", {"kubernetes.io/metadata.name": "team"})
