"""The property of compaction: after any history, the latest value of each key is unchanged, offsets
never change, the order holds, and a reader that began before a tombstone sees it."""

from __future__ import annotations

import errno
import random
from contextlib import suppress

import pytest

from quorate.broker.compaction import cleaning
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import assemble, batches, build_batch, read_header
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record, write_bytes, write_varint
from tests.sim.world.disk import PowerCut
from tests.thirds import THIRDS
from tests.unit.compaction.histories import DELETE_RETENTION_MS, Replica, latest


def script(replica: Replica, steps: int) -> None:
    """Run random operations. Everything random comes from the replica."""
    rand = replica.random
    for _ in range(steps):
        what = rand.random()
        if what < 0.55:
            replica.append(rand.randrange(1, 6), codec=rand.choice([Codec.NONE, Codec.GZIP]))
        elif what < 0.75:
            replica.flush()
            replica.clean()
        elif what < 0.82:
            replica.truncate(rand.randint(replica.high_watermark, replica.log.end_offset))
            replica.epoch += 1
        elif what < 0.9:
            replica.flush()
        else:
            replica.wall_ms += rand.choice([1, 400, DELETE_RETENTION_MS])
        replica.check()
        replica.check_tombstones()


@pytest.mark.parametrize("seed", range(40))
def test_any_history_keeps_the_latest_values(seed: int) -> None:
    replica = Replica(seed)
    script(replica, 120)
    assert replica.cleanings > 2
    found = replica.read()
    for at_ms in range(10_000, replica.wall_ms + 20, 7):
        first = next((each for each in found if each.at_ms >= at_ms), None)
        looked_up = replica.log.offset_for_timestamp(at_ms)
        assert (looked_up and looked_up.offset) == (first and first.offset)


@pytest.mark.parametrize("first", THIRDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_crash_at_every_disk_call_of_a_history_keeps_the_latest_values(
    seed: int, first: int
) -> None:
    whole = Replica(seed)
    script_of_crash(whole)
    assert whole.cleanings >= 2
    crashed = 0
    for call in range(first, whole.disk.calls, 3):
        for power in (True, False):
            replica = Replica(seed)
            replica.disk.die_at = replica.disk.calls + call
            try:
                script_of_crash(replica)
            except PowerCut:
                crashed += 1
            replica.start_again(replica.disk.crash() if power else replica.disk.restart())
            assert replica.log.end_offset >= replica.recovery_point
            replica.check()
            left = [each for each in replica.disk.list("/d/t-0") if "." in each]
            assert not [each for each in left if each.endswith((".cleaned", ".swap", ".deleted"))]
            replica.append(3)
            for _ in range(20):
                replica.append(3)
            replica.clean()
            replica.check()
    assert crashed > 100


def test_a_cleaned_segment_is_synced_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fsync of a whole segment would delay the fsyncs and appends of other logs."""
    monkeypatch.setattr(cleaning, "SYNC_BYTES", 100)
    replica = Replica(1, map_keys=1)  # nearly nothing is removed
    for _ in range(40):
        replica.append(2)
    replica.high_watermark = replica.log.end_offset
    replica.flush()
    writes, most = 0, 0

    def before(operation: str, path: str) -> None:
        nonlocal writes, most
        if path.endswith(".log.cleaned"):
            writes = {"pwrite": writes + 1, "sync": 0}.get(operation, writes)
            most = max(most, writes)

    replica.disk.before = before
    assert replica.clean() is not None
    assert most == 1


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_between_two_replacements_loses_no_key_of_the_unflushed_tail(seed: int) -> None:
    """The earlier record of a key may only go if the later one is on the disk."""
    whole = Replica(seed, map_keys=50)
    unflushed_tail(whole)
    assert whole.cleanings == 1
    for call in range(1, whole.disk.calls):
        replica = Replica(seed, map_keys=50)
        replica.disk.die_at = replica.disk.calls + call
        with suppress(PowerCut):
            unflushed_tail(replica)
        replica.start_again(replica.disk.crash(forgetful=True))
        replica.check()


def unflushed_tail(replica: Replica) -> None:
    for flushed in (True, False):
        for _ in range(40):
            replica.append(2)
        replica.high_watermark = replica.log.end_offset
        if flushed:
            replica.flush()
    replica.clean()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_rename_that_fails_at_any_moment_of_a_cleaning_loses_nothing(code: int) -> None:
    """A directory may need a new block for a longer name, so that a full disk refuses it. The node
    goes on after ENOSPC, unless the log has lost a source. Both must keep all records."""
    stopped = aborted = 0
    for number in range(60):
        replica = Replica(number)
        for _ in range(40):
            replica.append(2)
        replica.flush()
        left = number % 15

        def before(operation: str, path: str) -> None:
            nonlocal left
            if operation == "rename":
                left -= 1
                if left == -1:
                    raise OSError(code, "no rename", path)

        replica.disk.before = before
        try:
            replica.clean()
        except OSError as error:
            goes_on = error.errno == errno.ENOSPC
            stopped, aborted = stopped + (not goes_on), aborted + goes_on
            replica.disk.before = lambda operation, path: None
            if goes_on:
                replica.check()
                replica.clean()
                replica.check()
            replica.log.close()
        replica.start_again(replica.disk.restart())
        replica.check()
        assert replica.log.end_offset == 80
    assert stopped >= 5 and (aborted >= 5 or code != errno.ENOSPC)


@pytest.mark.parametrize("deltas", [(0, 1_000_000), (0, 2**31 - 1), (1, 0), (0, 0), (-5, 1)])
def test_offsets_that_a_producer_invents_do_not_move_the_checkpoint(
    deltas: tuple[int, int],
) -> None:
    """A broker does not read the offset deltas in a payload. The checkpoint once lay above the log
    end, so that the cleaner began again without a pause, forever."""
    replica = Replica(1, map_keys=100)
    for _ in range(20):
        replica.append(2)
    base = replica.log.end_offset
    header = read_header(
        build_batch([Record(base + each, 1, b"k", b"v") for each in (0, 1)], leader_epoch=0)
    )
    payload = bytearray()
    for number, delta in enumerate(deltas):
        body = bytearray(1)  # the attributes
        write_varint(body, 0)
        write_varint(body, delta)
        write_bytes(body, b"other%d" % number)
        write_bytes(body, b"v" * 400)
        write_varint(body, 0)
        write_varint(payload, len(body))
        payload += body
    data = assemble(payload, header)
    replica.log.append(data, wall_ms=replica.wall_ms)
    replica.append(1)  # so that the batch is the last that is cleaned
    replica.high_watermark = replica.log.end_offset
    replica.flush()
    found = replica.clean()
    assert found is not None and found <= replica.log.end_offset
    assert replica.log.read(base, 1)[: len(data)] == data


@pytest.mark.parametrize("gap", [100, 10**6, 2**31 - 2])
def test_gaps_larger_than_the_map_do_not_hold_up_the_cleaner(gap: int) -> None:
    """KAFKA-3587, KAFKA-8764: the gap counted as keys, or the next range began inside of it."""
    replica = Replica(1, map_keys=10)
    for number in range(12):
        base = replica.log.end_offset + (gap if number in (4, 8) else 0)
        for _ in range(2):
            data = build_batch([Record(base, 1, b"k%d" % number, b"v" * 250)], leader_epoch=0)
            replica.log.append(data, wall_ms=1, gaps=True)
            base = replica.log.end_offset
    replica.high_watermark = replica.log.end_offset
    replica.flush()
    rounds = 0
    while (found := replica.clean()) is not None:
        rounds += 1
        assert rounds < 5
    assert found is None and replica.checkpoint == replica.log.sealed_segments[-1].next_offset
    assert len({each.key for each in replica.read()}) == 12


def test_recovery_keeps_the_start_of_an_epoch_whose_first_batches_are_gone() -> None:
    """A follower with other records at 6 and 7 would not notice that it diverges."""
    replica = Replica(3, map_keys=100)
    for number in range(18):
        key = b"x" if 6 <= number < 10 or number > 15 else b"k%d" % number
        data = build_batch([Record(number, 1, key, b"v" * 100)], leader_epoch=int(number >= 6))
        replica.log.append(data, wall_ms=replica.wall_ms)
    replica.high_watermark = replica.log.end_offset
    replica.flush()
    entries = list(replica.log.epochs.entries)
    assert replica.clean() is not None
    replica.flush()
    assert read_header(replica.log.read(6, 1)).base_offset == 8
    replica.recovery_point = 1
    replica.start_again(replica.disk.restart())
    assert list(replica.log.epochs.entries) == entries
    assert entries == [EpochOffset(0, 0), EpochOffset(1, 6)]


def script_of_crash(replica: Replica) -> None:
    for _ in range(3):
        for _ in range(25):
            replica.append(2)
        replica.flush()
        replica.wall_ms += DELETE_RETENTION_MS
        replica.clean()


@pytest.mark.parametrize("seed", range(30))
def test_a_truncation_at_any_moment_of_a_cleaning_brings_nothing_back(seed: int) -> None:
    replica = Replica(seed)
    for _ in range(40):
        replica.append(2)
    replica.high_watermark = replica.log.end_offset - 40
    replica.flush()
    rand, at = random.Random(seed), seed
    calls = 0

    def between() -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            replica.truncate(rand.randint(replica.high_watermark, replica.log.end_offset))
            replica.epoch += 1

    before = list(replica.written)
    replica.clean(between)
    end = replica.log.end_offset
    if seed % 2:
        replica.start_again(replica.disk.restart())
        assert replica.log.end_offset <= end
    else:  # a power cut may undo the truncation, which is not synced in a partition
        replica.written = before
        replica.start_again(replica.disk.crash())
    replica.check()


@pytest.mark.parametrize("seed", range(8))
def test_an_unclean_truncation_at_any_moment_is_not_undone_by_the_next_start(seed: int) -> None:
    """An unclean election truncates below the high watermark. A replacement that has begun must not
    bring the old records back, nor remove those that the new leader appended."""
    for at in range(1, 60):
        replica = Replica(seed, map_keys=50)
        for _ in range(40):
            replica.append(2)
        replica.flush()
        calls = 0

        def between(replica: Replica = replica, at: int = at) -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                replica.truncate(replica.random.randrange(1, replica.log.end_offset))
                replica.epoch += 1
                replica.append(3)

        replica.clean(between)
        found = replica.read()
        replica.start_again(replica.disk.restart())
        assert replica.read() == found
        if calls < at:
            break


@pytest.mark.parametrize("seed", range(20))
def test_appends_reads_and_a_crash_between_the_steps_of_a_cleaning(seed: int) -> None:
    replica = Replica(seed)
    for _ in range(30):
        replica.append(2)
    replica.flush()
    rand = random.Random(seed)

    def between() -> None:
        if rand.random() < 0.5:
            replica.append(1)
        replica.check()

    replica.clean(between)
    replica.log.close()
    replica.recovery_point = replica.log.flushed_offset
    replica.disk = replica.disk.restart()
    replica.log = replica.open(clean=True)
    replica.check()


@pytest.mark.parametrize("seed", range(10))
def test_a_follower_that_fetches_a_compacted_log_has_the_same_values(seed: int) -> None:
    leader = Replica(seed)
    for _ in range(4):
        for _ in range(15):
            leader.append(2)
        leader.flush()
        leader.clean()
    follower = Replica(seed + 100)
    while data := leader.log.read(follower.log.end_offset, 200):
        follower.log.append(data, wall_ms=0, gaps=True)
    assert follower.log.gaps
    follower.written = leader.written
    assert follower.log.end_offset == leader.log.end_offset
    follower.check()
    follower.flush()
    follower.start_again(follower.disk.crash())
    follower.check()
    for offset in range(follower.log.start_offset, follower.log.end_offset):
        first = next(header for _, header in batches(follower.log.read(offset, 1)))
        assert first.next_offset > offset


def test_a_reader_that_began_before_a_tombstone_sees_it() -> None:
    """A reader takes less than delete.retention.ms to the end of the log, over several rounds."""
    for seed in range(30):
        replica = Replica(seed)
        for _ in range(30):
            replica.append(2)
        state: dict[bytes, bytes | None] = {}
        at, began_ms = replica.log.start_offset, replica.wall_ms
        while at < replica.log.end_offset:
            assert replica.wall_ms - began_ms < DELETE_RETENTION_MS
            data = replica.log.read(at, 150)
            until = [header.next_offset for _, header in batches(data)][-1]
            for each in [one for one in replica.read(at) if one.offset < until]:
                state[each.key] = each.value
            at = until
            if len(replica.written) < 90:
                replica.append(1)
            if at > 25:  # the reader has old values, and the tombstones are still to come
                replica.flush()
                replica.clean()
        assert replica.cleanings > 1
        assert {key: value for key, value in state.items() if value is not None} == latest(
            replica.written
        )
