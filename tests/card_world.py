"""A small cluster with GPUs: the API server's objects, a kube-scheduler that asks and binds, and an extender on a rig.

Objects are those of the API, as text: what the extender knows of cards it has read from them, and what it chooses comes
back as the annotations that its Bindings carry. Kubelets, GPUs and device plugins are stand-ins: a pod runs when told.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import orjson
from msgspec import Raw, Struct, structs

from extender.effects.binding import Binding, BindOutcome
from extender.model.device import CardInventory, CardUse
from extender.model.node import Node
from extender.model.pod import Pod
from extender.wire.extender_v1 import BindingArgs
from extender.wire.kube import NODES, PODS
from tests.bind_rig import BindRig
from tests.builders import gang_annotations, node_json, pod_json, uid_of

Json = dict[str, Any]
Manager = Literal["own", "HAMi", "gpushare"]
Fate = Literal["bound", "failed", "bound, but nobody hears of it", "failed, but nobody hears of it"]

MIB = 2**20

_TAKEN_UP = {"hami.io/bind-phase": "success", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}
"""What HAMi's and gpushare's device plugins write."""


class Gpu(Struct, frozen=True):
    """One card, as its manager tells of it."""

    uuid: str
    gib: int = 16
    healthy: bool = True


def node_with(name: str, manager: Manager, gpus: Sequence[Gpu]) -> Json:
    """Return a node with these cards, as the device plugin of its manager registers them."""
    match manager:
        case "own":
            named = ",".join(f"{gpu.uuid}:{gpu.gib * 1024}" for gpu in gpus)
            return node_json(
                name, allocatable={"nvidia.com/gpu": str(len(gpus))}, metadata=_noted("kubeshare/gpu_info", named)
            )
        case "HAMi":
            devices = [
                {
                    "id": gpu.uuid,
                    "index": i,
                    "count": 4,
                    "devmem": gpu.gib * 1024,
                    "devcore": 100,
                    "health": gpu.healthy,
                }
                for i, gpu in enumerate(gpus)
            ]
            register = orjson.dumps(devices).decode()
            allocatable = {"nvidia.com/gpu": str(4 * len(gpus))}
            return node_json(name, allocatable=allocatable, metadata=_noted("hami.io/node-nvidia-register", register))
        case "gpushare":
            memory = {"aliyun.com/gpu-mem": str(sum(gpu.gib for gpu in gpus)), "aliyun.com/gpu-count": str(len(gpus))}
            return node_json(name, allocatable={"nvidia.com/gpu": "0", **memory})


def _noted(key: str, value: str) -> Json:
    return {"annotations": {key: value}}


def asking(dialect: str, tenths: int) -> Json:
    """Return the parts of a pod that asks for so many tenths of a card of 16 GiB, in the terms of a dialect."""
    share, gib = f"{tenths / 10:.1f}", max(1, 16 * tenths // 10)
    limits: Json = {}
    metadata: Json = {"labels": {}, "annotations": {}}
    match dialect:
        case "KubeShare 1":
            said = {"gpu_request": share, "gpu_limit": "1.0", "gpu_mem": str(gib * 1024 * MIB)}
            metadata["annotations"] = {f"kubeshare/{key}": value for key, value in said.items()}
        case "KubeShare 2":
            said = {"gpu_request": share, "gpu_limit": "1.0", "gpu_mem": str(gib * 1024 * MIB)}
            metadata["labels"] = {f"sharedgpu/{key}": value for key, value in said.items()}
        case "HAMi":
            limits = {
                "nvidia.com/gpu": "1",
                "nvidia.com/gpumem": str(gib * 1024),
                "nvidia.com/gpucores": str(10 * tenths),
            }
        case "gpushare":
            limits = {"aliyun.com/gpu-mem": str(gib)}
        case _:
            limits = {"nvidia.com/gpu": "1"}
    resources = {"requests": {"cpu": "100m", **limits}, "limits": limits}
    spec = {"containers": [{"name": "main", "image": "train", "resources": resources}]}
    return {"metadata": metadata, "spec": spec}


def read_pod(body: Json) -> Pod:
    """Return the pod as the extender reads it."""
    return _read_pod(orjson.dumps(body))


def read_node(body: Json) -> Node:
    """Return the node as the extender reads it."""
    return _read_node(orjson.dumps(body))


@lru_cache(1000)
def _read_pod(body: bytes) -> Pod:
    return PODS.read(Raw(body)).object


@lru_cache(1000)
def _read_node(body: bytes) -> Node:
    return NODES.read(Raw(body)).object


class CardWorld:
    """The cluster. `pods` and `nodes` are what the API server has, `seen` is what the extender was told of the pods."""

    def __init__(self, nodes: Mapping[str, tuple[Manager, Sequence[Gpu]]]) -> None:
        self.loop = asyncio.new_event_loop()
        self.pods: dict[str, Json] = {}
        self.seen: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.gpus = {name: (manager, list(gpus)) for name, (manager, gpus) in nodes.items()}
        self.assumed: dict[str, str] = {}
        self.calls: dict[str, asyncio.Task[str]] = {}
        self.posts: dict[str, tuple[asyncio.Future[BindOutcome], Binding]] = {}
        self._lag: list[tuple[str, Json | None]] = []
        self._ended: list[asyncio.Task[str]] = []
        self.rig = self._start(1000.0)
        for name in self.gpus:
            self.show_node(name)

    def close(self) -> None:
        """End what is still going on."""
        for task in (*self.calls.values(), *self._ended):
            task.cancel()
        self._turn()
        self.loop.close()

    def _start(self, now_s: float) -> BindRig:
        rig = BindRig()
        rig.now_s = now_s
        rig.post_with(self)
        return rig

    # --- the API server and its watch
    def show_node(self, name: str) -> None:
        """Write the node with its cards as they are now; the extender learns of it at once."""
        manager, gpus = self.gpus[name]
        self.nodes[name] = node_with(name, manager, gpus)
        self.rig.cluster.upsert_node(self.node(name))

    def drop_node(self, name: str) -> None:
        """Delete the node's object; its pods are still there."""
        del self.nodes[name]
        self.rig.cluster.remove_node(name)

    def create(self, name: str, dialect: str, tenths: int, gang: str = "", members: int = 1) -> str:
        """Create a pod, and return its UID."""
        parts = asking(dialect, tenths)
        if gang:
            parts["metadata"]["annotations"].update(gang_annotations(gang, members))
        self._write(pod_json(name, **parts))
        return uid_of(name)

    def change(self, uid: str, *, status: Json | None = None, **metadata: Any) -> None:
        """Change a pod's metadata or its status."""
        body = self.pods[uid]
        self._write(
            {**body, "metadata": {**body["metadata"], **metadata}, "status": {**body["status"], **(status or {})}}
        )

    def run(self, uid: str) -> None:
        """Let the kubelet start a pod, whose device plugin writes that it has taken the pod up."""
        said = self.pods[uid]["metadata"].get("annotations", {})
        taken_up = {key: value for key, value in _TAKEN_UP.items() if key in said}
        self.change(uid, status={"phase": "Running"}, annotations={**said, **taken_up})

    def put_foreign(self, name: str, gpu: str, tenths: int) -> None:
        """Have somebody else place a pod on a card, as KubeShare 2 does; the extender learns of it at once."""
        node, _ = gpu.removeprefix("GPU-").split("-")
        parts = asking("KubeShare 2", tenths)
        parts["metadata"]["annotations"]["sharedgpu/gpu_uuid"] = gpu
        self._write(
            pod_json(
                name, metadata=parts["metadata"], spec={**parts["spec"], "nodeName": node, "schedulerName": "other"}
            )
        )
        self.deliver()
        self.pump()

    def delete(self, uid: str) -> None:
        """Delete a pod for good."""
        del self.pods[uid]
        self._lag.append((uid, None))
        if uid not in self.calls:
            self.assumed.pop(uid, None)

    def deliver(self, count: int | None = None) -> None:
        """Let the extender's watch tell of the next changes, or of all."""
        now, self._lag = (self._lag, []) if count is None else (self._lag[:count], self._lag[count:])
        for uid, body in now:
            if body is None:
                self.rig.cluster.remove_pod(uid)
                self.seen.pop(uid, None)
            else:
                self.rig.cluster.upsert_pod(read_pod(body))
                self.seen[uid] = body

    def _write(self, body: Json) -> None:
        uid = body["metadata"]["uid"]
        self.pods[uid] = body
        self._lag.append((uid, body))

    # --- kube-scheduler
    def waiting(self) -> list[str]:
        """Return the pods that kube-scheduler has to place."""
        return [
            uid for uid, body in self.pods.items()
            if not body["spec"].get("nodeName") and uid not in self.assumed and not _is_going(body)
        ]  # fmt: skip

    def try_pod(self, uid: str) -> bool:
        """Ask filter about the pod, on the nodes where it fits by what kube-scheduler knows; whether it may go."""
        pod = read_pod(self.pods[uid])
        others = [read_pod(body) for body in self.pods.values()]
        offered = [name for name in self.nodes if self._fits(pod, name, others)]
        if not offered:
            return False
        answer = self.rig.ask(pod, offered)
        if uid in self.rig.cluster.pods:
            self.seen.setdefault(uid, self.pods[uid])  # filter may be the first to tell of it
        if answer.accepted:
            self.assumed[uid] = answer.accepted[0]
        return bool(answer.accepted)

    def _fits(self, pod: Pod, name: str, others: Sequence[Pod]) -> bool:
        free = dict(self.node(name).allocatable)
        for other in others:
            where = self.assumed.get(other.uid, other.node_name)
            if where == name and not other.finished:
                for resource, amount in other.shape.requests:
                    free[resource] = free.get(resource, 0) - amount
        return all(amount <= free.get(resource, 0) for resource, amount in pod.shape.requests)

    def to_bind(self) -> list[str]:
        """Return the pods that are assumed and not on their way yet."""
        return [uid for uid in self.assumed if uid not in self.calls and uid in self.pods]

    def call_bind(self, uid: str) -> None:
        """Begin the bind call of an assumed pod."""
        body = self.pods[uid]["metadata"]
        args = BindingArgs(body["namespace"], body["name"], uid, self.assumed[uid])
        self.calls[uid] = self.loop.create_task(self.rig.verb.bind(args, lambda: True, lambda: self.rig.now_s))
        self.pump()

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        """Take a Binding of the verb's; `settle` says what comes of it."""
        assert deadline_s > self.rig.now_s
        future: asyncio.Future[BindOutcome] = self.loop.create_future()
        assert binding.uid not in self.posts, "one Binding at a time"
        self.posts[binding.uid] = (future, binding)
        return await future

    def settle(self, uid: str, fate: Fate) -> None:
        """Answer a Binding that was posted."""
        future, binding = self.posts.pop(uid)
        body = self.pods.get(uid)
        if body is None or _is_going(body):
            future.set_result(BindOutcome("gone", "the pod is gone"))
        else:
            if fate.startswith("bound"):
                self._write(bound(body, binding))
            heard = fate in ("bound", "failed")
            problem = "" if fate == "bound" else "no answer" if not heard else "the API server said no"
            future.set_result(BindOutcome("unknown" if not heard else "bound" if not problem else "failed", problem))
        self.pump()

    def pump(self) -> None:
        """Let calls and the cycle go on until nothing moves."""
        for _ in range(3):
            self.rig.later()
            self._turn()
        for uid, task in tuple(self.calls.items()):
            if task.done():
                del self.calls[uid]
                self.assumed.pop(uid, None)
                assert task.result() or uid not in self.pods or self.pods[uid]["spec"]["nodeName"], (
                    "success without a Binding"
                )

    def wait(self, seconds: float) -> None:
        """Let time go by. No watch lags, and no post lasts, as long as what is held for it."""
        if seconds > 14:
            for uid in tuple(self.posts):
                self.settle(uid, "bound")
            self.deliver()
        self.rig.later(seconds)
        self.pump()

    def restart(self) -> None:
        """Kill the extender and start another one, which knows what the API server has; calls break off."""
        for task in self.calls.values():
            task.cancel()
            self._ended.append(task)
        for uid in tuple(self.posts):  # whatever was on its way has arrived
            _, binding = self.posts.pop(uid)
            body = self.pods.get(uid)
            if body is not None and not _is_going(body):
                self._write(bound(body, binding))
        self._turn()
        self.calls.clear()
        self.assumed.clear()
        self._lag.clear()
        self.rig = self._start(self.rig.now_s)
        self.rig.cluster.replace_nodes([self.node(name) for name in self.nodes])
        self.rig.cluster.replace_pods([read_pod(body) for body in self.pods.values()])
        self.seen = dict(self.pods)
        self.pump()

    def _turn(self) -> None:
        for _ in range(8):
            self.loop.run_until_complete(asyncio.sleep(0))

    # --- what is used
    def node(self, name: str) -> Node:
        """Return the node as the extender reads it."""
        return read_node(self.nodes[name])

    def on_nodes(self) -> dict[str, list[Pod]]:
        """Return the pods that use room, by node, those among them whose Binding is on its way."""
        found: dict[str, list[Pod]] = {name: [] for name in self.nodes}
        for uid, body in self.pods.items():
            posted = self.posts.get(uid)
            pod = read_pod(bound(body, posted[1]) if posted and not _is_going(body) else body)
            if pod.node_name in found and not pod.finished:
                found[pod.node_name].append(pod)
        return found


def uses_of(pods: Iterable[Pod], inventory: CardInventory) -> dict[str, CardUse]:
    """Return what these pods use of a node's cards, by what stands on the pods."""
    uses: dict[str, CardUse] = {}
    for share in [share for pod in pods for share in pod.cards]:
        key = inventory.key_of(share)
        uses[key] = uses.get(key, CardUse()).plus(share, 1)
    return uses


def bound(body: Json, binding: Binding) -> Json:
    """Return the pod as the API server has it after the Binding."""
    annotations = {**body["metadata"].get("annotations", {}), **binding.annotations}
    metadata = {**body["metadata"], "annotations": annotations}
    return {**body, "metadata": metadata, "spec": {**body["spec"], "nodeName": binding.node}}


def _is_going(body: Json) -> bool:
    return "deletionTimestamp" in body["metadata"]


def replaced(gpus: list[Gpu], index: int, **changes: Any) -> list[Gpu]:
    """Return the cards with one of them changed."""
    return [structs.replace(gpu, **changes) if place == index else gpu for place, gpu in enumerate(gpus)]
