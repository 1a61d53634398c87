"""The life of a cluster that has nothing to do with waiting gangs: one running pod's status changes again and again.

kube-scheduler tries every pod that an extender has turned away again after such a change.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

from e2e.background import in_background
from e2e.client import ApiClient
from e2e.cluster import Namespace


@contextmanager
def updated(namespace: Namespace, pod: str, times_a_second: float) -> Iterator[None]:
    """Change the pod's status so often, in a thread of its own; never at 0."""
    if not times_a_second:
        yield
        return
    with in_background(partial(_update, namespace, pod, 1 / times_a_second)):
        yield


def _update(namespace: Namespace, pod: str, pause_s: float, ended: threading.Event) -> None:
    api = ApiClient.from_kubeconfig(namespace.cluster.kubeconfig)
    try:
        for number in count():
            if ended.wait(pause_s):
                return
            api.patch(f"{namespace.path}/pods/{pod}/status", {"status": {"message": f"step {number}"}})
    finally:
        api.close()
