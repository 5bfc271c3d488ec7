"""Replicas on disk after retention: deleted records are no difference."""

from __future__ import annotations

from pathlib import Path

from quorate.cli.chaos.workload.replicas import differing
from quorate.quorum.log.batches.batch import build_value_batch


def segment(log_dir: Path, base_offset: int, *values: bytes) -> None:
    """Write a segment of t-0 with one batch for each value."""
    directory = log_dir / "t-0"
    directory.mkdir(parents=True, exist_ok=True)
    content = b"".join(
        build_value_batch([value], base_offset=base_offset + number, leader_epoch=1, timestamp_ms=0)
        for number, value in enumerate(values)
    )
    (directory / f"{base_offset:020}.log").write_bytes(content)


def differences(tmp_path: Path) -> dict[int, object]:
    """Return the partitions whose two replicas differ."""
    log_dirs = {1: tmp_path / "1", 2: tmp_path / "2"}
    return dict(differing(log_dirs, "t", {0: (1, 2)}))


def test_segments_that_one_replica_deleted_are_no_difference(tmp_path: Path) -> None:
    for broker in ("1", "2"):
        segment(tmp_path / broker, 2, b"c", b"d")
    segment(tmp_path / "1", 0, b"a", b"b")
    assert differences(tmp_path) == {}


def test_a_log_that_retention_emptied_ends_where_the_other_one_ends(tmp_path: Path) -> None:
    """A soak test reported a difference, because the empty log seemed to end at offset 0."""
    segment(tmp_path / "1", 0, b"a", b"b")
    segment(tmp_path / "2", 2)
    assert differences(tmp_path) == {}


def test_another_end_or_another_byte_is_a_difference(tmp_path: Path) -> None:
    segment(tmp_path / "1", 0, b"a", b"b")
    segment(tmp_path / "2", 1)
    assert list(differences(tmp_path)) == [0]
    segment(tmp_path / "2", 0, b"a", b"c")
    (tmp_path / "2" / "t-0" / f"{1:020}.log").unlink()
    assert list(differences(tmp_path)) == [0]
