"""How does the stand-in come beside a control plane?"""

import sys
from pathlib import Path

from e2e.cluster import Cluster
from e2e.crd import wait_until_served
from e2e.elasticjob.pods import GROUP_VERSION

_CRD = Path(__file__).parent / "crd.yaml"


def start_elasticjob_operator(cluster: Cluster) -> None:
    """Install the ElasticJob CRD and start the stand-in; ready when this returns."""
    cluster.apply(_CRD.read_text(encoding="utf-8"))
    wait_until_served(cluster, GROUP_VERSION, "elasticjobs")
    cluster.start_process("elasticjob-operator", [sys.executable, "-m", "e2e.elasticjob", str(cluster.kubeconfig)])
