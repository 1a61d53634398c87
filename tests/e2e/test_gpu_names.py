"""Names that only qualify a request for GPUs: kube-scheduler looks for no node that offers them, and still asks us."""

import pytest

from e2e.cluster import Cluster, Namespace, Object, wait_for
from tests.e2e.pods import DEADLINE_S, pod

pytestmark = pytest.mark.timeout(120)

REGISTER = "hami.io/node-nvidia-register"
CARD = "GPU-a,10,16384,100,NVIDIA-T4,0,true:"


def share(name: str, **more: str) -> Object:
    """Return a pod that asks for one GPU in HAMi's terms."""
    limits = {"nvidia.com/gpu": "1", **{f"nvidia.com/{key}": amount for key, amount in more.items()}}
    return pod(name, limits=limits)


def node_name(namespace: Namespace, name: str) -> str:
    found = namespace.pod(name)
    return found["spec"].get("nodeName", "") if found else ""


def why_not(namespace: Namespace, name: str) -> str:
    """Return what kube-scheduler says in the pod's conditions."""
    found = namespace.pod(name)
    conditions = found["status"].get("conditions", ()) if found else ()
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


@pytest.mark.usefixtures("node_lock_right")
def test_a_share_is_placed_on_a_card_that_has_it_and_refused_by_us_where_none_does(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.add_node("shared", gpus=10)
    cluster.api.patch("/api/v1/nodes/shared", {"metadata": {"annotations": {REGISTER: CARD}}})
    namespace.apply(share("larger", gpumem="20000"))
    told = wait_for(lambda: why_not(namespace, "larger"), DEADLINE_S, "a share of more than a card is refused")
    assert told
    assert "no GPU of the wanted model, UUID or size" in told
    assert "Insufficient nvidia.com/gpumem" not in told

    namespace.apply(share("fits", gpumem="8000", gpucores="30", priority="1"))
    wait_for(lambda: node_name(namespace, "fits") == "shared", DEADLINE_S, "a share that fits is bound")
