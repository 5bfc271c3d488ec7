"""The time from the acknowledgement of a batch until the consumer has read it."""

from __future__ import annotations

from quorate.cli.chaos.timeline.outage import Gap
from quorate.cli.chaos.workload.read_delays import ReadDelays


def test_a_batch_that_is_read_late() -> None:
    delays = ReadDelays()
    delays.acknowledged(3, 0, 10, 1.0)
    delays.acknowledged(3, 10, 10, 1.1)
    delays.read(3, 9, 5.0)
    assert (delays.unread(), delays.gaps) == (20, [])
    delays.read(3, 20, 5.5)
    assert (delays.unread(), delays.gaps) == (0, [Gap(3, 1.0, 5.5)])
    assert list(delays.read_s[3]) == [5.0, 5.5]


def test_a_batch_that_was_read_before_its_acknowledgement_arrived() -> None:
    delays = ReadDelays()
    delays.read(0, 10, 1.0)
    delays.acknowledged(0, 0, 10, 9.0)
    assert delays.unread() == 0
    delays.close(20.0)
    assert delays.gaps == []


def test_soon_enough_is_no_delay() -> None:
    delays = ReadDelays()
    delays.acknowledged(0, 0, 10, 1.0)
    delays.read(0, 10, 1.5)
    assert delays.gaps == []


def test_batches_that_are_never_read_wait_until_the_end() -> None:
    delays = ReadDelays()
    delays.acknowledged(0, 0, 10, 1.0)
    delays.acknowledged(1, 0, 5, 2.0)
    delays.close(30.0)
    assert delays.unread() == 15
    assert delays.gaps == [Gap(0, 1.0, 30.0), Gap(1, 2.0, 30.0)]


def test_longer_delays_after_each_other_are_both_kept() -> None:
    delays = ReadDelays()
    delays.acknowledged(0, 0, 1, 1.0)
    delays.read(0, 1, 2.0)
    delays.acknowledged(0, 1, 1, 3.0)
    delays.read(0, 2, 5.0)
    assert delays.gaps == [Gap(0, 1.0, 2.0), Gap(0, 3.0, 5.0)]
    delays.clear()
    assert delays.gaps == []
