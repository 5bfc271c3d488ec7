"""The comparison of a partition's replicas on disk: equal ones, differing ones, and the number of
differing records."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.chaos.actions.link_actions import fetch_addresses
from quorate.cli.chaos.actions.scenario_run import StepFailed
from quorate.cli.chaos.timeline.metadata_tail import MetadataTail, log_end
from quorate.cli.chaos.workload.replicas import copy_of, differing, only_here
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import Endpoint, NoOpRecord, RegisterBrokerRecord, TopicRecord


def write(log_dir: Path, *batches: tuple[int, int, bytes], segment: int = 0) -> None:
    """Batches of two records: (base offset, leader epoch, value)."""
    directory = log_dir / "t-0"
    directory.mkdir(parents=True, exist_ok=True)
    content = b"".join(
        bytes(build_batch([Record(base + n, 1, b"k", value) for n in range(2)], leader_epoch=epoch))
        for base, epoch, value in batches
    )
    (directory / f"{segment:020d}.log").write_bytes(content)


def test_segments_may_be_cut_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "4", (0, 0, b"a"), (2, 0, b"b"))
    write(tmp_path / "5", (0, 0, b"a"))
    write(tmp_path / "5", (2, 0, b"b"), segment=2)
    log_dirs = {4: tmp_path / "4", 5: tmp_path / "5"}
    assert differing(log_dirs, "t", {0: (4, 5)}) == {}
    assert copy_of(tmp_path / "4", "t", 0).end_offset == 4


def test_another_tail_is_found_and_counted(tmp_path: Path) -> None:
    write(tmp_path / "4", (0, 0, b"a"), (2, 0, b"zombie"), (4, 0, b"zombie"))
    write(tmp_path / "5", (0, 0, b"a"), (2, 1, b"zombie"))
    log_dirs = {4: tmp_path / "4", 5: tmp_path / "5"}
    found = differing(log_dirs, "t", {0: (4, 5)})
    assert {broker: copy.last_epoch for broker, copy in found[0].items()} == {4: 0, 5: 1}
    assert only_here(log_dirs[4], log_dirs[5], "t", 0) == 4
    assert only_here(log_dirs[5], log_dirs[4], "t", 0) == 2


def test_a_metadata_log_is_followed_while_it_grows(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    batches = [
        bytes(build_batch([Record(offset, 100 + offset, None, value)], leader_epoch=1))
        for offset, value in enumerate(
            [
                encode_record(TopicRecord(name="t", topic_id=Uuid(bytes(16)))),
                encode_record(NoOpRecord()),
                encode_record(NoOpRecord()),
            ]
        )
    ]
    segment = directory / f"{0:020d}.log"
    segment.write_bytes(batches[0] + batches[1][:20])
    tail = MetadataTail(tmp_path)
    (first,) = tail.read()
    assert (first.offset, first.wall_ms, first.record) == (
        0,
        100,
        TopicRecord(name="t", topic_id=Uuid(bytes(16))),
    )
    segment.write_bytes(batches[0] + batches[1])
    (directory / f"{2:020d}.log").write_bytes(batches[2])
    assert [each.offset for each in tail.read()] == [1, 2]
    assert list(tail.read()) == []
    assert log_end(tmp_path) == (1, 3)


def test_a_truncated_log_is_followed_again(tmp_path: Path) -> None:
    """A controller that was paused truncates its log, and another one's batches follow."""
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()

    def batch(offset: int, epoch: int, size: int = 1) -> bytes:
        records = [
            Record(offset + each, 100, None, encode_record(NoOpRecord())) for each in range(size)
        ]
        return bytes(build_batch(records, leader_epoch=epoch))

    segment = directory / f"{0:020d}.log"
    segment.write_bytes(batch(0, 1) + batch(1, 1) + batch(2, 1, size=9))
    tail = MetadataTail(tmp_path)
    assert len(list(tail.read())) == 11
    segment.write_bytes(batch(0, 1) + batch(1, 2))
    assert list(tail.read()) == []
    segment.write_bytes(batch(0, 1) + b"".join(batch(each, 2) for each in range(1, 14)))
    assert [(each.offset, each.epoch) for each in tail.read()] == [(11, 2), (12, 2), (13, 2)]
    assert list(tail.read()) == []


def test_the_addresses_from_which_replicas_are_fetched(tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()

    def registration(offset: int, broker: int, port: int) -> bytes:
        ends = tuple(
            Endpoint(name=name, host="h", port=each, security_protocol=0)
            for name, each in (("PLAINTEXT", 1), ("REPLICATION", port))
        )
        record = RegisterBrokerRecord(
            broker_id=broker, incarnation_id=Uuid(bytes(16)), broker_epoch=0, end_points=ends
        )
        return bytes(
            build_batch([Record(offset, 100, None, encode_record(record))], leader_epoch=1)
        )

    segment = directory / f"{0:020d}.log"
    segment.write_bytes(registration(0, 4, 7) + registration(1, 5, 8) + registration(2, 4, 9))
    assert fetch_addresses(tmp_path, [4, 5]) == {4: "h:9", 5: "h:8"}
    with pytest.raises(StepFailed, match="the registration of broker 6 is in a snapshot only"):
        fetch_addresses(tmp_path, [4, 5, 6])
