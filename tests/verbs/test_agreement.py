"""Where our model and kube-scheduler differ on the nodes of a filter call."""

import structlog
from msgspec import structs

from extender.model.pod import AffinityTerm, Pod, Relations, Requirement
from extender.observe.metrics import Metrics
from extender.verbs.agreement import COMPARED_CALLS, COMPARED_NODES, WE_ALLOW, WE_REFUSE, Agreement
from extender.wire.extender_v1 import ExtenderArgs
from tests.builders import a_node, a_pod, a_shape
from tests.rig import Rig


def compare(rig: Rig, pod: Pod, *offered: str, times: int = 1) -> Metrics:
    metrics = Metrics("test")
    agreement = Agreement(rig.cluster, metrics)
    for _ in range(times):
        agreement.compare(ExtenderArgs(pod, offered))
    return metrics


def disagreements(metrics: Metrics) -> dict[tuple[str, str], float]:
    (family,) = metrics.model_disagreements.collect()
    return {
        (sample.labels["plugin"], sample.labels["direction"]): sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }


def test_where_both_say_the_same_nothing_is_counted() -> None:
    metrics = compare(Rig(a_node("roomy", gpu=1), a_node("full", gpu=0)), a_pod("p"), "roomy")
    assert disagreements(metrics) == {}
    assert metrics.registry.get_sample_value("gang_extender_model_verdicts_total") == 2


def test_a_node_that_is_offered_against_the_model_counts_for_the_plugin_that_the_model_has_refuse_it() -> None:
    metrics = compare(Rig(a_node("full", gpu=0)), a_pod("p"), "full")
    assert disagreements(metrics) == {("NodeResourcesFit", WE_REFUSE): 1}


def test_a_node_that_is_not_offered_against_the_model_counts_too() -> None:
    metrics = compare(Rig(a_node("offered"), a_node("kept")), a_pod("p"), "offered")
    assert disagreements(metrics) == {("unknown", WE_ALLOW): 1}


def test_what_is_not_modelled_may_well_keep_a_node_back() -> None:
    pod = a_pod("p", shape=structs.replace(a_shape(), unmodelled=("volumes",)))
    assert disagreements(compare(Rig(a_node("offered"), a_node("kept")), pod, "offered")) == {}


def test_the_nominated_node_alone_says_nothing_of_the_others() -> None:
    rig = Rig(a_node("nominated"), a_node("other"))
    assert disagreements(compare(rig, a_pod("p", nominated="nominated"), "nominated")) == {}


def test_of_a_large_cluster_each_call_looks_at_other_nodes_and_at_few() -> None:
    names = [f"n{index}" for index in range(80 * COMPARED_NODES)]
    rig = Rig(*[a_node(name, gpu=0) for name in names])
    found = disagreements(compare(rig, a_pod("p"), *names, times=80))
    assert found == {("NodeResourcesFit", WE_REFUSE): len(names)}


def test_of_pods_that_mean_something_to_one_another_one_call_in_some_looks_at_as_many_nodes_more() -> None:
    names = [f"n{index}" for index in range(8 * COMPARED_NODES * COMPARED_CALLS)]
    apart = Relations(anti_affinity=(AffinityTerm("host", (Requirement("app", "Exists"),), ("default",)),))
    rig = Rig(*[a_node(name, gpu=0) for name in names])
    found = disagreements(compare(rig, a_pod("p", shape=a_shape(relations=apart)), *names, times=8 * COMPARED_CALLS))
    assert found == {("NodeResourcesFit", WE_REFUSE): len(names)}


def test_nodes_with_room_that_is_only_planned_are_left_out() -> None:
    rig = Rig(a_node("n1", gpu=1))
    rig.create(a_pod("w0", gang="g", min_available=1))
    rig.later()
    assert rig.reserved() == 1
    assert disagreements(compare(rig, a_pod("p"), "n1")) == {}
    apart = Relations(anti_affinity=(AffinityTerm("host", (Requirement("app", "Exists"),), ("default",)),))
    assert disagreements(compare(rig, a_pod("p", shape=a_shape(gpu=9, relations=apart)), "n1")) == {}


def test_the_first_of_each_kind_is_logged() -> None:
    with structlog.testing.capture_logs() as logs:
        compare(Rig(a_node("full", gpu=0)), a_pod("p"), "full", times=3)
    assert [(line["pod"], line["node"], line["plugin"]) for line in logs] == [("default/p", "full", "NodeResourcesFit")]
