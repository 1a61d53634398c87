"""How often cycles run while changes keep coming."""

import asyncio
import time
from contextlib import suppress

import pytest

from extender.cycle import LONGEST_REST_S, RESTS_FOR, TOGETHER_S, rest_s
from extender.model.claim import GangKey
from tests.rig import Rig


def test_short_cycles_take_the_changes_of_a_few_milliseconds_together() -> None:
    assert rest_s(0.0001) == TOGETHER_S


def test_nobody_waits_longer_for_a_cycle_than_a_tenth_of_a_second() -> None:
    assert rest_s(5.0) == LONGEST_REST_S


async def test_long_cycles_leave_most_of_the_loop_to_the_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    took_s = 0.01
    cycles = 0

    def look_at_a_thousand_members(now_s: float, *, may_plan: bool) -> None:
        nonlocal cycles
        assert now_s
        assert may_plan
        cycles += 1
        time.sleep(took_s)
        rig.cluster.changes.plan(GangKey(f"default/gang-{cycles}"))

    monkeypatch.setattr(rig.cycle, "step", look_at_a_thousand_members)
    started_s = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await rig.cycle.run(lambda: True)

    rounds = (time.monotonic() - started_s) / (took_s * (1 + RESTS_FOR))
    assert 1 < cycles <= rounds + 1
