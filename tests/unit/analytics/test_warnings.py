"""The table `warnings`: each silent error, made by hand. Sound logs are the oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.log.errors import (
    DamagedLog,
    MissingBase,
    NewerRecord,
    damage_said_plainly,
)
from quorate.quorum.analytics.tables import read_tables
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.unit.analytics.logs import (
    START_MS,
    STEP_MS,
    A,
    change,
    created,
    min_isr,
    write_segment,
)
from tests.unit.analytics.logs import leadership_of as control
from tests.unit.analytics.test_places import log_of, up_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # pyspark's own
    pytest.mark.timeout(240),
]
LED = control(1, epoch=1, offset=0, at_ms=START_MS)
NEWER = b"\x01\x03\x63of a later Kafka"
TOPIC = (TopicRecord(name="a", topic_id=A), created(A, 0, 1))
LOST = change(A, 0, "", leader=-1)


def batch(
    offset: int, *records: MetadataRecord | bytes, at: float | None = None, epoch: int = 1
) -> bytes:
    """Return a batch. `at` is its time in steps after the beginning; the default is its offset."""
    values = [each if isinstance(each, bytes) else encode_record(each) for each in records]
    at_ms = START_MS + round((offset if at is None else at) * STEP_MS)
    made = build_value_batch(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=at_ms)
    return bytes(made)


def tables(
    spark: SparkSession, directory: Path, *made: bytes, first: int = 0, also: Sequence[str] = ()
) -> dict[str, DataFrame]:
    """Return the table `warnings` of this log, and those that `also` names."""
    write_segment(directory, first, b"".join(made))
    return read_tables(spark, directory, only=("warnings", *also))


def said(found: dict[str, DataFrame], *columns: str) -> list[tuple[object, ...]]:
    rows = found["warnings"].orderBy("first_offset", "kind").collect()
    return [tuple(row[column] for column in columns) for row in rows]


@pytest.mark.long
def test_a_newer_version_makes_no_partition_of_nulls(spark: SparkSession, tmp_path: Path) -> None:
    made = LED, batch(1, *TOPIC), batch(3, NEWER, NEWER, b"\x01\x7f\0")
    found = tables(spark, tmp_path, *made, also=("partitions", "records"))
    assert [tuple(row) for row in found["partitions"].select("topic", "leader").collect()] == [
        ("a", 1)
    ]
    assert said(found, "kind", "severity", "first_offset", "last_offset", "count", "type") == [
        ("unknown-version", "error", 3, 4, 2, "PARTITION_RECORD"),
        ("unknown-type", "note", 5, 5, 1, "UNKNOWN_RECORD_127"),
    ]
    assert found["records"].where("remark is not null").count() == 3, "the records still show"
    strict = read_tables(spark, tmp_path, strict=True, only=("partitions",))["partitions"]
    with (
        pytest.raises(NewerRecord, match="offset 3 is a PARTITION_RECORD of version 99"),
        damage_said_plainly(),
    ):
        strict.count()


def test_a_log_without_its_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    found = tables(spark, tmp_path, batch(7, LOST), first=7)
    assert said(found, "kind", "severity", "first_offset", "last_offset", "count") == [
        ("missing-base", "error", 0, 6, 7),
        ("uncommitted-tail", "note", 7, 7, 1),
    ]
    strict = read_tables(spark, tmp_path, strict=True, only=("partitions",))["partitions"]
    with (
        pytest.raises(MissingBase, match="the log begins at offset 7, and no snapshot holds"),
        damage_said_plainly(),
    ):
        strict.count()


def test_damage_is_skipped_and_said(spark: SparkSession, tmp_path: Path) -> None:
    torn = bytearray(batch(3, NoOpRecord(), NoOpRecord()))
    torn[70] ^= 1
    made = LED, batch(1, *TOPIC), bytes(torn), batch(5, LOST), batch(9, NoOpRecord())
    found = tables(spark, tmp_path, *made, also=("partitions",))
    assert said(found, "kind", "severity", "first_offset", "last_offset", "count") == [
        ("damaged-batch", "error", 3, 4, 2),
        ("gap", "error", 6, 8, 3),
    ]
    assert "the batch at byte" in str(said(found, "detail")[0][0])
    assert [row["leader"] for row in found["partitions"].collect()] == [-1], "after the damage"


def test_a_fast_clock_lengthens_no_open_interval(spark: SparkSession, tmp_path: Path) -> None:
    """The second controller is a million steps ahead. The third one is right again."""
    found = tables(
        spark,
        tmp_path,
        LED,
        batch(1, *TOPIC, at=1),
        batch(3, NoOpRecord(), at=1_000_000, epoch=2),
        batch(4, NoOpRecord(), at=5, epoch=3),
        also=("leadership",),
    )
    (row,) = found["leadership"].collect()
    assert (row["end_ms"], row["duration_ms"]) == (None, 4 * STEP_MS)
    ((kind, severity, offset, detail),) = said(found, "kind", "severity", "first_offset", "detail")
    assert (kind, severity, offset) == ("clock-step", "note", 4)
    assert detail == (
        "The clock goes back by 999995000 ms at offset 4, between the controller epochs 2 and 3."
        " Durations across it are too short, and 0 if they would be negative."
    )


def test_a_clock_that_steps_back_lengthens_no_window(spark: SparkSession, tmp_path: Path) -> None:
    """The partition has no leader from step 2 to step 8, and the clock steps back meanwhile."""
    made = (
        LED,
        batch(1, *TOPIC, min_isr("a", "2"), at=1),
        batch(4, LOST, at=2),
        batch(5, change(A, 0, "", isr=(1, 2)), at=12),
        batch(6, change(A, 0, "", isr=(1,)), at=5, epoch=2),
        batch(7, change(A, 0, "", leader=1), at=8, epoch=2),
        batch(8, change(A, 0, "", isr=(1, 2, 3)), at=10, epoch=2),
    )
    found = tables(spark, tmp_path, *made, also=("min_isr_windows",))
    (row,) = found["min_isr_windows"].collect()
    assert (row["kind"], row["start_offset"], row["end_offset"]) == ("both", 4, 8)
    assert (row["duration_ms"], row["offline_ms"]) == (8 * STEP_MS, 6 * STEP_MS)


@pytest.mark.long
def test_a_snapshot_of_another_history(spark: SparkSession, tmp_path: Path) -> None:
    """One voter needs no snapshot to commit, so there is no uncommitted tail."""
    made = LED, batch(1, NoOpRecord(), epoch=4), batch(2, NoOpRecord(), epoch=3)
    path = write_segment(tmp_path, 0, b"".join(made))
    path.with_name(f"{2:020d}-0000000002.checkpoint").write_bytes(b"")
    assert said(read_tables(spark, tmp_path, only=("warnings",)), "kind", "first_offset") == [
        ("divergence", 1),  # The snapshot names epoch 2 for the record that is of epoch 4.
        ("divergence", 2),  # The epoch falls from 4 to 3.
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("voters", "snapshots", "expected"),
    [
        ((1, 2, 3), (1, 3), [("uncommitted-tail", 3, 3)]),
        ((1, 2, 3), (4,), []),
    ],
)
def test_the_tail_that_no_snapshot_proves(
    spark: SparkSession,
    tmp_path: Path,
    voters: Sequence[int],
    snapshots: Sequence[int],
    expected: list[tuple[object, ...]],
) -> None:
    led = control(1, epoch=1, offset=0, at_ms=START_MS, voters=voters)
    path = write_segment(tmp_path, 0, led + batch(1, *TOPIC) + batch(3, NoOpRecord()))
    for end in snapshots:
        path.with_name(f"{end:020d}-0000000001.checkpoint").write_bytes(b"")
    found = read_tables(spark, tmp_path, only=("warnings",))
    assert said(found, "kind", "first_offset", "last_offset") == expected


@pytest.mark.long
def test_differences_between_nodes_are_warnings(spark: SparkSession, tmp_path: Path) -> None:
    """Node 1 has a record of its own, and node 2 another record of the same epoch at offset 0."""
    root = up_directory(tmp_path, [[1, 1, 1], [1, 1, 2], [1, 1, 2]])
    log = root / "nodes" / "2" / "__cluster_metadata-0" / f"{0:020d}.log"
    log.write_bytes(log_of([1, 1, 2], late=0))
    rows = read_tables(spark, root, only=("warnings",))["warnings"].collect()
    seen = {(row["kind"], row["severity"], row["first_offset"]): row["detail"] for row in rows}
    assert "log of node 1 has records of another epoch" in seen["conflict", "note", 2]
    assert "have different records of the same epoch 1" in seen["divergence", "error", 0]
    with pytest.raises(DamagedLog, match="different histories"), damage_said_plainly():
        read_tables(spark, root, only=["topics"], strict=True)["topics"].collect()


@pytest.mark.long
def test_min_isr_is_unknown_unless_the_log_names_it(spark: SparkSession, tmp_path: Path) -> None:
    """The brokers' files may set it. A complete ISR is large enough for any setting."""
    setting = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    of_broker = ConfigRecord(
        resource_type=4, resource_name="1", name="min.insync.replicas", value="3"
    )
    found = tables(
        spark,
        tmp_path,
        LED,
        batch(1, *TOPIC, change(A, 0, "", isr=(1,)), change(A, 0, "", isr=())),
        batch(5, setting, change(A, 0, "", isr=(1,)), change(A, 0, "", isr=(1, 2)), of_broker),
        also=("isr",),
    )
    rows = found["isr"].orderBy("offset").select("size", "min_isr", "below_min", "began").collect()
    assert [tuple(row) for row in rows] == [
        (3, None, False, "created"),
        (1, None, None, "changed"),
        (0, None, True, "changed"),
        (1, 2, True, "changed"),
        (2, 2, False, "changed"),
    ]
    ((kind, offset, detail),) = said(found, "kind", "first_offset", "detail")
    assert (kind, offset) == ("broker-min-isr", 8)
    assert str(detail).startswith("Broker 1 has its own min.insync.replicas, which `min_isr`")


@pytest.mark.long
def test_an_outage_that_names_no_leader_twice_is_one(spark: SparkSession, tmp_path: Path) -> None:
    led_again = change(A, 0, "", leader=2)
    found = tables(
        spark,
        tmp_path,
        LED,
        batch(1, *TOPIC),
        batch(3, LOST),
        batch(
            4, RegisterBrokerRecord(broker_id=1, incarnation_id=A, broker_epoch=1, end_points=())
        ),
        batch(5, LOST),
        batch(7, led_again, at=7),
        batch(8, LOST),
        batch(9, NoOpRecord()),
        also=("availability",),
    )
    (row,) = found["availability"].collect()
    windows = [(each["start_ms"] - START_MS, each["duration_ms"]) for each in row["windows"]]
    assert windows == [(3 * STEP_MS, 4 * STEP_MS), (8 * STEP_MS, STEP_MS)]
    assert (row["longest_ms"], row["leaderless_ms"]) == (4 * STEP_MS, 5 * STEP_MS)
    assert row["leader_epochs"] == 2
