"""Shares of GPUs on the real control plane: chosen once, written with the pod's node, and taken up in order.

The device plugins are stand-ins (`e2e.plugins`), and so are the kubelets that ask them.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from e2e import scenarios
from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.crd import wait_until_served
from e2e.plugins.environment import koordlet_devices, visible_devices
from e2e.plugins.gpushare import GpushareStandIn
from e2e.plugins.hami import LOCK, HamiStandIn
from e2e.plugins.kubelet import PluginKubelet
from e2e.plugins.volcano_vgpu import VolcanoVgpuStandIn
from extender.verbs.turns import PLUGIN_S
from tests.e2e.gang_watch import GANG_NAME, MIN_AVAILABLE, SETTLING_S, watch_gangs
from tests.e2e.gpu_nodes import (
    add_gpushare_node,
    add_hami_node,
    add_koordinator_node,
    add_kubeshare_node,
    add_volcano_node,
    annotations_of,
    device_crd,
    gpu_pod,
    half_of_a_gpu,
)
from tests.e2e.pods import bound
from tests.e2e.steady import stays
from tests.manifests.files import GPU_ENV, manifests

pytestmark = pytest.mark.timeout(120)

DEADLINE_S = 20.0
VISIBLE = "gang-extender.io/visible-devices"


@pytest.fixture(scope="module")
def gpu_env(cluster: Cluster) -> Iterator[None]:
    """Install manifests/gpu-env, until the tests of this module are over."""
    cluster.apply(*manifests(GPU_ENV))
    wait_for(lambda: env_of(cluster, half_of_a_gpu("probe")), DEADLINE_S, "the policy is in force")
    yield
    for each in manifests(GPU_ENV):
        cluster.api.delete(cluster.api.path_of(each))


def env_of(cluster: Cluster, pod: Object) -> list[Object]:
    """Return the environment of the pod's first container, were it created."""
    made = cluster.api.create("/api/v1/namespaces/default/pods", pod, dry_run=True)
    env: list[Object] = made["spec"]["containers"][0].get("env", [])
    return env


def member(pod: Object, gang: str, size: int) -> Object:
    annotations = pod["metadata"].get("annotations", {}) | {GANG_NAME: gang, MIN_AVAILABLE: str(size)}
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations}}


def wait_bound(namespace: Namespace, count: int) -> None:
    wait_for(lambda: len(bound(namespace)) == count, DEADLINE_S, f"{count} pods are bound")


# Shares that no device plugin hands out


@pytest.mark.usefixtures("training_operator", "gpu_env")
def test_the_workers_of_a_tfjob_each_get_half_a_gpu_or_none_does(cluster: Cluster, namespace: Namespace) -> None:
    job = scenarios.tf_job(namespace.name)
    worker = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    worker["spec"]["containers"][0]["resources"]["limits"].pop("nvidia.com/gpu")
    worker["metadata"]["annotations"] |= {"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1.0"}
    ps = job["spec"]["tfReplicaSpecs"]["PS"]["template"]["metadata"]
    ps["annotations"] = {key: text for key, text in ps["annotations"].items() if "kubeshare" not in key}
    uuids = add_kubeshare_node(cluster, "gpu-0", cards=1)
    with watch_gangs(namespace) as watch:
        namespace.apply(job)
        wait_for(lambda: len(namespace.pods()) == 5, DEADLINE_S, "the training operator makes the five pods")
        assert stays(lambda: not watch.bound["job1"]), "four halves do not fit one GPU"
        uuids += add_kubeshare_node(cluster, "gpu-1", cards=1)
        wait_for(lambda: len(namespace.running()) == 5, DEADLINE_S, "all five run")
    assert watch.longest_in_part_s() < SETTLING_S
    workers = [pod for pod in namespace.pods() if "worker" in pod["metadata"]["name"]]
    seen = Counter(visible_devices(pod, "tensorflow") for pod in workers)
    assert seen == dict.fromkeys(uuids, 2)
    (server,) = (pod for pod in namespace.pods() if pod not in workers)
    assert visible_devices(server, "tensorflow") is None


def test_of_many_single_pods_two_share_each_card_and_the_others_wait(cluster: Cluster, namespace: Namespace) -> None:
    uuids = add_kubeshare_node(cluster, "gpu-0", cards=2)
    namespace.apply(*(half_of_a_gpu(f"p-{index}") for index in range(6)))
    wait_bound(namespace, 4)
    assert stays(lambda: len(bound(namespace)) == 4)
    given = {name: annotations_of(namespace, name)[VISIBLE] for name in bound(namespace)}
    assert Counter(given.values()) == dict.fromkeys(uuids, 2)
    gone, *_ = given
    namespace.delete_pod(gone)
    wait_for(lambda: len(set(bound(namespace)) - {gone}) == 4, DEADLINE_S, "another one gets what is free")
    assert Counter(annotations_of(namespace, name)[VISIBLE] for name in bound(namespace)) == dict.fromkeys(uuids, 2)


@pytest.mark.usefixtures("gpu_env")
def test_whole_cards_and_shares_in_three_systems_terms_are_on_one_account(
    cluster: Cluster, namespace: Namespace
) -> None:
    uuids = set(add_kubeshare_node(cluster, "gpu-0", cards=3))
    shares = {"sharedgpu/gpu_request": "0.6", "sharedgpu/gpu_limit": "1.0", "sharedgpu/gpu_mem": "4294967296"}
    namespace.apply(
        gpu_pod("two-whole", annotations={"kubeshare/gpu_request": "2", "kubeshare/gpu_limit": "2"}),
        gpu_pod("kubeshare-2", labels=shares),
        gpu_pod("kai", annotations={"gpu-fraction": "0.4"}),
    )
    wait_bound(namespace, 3)
    namespace.apply(gpu_pod("one-too-many", annotations={"gpu-fraction": "0.1"}))
    assert stays(lambda: "one-too-many" not in bound(namespace))
    seen = {pod["metadata"]["name"]: visible_devices(pod, "main") or "" for pod in namespace.pods()}
    assert seen["kubeshare-2"] == seen["kai"]
    assert {*seen["two-whole"].split(","), seen["kai"]} == uuids
    assert seen["one-too-many"] == ""
    assert annotations_of(namespace, "kubeshare-2")["sharedgpu/gpu_uuid"] == seen["kai"]


def test_after_a_restart_no_card_is_used_twice(cluster: Cluster, namespace: Namespace) -> None:
    uuids = add_kubeshare_node(cluster, "gpu-0", cards=2)
    namespace.apply(*(half_of_a_gpu(f"p-{index}") for index in range(3)))
    wait_bound(namespace, 3)
    cluster.restart_extender()
    namespace.apply(*(half_of_a_gpu(f"p-{index}") for index in range(3, 6)))
    wait_bound(namespace, 4)
    assert stays(lambda: len(bound(namespace)) == 4)
    assert Counter(annotations_of(namespace, name)[VISIBLE] for name in bound(namespace)) == dict.fromkeys(uuids, 2)


@pytest.mark.usefixtures("gpu_env")
def test_the_policy_adds_the_variable_and_keeps_what_a_container_has(cluster: Cluster) -> None:
    reference = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{VISIBLE}']"}}
    added = {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": reference}
    own = [{"name": "STEPS", "value": "7"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]
    pod = half_of_a_gpu("a")
    main = pod["spec"]["containers"][0]
    main["env"] = [own[0]]
    pod["spec"]["containers"].append({**main, "name": "sets-it-itself", "env": own})
    pod["spec"]["containers"].append({**main, "name": "wants-none", "env": [{**own[1], "value": ""}]})
    pod["spec"]["initContainers"] = [{**main, "name": "first", "env": []}, {**main, "name": "second", "env": own}]
    made = cluster.api.create("/api/v1/namespaces/default/pods", pod, dry_run=True)["spec"]
    by_name = {each["name"]: each for each in (*made["initContainers"], *made["containers"])}
    assert {name: each.get("env") for name, each in by_name.items()} == {
        "first": [added],
        "second": own,
        "main": [own[0], added],
        "sets-it-itself": own,
        "wants-none": [{"name": "NVIDIA_VISIBLE_DEVICES"}],
    }
    assert list(by_name) == ["first", "second", "main", "sets-it-itself", "wants-none"]
    assert by_name["main"]["image"] == main["image"]


@pytest.mark.usefixtures("gpu_env")
def test_the_policy_is_for_those_who_ask_in_terms_that_nobody_else_serves(cluster: Cluster) -> None:
    asking = [
        half_of_a_gpu("a"),
        gpu_pod("b", annotations={"gpu-fraction": "0.5"}),
        gpu_pod("c", labels={"sharedgpu/gpu_request": "0.5", "sharedgpu/gpu_limit": "1"}),
    ]
    others = [
        gpu_pod("d", {"nvidia.com/gpu": "1"}),
        gpu_pod("e", annotations={"example.com/gpu-fraction": "0.5"}),
        half_of_a_gpu("f") | {"spec": half_of_a_gpu("f")["spec"] | {"schedulerName": "default-scheduler"}},
    ]
    assert [bool(env_of(cluster, pod)) for pod in asking] == [True] * 3
    assert [bool(env_of(cluster, pod)) for pod in others] == [False] * 3


# Koordinator


def test_koordinators_agent_is_told_of_half_a_gpu_each(cluster: Cluster, namespace: Namespace) -> None:
    cluster.apply(device_crd())
    wait_until_served(cluster, "scheduling.koordinator.sh/v1alpha1", "devices")
    add_koordinator_node(cluster, "gpu-0", cards=2)
    half = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}
    namespace.apply(*(member(gpu_pod(f"w-{index}", half), "g", 4) for index in range(4)))
    wait_for(lambda: len(namespace.running()) == 4, 60.0, "all four run")
    assert Counter(koordlet_devices(pod) for pod in namespace.pods()) == {"0": 2, "1": 2}
    cluster.api.delete("/apis/scheduling.koordinator.sh/v1alpha1/devices/gpu-0")


# Plugins that find pods by size and age


def test_gpushare_gets_the_next_pod_of_a_size_when_it_has_taken_up_the_one_before(
    cluster: Cluster, namespace: Namespace
) -> None:
    add_gpushare_node(cluster, "gpu-0")
    kubelet = PluginKubelet(cluster.api, GpushareStandIn(cluster.api))
    namespace.apply(*(gpu_pod(f"p-{index}", {"aliyun.com/gpu-mem": "6"}) for index in range(3)))
    for count in (1, 2, 3):
        wait_bound(namespace, count)
        assert stays(lambda count=count: len(bound(namespace)) == count, 1.5)  # type: ignore[misc]
        kubelet.admit_all(namespace.name)
    for name in bound(namespace):
        written = annotations_of(namespace, name)
        assert kubelet.environments[name, "main"]["NVIDIA_VISIBLE_DEVICES"] == written["ALIYUN_COM_GPU_MEM_IDX"]
    cards = Counter(annotations_of(namespace, name)["ALIYUN_COM_GPU_MEM_IDX"] for name in bound(namespace))
    assert sorted(cards.values()) == [1, 2]


def test_after_a_restart_a_pod_that_is_not_taken_up_is_waited_for(cluster: Cluster, namespace: Namespace) -> None:
    add_gpushare_node(cluster, "gpu-0")
    kubelet = PluginKubelet(cluster.api, GpushareStandIn(cluster.api))
    memory = {"aliyun.com/gpu-mem": "6"}
    namespace.apply(gpu_pod("first", memory))
    wait_bound(namespace, 1)
    cluster.restart_extender()
    namespace.apply(gpu_pod("second", memory))
    assert stays(lambda: bound(namespace) == ["first"])
    kubelet.admit_all(namespace.name)
    wait_bound(namespace, 2)


def test_who_waits_for_a_plugin_that_is_away_goes_to_another_node(cluster: Cluster, namespace: Namespace) -> None:
    add_gpushare_node(cluster, "gpu-0")
    memory = {"aliyun.com/gpu-mem": "6"}
    namespace.apply(gpu_pod("first", memory))
    wait_bound(namespace, 1)
    namespace.apply(gpu_pod("second", memory))
    assert stays(lambda: len(bound(namespace)) == 1)
    add_gpushare_node(cluster, "gpu-1")
    wait_for(lambda: len(bound(namespace)) == 2, PLUGIN_S + DEADLINE_S, "the second one is bound")
    assert {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in namespace.pods()} == {
        "first": "gpu-0",
        "second": "gpu-1",
    }
    assert "has not taken up pod" in namespace.describe_pod("second")


def test_a_gang_of_equal_pods_goes_to_its_plugin_one_by_one(cluster: Cluster, namespace: Namespace) -> None:
    add_volcano_node(cluster, "gpu-0")
    kubelet = PluginKubelet(cluster.api, VolcanoVgpuStandIn(cluster.api))
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "8000"}
    namespace.apply(*(member(gpu_pod(f"w-{index}", limits), "g", 4) for index in range(4)))
    for count in (1, 2, 3, 4):
        wait_bound(namespace, count)
        kubelet.admit_all(namespace.name)
    wait_for(lambda: len(namespace.running()) == 4, DEADLINE_S, "all run")
    for name in bound(namespace):
        meant, *_ = annotations_of(namespace, name)["volcano.sh/vgpu-ids-new"].split(",")
        assert kubelet.environments[name, "main"]["NVIDIA_VISIBLE_DEVICES"] == meant


# Plugins that read the node's lock


@pytest.mark.usefixtures("node_lock_right")
def test_hami_gets_the_pods_of_a_node_one_after_the_other_each_with_the_nodes_lock(
    cluster: Cluster, namespace: Namespace
) -> None:
    add_hami_node(cluster, "gpu-0")
    kubelet = PluginKubelet(cluster.api, HamiStandIn(cluster.api))
    sizes = {"p-0": "6000", "p-1": "7000", "p-2": "8000"}
    namespace.apply(
        *(gpu_pod(name, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": size}) for name, size in sizes.items())
    )
    order: list[str] = []
    for count in (1, 2, 3):
        wait_bound(namespace, count)
        (new,) = set(bound(namespace)) - set(order)
        assert lock_of(cluster, "gpu-0").endswith(f",{namespace.name},{new}")
        assert stays(lambda count=count: len(bound(namespace)) == count, 1.5)  # type: ignore[misc]
        kubelet.admit_all(namespace.name)
        order.append(new)
    assert lock_of(cluster, "gpu-0") == ""
    for name, size in sizes.items():
        written = annotations_of(namespace, name)
        meant, *_ = written["hami.io/vgpu-devices-allocated"].split(",")
        environment = kubelet.environments[name, "main"]
        assert environment["NVIDIA_VISIBLE_DEVICES"] == meant
        assert environment["CUDA_DEVICE_MEMORY_LIMIT_0"] == f"{size}m"


@pytest.mark.usefixtures("node_lock_right")
def test_the_lock_of_a_pod_that_is_gone_holds_nobody_up(cluster: Cluster, namespace: Namespace) -> None:
    add_hami_node(cluster, "gpu-0")
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"}
    namespace.apply(gpu_pod("first", limits))
    wait_bound(namespace, 1)
    namespace.delete_pod("first")  # the plugin never took it up
    namespace.apply(gpu_pod("second", limits))
    wait_for(lambda: bound(namespace) == ["second"], DEADLINE_S, "the next one is bound")
    assert lock_of(cluster, "gpu-0").endswith(",second")


def lock_of(cluster: Cluster, node: str) -> str:
    annotations: dict[str, str] = cluster.api.get(f"/api/v1/nodes/{node}")["metadata"].get("annotations", {})
    return annotations.get(LOCK, "")


# What the stand-ins are worth


def bound_by_another(namespace: Namespace, name: str, limits: dict[str, str], annotations: dict[str, str]) -> None:
    """Create a pod with a node and with annotations, as if a scheduler that looks at no other pod had bound it."""
    pod = gpu_pod(name, limits, annotations=annotations)
    pod["spec"]["nodeName"] = "gpu-0"
    namespace.apply(pod)


def seen_in_other_order(kubelet: PluginKubelet, namespace: Namespace) -> dict[str, str]:
    """Return which card each pod sees where the kubelet asks for the younger choice first."""
    kubelet.admit(reversed(namespace.pods()))
    return {name: each["NVIDIA_VISIBLE_DEVICES"] for (name, _), each in kubelet.environments.items()}


def test_without_turns_the_gpushare_plugin_takes_the_wrong_pod(cluster: Cluster, namespace: Namespace) -> None:
    """The scenarios above would notice."""
    add_gpushare_node(cluster, "gpu-0")
    for index in range(2):
        meant = {"IDX": str(index), "POD": "6", "ASSIGNED": "false", "ASSUME_TIME": str(index + 1)}
        written = {f"ALIYUN_COM_GPU_MEM_{key}": text for key, text in meant.items()}
        bound_by_another(namespace, f"p-{index}", {"aliyun.com/gpu-mem": "6"}, written)
    kubelet = PluginKubelet(cluster.api, GpushareStandIn(cluster.api))
    assert seen_in_other_order(kubelet, namespace) == {"p-0": "1", "p-1": "0"}


def test_without_turns_volcanos_plugin_takes_the_wrong_pod(cluster: Cluster, namespace: Namespace) -> None:
    add_volcano_node(cluster, "gpu-0")
    for index in range(2):
        meant = {"vgpu-node": "gpu-0", "vgpu-time": str(index + 1), "bind-phase": "allocating"}
        meant["devices-to-allocate"] = f"GPU-{index},NVIDIA,1000,0:"
        written = {f"volcano.sh/{key}": text for key, text in meant.items()}
        bound_by_another(namespace, f"p-{index}", {"volcano.sh/vgpu-number": "1"}, written)
    kubelet = PluginKubelet(cluster.api, VolcanoVgpuStandIn(cluster.api))
    assert seen_in_other_order(kubelet, namespace) == {"p-0": "GPU-1", "p-1": "GPU-0"}


def test_without_a_lock_hamis_plugin_takes_the_wrong_pod(cluster: Cluster, namespace: Namespace) -> None:
    add_hami_node(cluster, "gpu-0")
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}
    for index in range(2):
        meant = {"vgpu-node": "gpu-0", "bind-phase": "allocating"}
        meant["vgpu-devices-to-allocate"] = f"GPU-{index},NVIDIA,1000,0:;"
        bound_by_another(namespace, f"p-{index}", limits, {f"hami.io/{key}": text for key, text in meant.items()})
    kubelet = PluginKubelet(cluster.api, HamiStandIn(cluster.api))
    with_the_first_pods_card = seen_in_other_order(kubelet, namespace)
    assert with_the_first_pods_card["p-1"] == "GPU-0"
