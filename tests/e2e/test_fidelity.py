"""Does our model of kube-scheduler's filters agree with the real one, on 2,000 random pods and every node?"""

import asyncio

import pytest

from e2e.fidelity.__main__ import summary
from e2e.fidelity.controlplane import start_bench
from e2e.fidelity.play import compare
from e2e.fidelity.replay import as_test
from extender.decide.node_reasons import PLUGINS

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

PAIRS = 2_000
SEED = 20_261_121
LEAST_SHARE = 0.01
"""Of the pods, those for which a plugin must have made a difference: what never matters is not compared."""


def test_our_model_and_kube_scheduler_say_the_same_of_every_pod_and_node(capsys: pytest.CaptureFixture[str]) -> None:
    with start_bench() as bench:
        tally = asyncio.run(compare(bench, PAIRS, SEED, print))
    with capsys.disabled():
        print(f"\n{summary(tally)}")  # noqa: T201 - the rate belongs into the test's report
    assert not tally.disagreements, "\n\n".join(as_test(each) for each in tally.disagreements[:3])
    assert tally.pairs == PAIRS
    assert {plugin for plugin in PLUGINS.values() if tally.decisive[plugin] < LEAST_SHARE * PAIRS} == set()
