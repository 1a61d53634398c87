"""Where is a pod by now, when the API server itself is asked? Nothing else of the pod is read."""

from msgspec import Struct


class BoundPodMetadata(Struct):
    """Which pod it is."""

    uid: str


class BoundPodSpec(Struct, rename="camel"):
    """Where it is; empty while it is nowhere."""

    node_name: str = ""


class BoundPod(Struct):
    """A pod, as far as it says so."""

    metadata: BoundPodMetadata
    spec: BoundPodSpec
