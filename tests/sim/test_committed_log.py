"""The one history of a log: batches that were seen before are compared as bytes, with the same
verdict."""

from __future__ import annotations

import pytest

from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.files.errors import CorruptBatch
from tests.sim.checks.committed_log import CommittedLog, Violation


def batch(offset: int, value: bytes = b"value") -> bytes:
    made = build_value_batch([value, value], base_offset=offset, leader_epoch=1, timestamp_ms=0)
    return bytes(made)


FIRST, SECOND, THIRD = (batch(offset) for offset in (0, 2, 4))


def seen_by_one() -> CommittedLog:
    log = CommittedLog("log")
    assert log.holds("one", FIRST, 2) == 2
    assert log.holds("one", SECOND + THIRD, 6) == 6
    return log


def test_others_may_hold_it_in_other_pieces_and_more_of_it() -> None:
    log = seen_by_one()
    assert log.holds("two", FIRST + SECOND, 4) == 4
    assert log.holds("two", THIRD + batch(6), 8) == 8
    assert log.holds("three", SECOND + THIRD, 4) == 4, "what is not committed there does not count"
    assert list(log.batches) == [0, 2, 4, 6]


def test_another_batch_at_a_known_offset_is_refused() -> None:
    with pytest.raises(Violation, match=r"two has .* committed at 2, one had"):
        seen_by_one().holds("two", FIRST + batch(2, b"other"), 4)


def test_damage_in_what_was_seen_before_is_found() -> None:
    damaged = bytearray(FIRST + SECOND)
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch):
        seen_by_one().holds("two", bytes(damaged), 4)


def test_what_was_forgotten_is_seen_anew() -> None:
    log = seen_by_one()
    log.forget_from(4)
    assert list(log.batches) == [0, 2]
    assert log.holds("two", SECOND + THIRD, 6) == 6
    assert list(log.batches) == [0, 2, 4]
    log.forget_from(4)
    assert log.holds("two", FIRST + SECOND + batch(4, b"other"), 6) == 6
    with pytest.raises(Violation, match=r"one has .* committed at 4, two had"):
        log.holds("one", THIRD, 6)
