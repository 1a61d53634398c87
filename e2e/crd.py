"""When can objects of a new kind be created?"""

from e2e.client import ApiError
from e2e.cluster import Cluster, wait_for

_DEADLINE_S = 20.0  # a second is usual


def wait_until_served(cluster: Cluster, version: str, plural: str) -> None:
    """Wait until the API server answers for this resource; raises DeadlineExceededError."""
    wait_for(lambda: _is_served(cluster, f"/apis/{version}/{plural}"), _DEADLINE_S, f"{plural} are served")


def _is_served(cluster: Cluster, path: str) -> bool:
    # Of a CustomResourceDefinition that was just made, it says first "not found" and then "try again".
    try:
        cluster.api.get(path)
    except ApiError:
        return False
    return True
