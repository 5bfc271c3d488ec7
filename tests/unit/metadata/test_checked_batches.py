"""CheckedBatches: the replay gets the batches that the log holds, without a second decoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorum.log.batches.batch import batches, build_value_batch
from quorate.quorum.metadata import checked_batches as module
from quorate.quorum.metadata.batches import MetadataBatch, metadata_batches
from quorate.quorum.metadata.checked_batches import CheckedBatches
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import ConfigRecord

WALL_MS = 1_700_000_000_000
FAR = 1 << 40


def batch(offset: int, value: str = "v", *, epoch: int = 1, records: int = 1) -> bytes:
    record = ConfigRecord(resource_type=2, resource_name="t", name="k", value=value)
    values = [encode_record(record)] * records
    return bytes(
        build_value_batch(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=WALL_MS)
    )


class Log:
    """A log in memory, and the batches that were checked before they were appended."""

    def __init__(self) -> None:
        self.generation = 0
        self.batches: list[bytes] = []
        self.checked = CheckedBatches(lambda: self.generation)

    def check(self, data: bytes) -> list[MetadataBatch]:
        view = memoryview(data)
        return [self.checked.check(view, position, header) for position, header in batches(view)]

    def follow(self, data: bytes) -> None:
        checked = self.check(data)
        self.batches.append(data)
        self.checked.appended(checked)

    def truncate(self, length: int) -> None:
        del self.batches[length:]
        self.generation += 1

    def decoded(self) -> list[MetadataBatch]:
        return list(metadata_batches(b"".join(self.batches)))


def test_appended_batches_are_taken_once() -> None:
    log = Log()
    log.follow(batch(0) + batch(1, "w"))
    assert log.checked.take(0, FAR, FAR) == log.decoded()
    assert log.checked.take(0, FAR, FAR) == [], "a taken batch is not kept"


def test_a_batch_that_was_not_appended_is_not_taken() -> None:
    log = Log()
    log.check(batch(0, "refused by the log"))
    assert log.checked.take(0, FAR, FAR) == []


@pytest.mark.parametrize(
    "other",
    [batch(0, "w"), batch(0, "v", epoch=2), batch(0, "longer")],
    ids=["value", "epoch", "size"],
)
def test_a_batch_that_was_replaced_is_not_taken(other: bytes) -> None:
    log = Log()
    log.follow(batch(0) + batch(1))
    log.truncate(0)
    log.batches.append(other)  # this node leads now, and appends its own batch
    assert log.checked.take(0, FAR, FAR) == []
    log.follow(batch(1, "x"))
    assert log.checked.take(1, FAR, FAR) == log.decoded()[1:]


def test_batches_that_end_after_the_commit_are_kept() -> None:
    log = Log()
    log.follow(batch(0) + batch(1, records=3))
    assert log.checked.take(0, 3, FAR) == log.decoded()[:1]
    assert log.checked.take(1, 3, FAR) == []
    assert log.checked.take(1, 4, FAR) == log.decoded()[1:]


def test_one_call_takes_a_bounded_number_of_bytes() -> None:
    log = Log()
    log.follow(batch(0) + batch(1) + batch(2, "v" * 1000) + batch(3))
    each_bytes = len(batch(0))
    assert log.checked.take(0, FAR, 2 * each_bytes) == log.decoded()[:2]
    assert log.checked.take(2, FAR, each_bytes) == log.decoded()[2:3], "the first at any size"
    assert log.checked.take(3, FAR, each_bytes) == log.decoded()[3:]


def test_the_kept_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT_BYTES", 3 * len(batch(0)))
    log = Log()
    for offset in range(5):
        log.follow(batch(offset))
    assert log.checked.take(0, FAR, FAR) == log.decoded()[:3]
    assert log.checked.take(3, FAR, FAR) == [], "these are read from the log"
    log.follow(batch(5))
    assert log.checked.take(5, FAR, FAR) == log.decoded()[5:], "there is room again"


def test_batches_that_were_replayed_in_another_way_give_their_room_back() -> None:
    log = Log()
    log.follow(batch(0) + batch(1) + batch(2))
    assert log.checked.take(2, FAR, FAR) == log.decoded()[2:]
    assert not log.checked._kept
    assert not log.checked._kept_bytes


def test_a_batch_that_no_node_could_replay_fails_its_check() -> None:
    data = bytes(build_value_batch([b"bad"], base_offset=0, leader_epoch=1, timestamp_ms=WALL_MS))
    with pytest.raises(MetadataError):
        Log().check(data)


STEPS = st.one_of(
    st.tuples(st.just("follow"), st.integers(1, 3)),
    st.tuples(st.just("lead"), st.integers(1, 3)),
    st.tuples(st.just("refuse"), st.integers(1, 3)),
    st.tuples(st.just("truncate"), st.integers(0, 4)),
    st.tuples(st.just("replay"), st.integers(0, 6)),
)


@given(st.lists(STEPS, max_size=30))
def test_whatever_happens_the_replay_gets_what_the_log_holds(steps: list[tuple[str, int]]) -> None:
    """Each step writes another value, so that a batch of an older step is recognized."""
    log, replayed = Log(), 0
    for number, (step, count) in enumerate(steps):
        whole = log.decoded()
        end = whole[-1].last.offset + 1 if whole else 0
        committed = next((i for i, each in enumerate(whole) if each.base_offset >= replayed), None)
        new = batch(end, f"{step} {number}", epoch=number, records=count)
        if step == "follow":
            log.follow(new)
        elif step == "lead":
            log.batches.append(new)
        elif step == "refuse":
            log.check(new)
        elif step == "truncate":
            log.truncate(max(len(whole) - count, len(whole) if committed is None else committed))
        else:
            taken = log.checked.take(replayed, replayed + count, FAR)
            expected = [each for each in whole if each.base_offset >= replayed][: len(taken)]
            assert taken == expected
            assert all(each.last.offset < replayed + count for each in taken)
            if taken:
                replayed = taken[-1].last.offset + 1
            elif committed is not None:  # as if it had been read from the log
                replayed = whole[committed].last.offset + 1
