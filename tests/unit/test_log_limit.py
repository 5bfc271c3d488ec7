"""Log lines that a peer can provoke."""

from __future__ import annotations

from quorate.quorum.log_limit import INTERVAL_MS, MAX_KINDS, LogLimit
from tests.unit.rpc.kafka.fakes import FakeClock


def test_one_line_of_a_kind_passes_in_each_interval() -> None:
    clock = FakeClock()
    limit = LogLimit(clock)
    assert limit.passes("a") == ""
    assert limit.passes("b") == "", "kinds are limited separately"
    assert limit.passes("a") is None
    assert limit.passes("a") is None
    clock.advance(INTERVAL_MS)
    assert limit.passes("a") == " (2 more like it were not logged)"
    clock.advance(INTERVAL_MS)
    assert limit.passes("a") == ""


def test_the_number_of_kinds_is_bounded() -> None:
    limit = LogLimit(FakeClock())
    for number in range(10 * MAX_KINDS):
        assert limit.passes(number) == ""
    assert len(limit._kinds) == MAX_KINDS
    assert limit.passes(10 * MAX_KINDS - 1) is None, "the oldest kinds are dropped first"
