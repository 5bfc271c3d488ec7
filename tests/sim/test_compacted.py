"""The checks of compacted partitions: the cleaner runs, and each wrong history is found."""

from __future__ import annotations

import asyncio

import pytest

from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from tests.sim.checks.committed_log import Violation
from tests.sim.checks.compacted_log import CompactedLog, Keyed
from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.workloads.compacted import Compacted, Reader
from tests.sim.world.shape import Shape

RUN_S, PACE_S = 16, 0.1
DELETED = "workload compacted: logs whose head was deleted"
READERS = "workload compacted: tombstones that readers saw"


def batch(*records: tuple[int, bytes, bytes | None]) -> bytes:
    made = [Record(offset, 0, key, value) for offset, key, value in records]
    return bytes(build_batch(made, leader_epoch=0))


@pytest.fixture
def log() -> CompactedLog:
    made = CompactedLog("t-0")
    data = batch((0, b"a", b"1"), (1, b"b", b"1"), (2, b"a", b"2"), (3, b"b", None))
    assert made.holds("b1", data, 4) == 4
    return made


def test_a_replica_may_lack_what_a_later_record_replaced(log: CompactedLog) -> None:
    assert log.holds("b2", batch((2, b"a", b"2")), 4) == 3
    assert log.missing([2], 4) == ""
    assert log.missing([0], 2) == "", "the latest record of the key is above the end"


def test_a_record_that_changed(log: CompactedLog) -> None:
    with pytest.raises(Violation, match="others had"):
        log.holds("b2", batch((2, b"a", b"1")), 4)
    with pytest.raises(Violation, match="others had"):
        log.holds("b2", batch((0, b"a", b"2")), 4)


def test_records_out_of_order(log: CompactedLog) -> None:
    with pytest.raises(Violation, match="b2 has 0 after 2"):
        log.holds("b2", batch((2, b"a", b"2")) + batch((0, b"a", b"1")), 4)


def test_the_latest_record_of_a_key_is_missing(log: CompactedLog) -> None:
    assert "the latest record of b'a', at 2, is missing" in log.missing([0, 1, 3], 4)


def test_a_replica_may_lack_what_is_below_its_start(log: CompactedLog) -> None:
    assert log.missing([], 4, 3) == ""
    assert "the latest record of b'a', at 2, is missing" in log.missing([], 4, 2)


def test_a_cleaned_log_has_one_record_of_each_key(log: CompactedLog) -> None:
    assert log.left_over([1, 2, 3], 3) == ""
    assert log.left_over([0, 1, 2, 3], 2) == "", "the later record is not cleaned yet"
    assert "still has b'a' at 0 and at 2" in log.left_over([0, 1, 2, 3], 3)


async def written_and_cleaned(stage: Simulation) -> Compacted:
    await settled(stage)
    work = await stage.begin(Compacted, PACE_S)
    await asyncio.sleep(RUN_S)
    assert isinstance(work, Compacted)
    return work


@pytest.mark.parametrize("name", ["compacted", "compacted and deleted"])
def test_the_cleaner_runs_and_wrong_histories_are_found(name: str) -> None:
    async def script(stage: Simulation) -> None:
        work = await written_and_cleaned(stage)
        await healed(stage)
        fewest = 20 if work.deletes else 100
        assert stage.coverage["workload compacted: records cleaned away"] > fewest
        assert stage.coverage["compacted replicas compared"] == 3
        assert stage.coverage[READERS] > 0
        assert work.start_offset == 0 or work.deletes
        records = [
            (offset, found)
            for offset, found in work.acknowledged.items()
            if found.value is not None
        ]
        offset, last = records[-1]
        with pytest.raises(Violation, match="the value of"):
            work.check_records([])
        with pytest.raises(Violation, match=f"acknowledged at {offset}, found"):
            work.check_records([(offset, Keyed(last.key, b"another"))])

        end = max(work.acknowledged) + 1
        with pytest.raises(Violation, match=f"the log starts at {end}, above"):
            work.check_start(end)
        reader = Reader(0.0, leader=4, epoch=0, behind=0, position=end)
        reader.values.update({found.key: found.value for found in work.acknowledged.values()})
        work.check_reader(reader)
        tombstone = next(key for key, value in reader.values.items() if value is None)
        reader.values[tombstone] = b"an older value"
        with pytest.raises(Violation, match="a reader up to"):
            work.check_reader(reader)

    with simulation(name, Shape(overrides=Compacted.keys)) as stage:
        play(stage, script(stage))
        assert bool(stage.coverage[DELETED]) == (name == "compacted and deleted")
