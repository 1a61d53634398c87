"""`python -m e2e.elasticjob KUBECONFIG` runs the stand-in until it is ended."""

import sys
from pathlib import Path

from e2e.client import ApiClient
from e2e.elasticjob.operator import ElasticJobOperator

print("This is a stand-in for DLRover's ElasticJob operator and job master.", flush=True)
ElasticJobOperator(ApiClient.from_kubeconfig(Path(sys.argv[1]))).run()
