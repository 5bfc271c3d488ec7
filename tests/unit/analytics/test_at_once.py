"""Rows that are decoded many at once equal those of the codecs, whatever the ranges."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")

from quorate.config.sensitive import HIDDEN
from quorate.quorum.analytics.log.errors import DamagedLog
from quorate.quorum.analytics.log.segments import history_slices, log_slices, metadata_dir
from quorate.quorum.analytics.spark import framed, rows
from quorate.quorum.analytics.spark.columns import COLUMNS, FILLED_BY
from quorate.quorum.analytics.spark.rows import EVERYTHING, Request, arrow_batches
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import batches as read_batches
from quorate.quorum.log.batches.batch import build_batch, build_value_batch, records_of
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.errors import MalformedRecord
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.record_text import (
    control_message,
    metadata_message,
    text_of,
    type_name,
)
from quorate.quorum.metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    NoOpRecord,
    TopicRecord,
)
from tests.unit.analytics.any_records import record_values
from tests.unit.analytics.logs import (
    ABORT,
    BEGIN,
    END,
    START_MS,
    batches,
    leadership_of,
    snapshot_of,
    write_segment,
)
from tests.unit.metadata.kafka_dump import C1

COMMON = settings(max_examples=60)
STRICT = Request(strict=True)
NOTHING: dict[str, Any] = dict.fromkeys(COLUMNS)


def one_by_one(data: bytes, *, with_json: bool = True) -> list[dict[str, Any]]:
    """Return the expected rows, from the codecs of a node and each column's rule for one record."""
    rows = []
    for position, header in read_batches(data):
        for record in records_of(data, position, header):
            read = control_message if header.is_control else metadata_message
            message, version = read(record)
            fills = FILLED_BY.get(type(message), {})
            rows.append(
                NOTHING
                | {name: fill.of([message])[0] for name, fill in fills.items()}
                | {
                    "offset": record.offset,
                    "timestamp_ms": record.timestamp_ms,
                    "epoch": header.leader_epoch,
                    "type": type_name(message),
                    "version": version,
                    "record": text_of(message, version) if with_json else None,
                }
            )
    return rows


def at_once(
    data: bytes, request: Request = EVERYTHING, slice_bytes: int = 1 << 20
) -> list[dict[str, Any]]:
    with TemporaryDirectory() as directory:
        write_segment(Path(directory), 0, data)
        return rows_of(Path(directory), request, slice_bytes)


def rows_of(directory: Path, request: Request, slice_bytes: int) -> list[dict[str, Any]]:
    return [
        row
        for piece in log_slices(metadata_dir(str(directory)), slice_bytes)
        for batch in arrow_batches(piece, request)
        for row in batch.to_pylist()
    ]


def same(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with lists in place of tuples, as the oracle has them."""
    left_out = ("timestamp", "effective", "cluster_id", "node_id", "file", "committed")
    return [
        {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in row.items()
            if name not in left_out
        }
        for row in rows
    ]


def without_file(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without the file, whose directory is a new one each time."""
    return [{name: value for name, value in row.items() if name != "file"} for row in rows]


def log_of(values: list[bytes], in_batch: int = 3) -> bytes:
    return b"".join(
        bytes(
            build_value_batch(
                values[start : start + in_batch],
                base_offset=start,
                leader_epoch=start // 5,
                timestamp_ms=START_MS + start,
            )
        )
        for start in range(0, len(values), in_batch)
    )


@COMMON
@given(st.lists(record_values(), min_size=1, max_size=30), st.booleans())
def test_any_records(values: list[bytes], with_json: bool) -> None:
    data = log_of(values)
    expected = one_by_one(data, with_json=with_json)
    assert same(at_once(data, Request(with_json=with_json))) == same(expected)


@COMMON
@given(st.lists(record_values(), min_size=1, max_size=5), st.data())
def test_damaged_values_are_refused_or_read_alike(values: list[bytes], draw: st.DataObject) -> None:
    """A value that no column needs is skipped by its length, so damage inside it is not noticed.

    A permissive reader returns all other records, and a row about the damage."""
    chosen = draw.draw(st.integers(0, len(values) - 1))
    damaged = bytearray(values[chosen])
    damaged[draw.draw(st.integers(0, len(damaged) - 1))] = draw.draw(st.integers(0, 255))
    data = log_of([*values[:chosen], bytes(damaged), *values[chosen + 1 :]])
    try:
        expected = one_by_one(data)
    except MalformedRecord:
        with pytest.raises(DamagedLog):
            at_once(data, STRICT)
        *rows, remark = at_once(data)
        assert [row["offset"] for row in rows] == [
            offset for offset in range(len(values)) if offset != chosen
        ]
        assert (remark["remark"], remark["offset"]) == ("damaged-record", chosen)
        assert (remark["remark_end"], remark["effective"]) == (chosen + 1, False)
    else:
        assert same(at_once(data)) == same(expected)


def test_text_that_is_no_utf8_names_its_record() -> None:
    value = b"\1\4\0\2\3\xff\xfe\2n\0\0"
    with pytest.raises(DamagedLog, match=r"the record at offset 0 .* 01 04 00 02 03 ff fe"):
        at_once(log_of([value]), Request(with_json=False, strict=True))


def test_batches_and_records_of_every_shape() -> None:
    """Compressed batches, control records, keys, headers and deltas of time are rare cases."""
    value = encode_record(NoOpRecord())
    records = [
        Record(1, START_MS, None, value),
        Record(2, START_MS - 70_000_000, None, encode_record(BEGIN)),
        Record(3, START_MS + 1, b"key", value),
        Record(4, START_MS + 2, None, value, (("name", b"header"),)),
        Record(5, START_MS + (1 << 40), None, value),
    ]
    later = [record._replace(offset=record.offset + 5) for record in records]
    data = leadership_of(1, epoch=1, offset=0, at_ms=START_MS) + bytes(
        build_batch(records, leader_epoch=1) + build_batch(later, leader_epoch=1, codec=Codec.GZIP)
    )
    assert same(at_once(data)) == same(one_by_one(data))
    assert [row["effective"] for row in at_once(data)] == [True] * 2 + [False] * 9


def test_a_batch_whose_records_do_not_fill_it_is_corrupt() -> None:
    one = build_value_batch(
        [encode_record(NoOpRecord())], base_offset=0, leader_epoch=1, timestamp_ms=START_MS
    )
    one[23:27], one[57:61] = (1).to_bytes(4, "big"), (2).to_bytes(4, "big")  # claims two
    one[17:21] = crc32c(one[21:]).to_bytes(4, "big")
    with pytest.raises(DamagedLog, match="the batch at offset 0 cannot be decoded"):
        at_once(bytes(one), STRICT)
    good = leadership_of(1, epoch=1, offset=2, at_ms=START_MS)
    leader, remark = at_once(bytes(one) + good)
    assert (leader["offset"], leader["type"]) == (2, "LEADER_CHANGE")
    assert (remark["offset"], remark["remark"], remark["remark_end"]) == (0, "damaged-batch", 2)


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=12)


@COMMON
@given(SIZES, st.integers(0, 300), st.sampled_from([1, 2, 4, 256]))
def test_batches_are_followed_together_or_alone(
    sizes: list[int], long_bytes: int, together: int
) -> None:
    """Some batches have more records than others, and some lengths have two bytes."""
    topic = TopicRecord(name="t" * (1 + long_bytes), topic_id=Uuid(bytes(16)))
    values = [encode_record(each) for each in (NoOpRecord(), topic)]
    data, offset = b"", 0
    for size in sizes:
        made = [values[(offset + place) % 3 == 0] for place in range(size)]
        data += build_value_batch(made, base_offset=offset, leader_epoch=1, timestamp_ms=START_MS)
        offset += size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framed, "TOGETHER", together)
        assert same(at_once(data)) == same(one_by_one(data))


@pytest.mark.parametrize("together", [1, 256])
@pytest.mark.parametrize("length", [b"\x94\x80\x80\x80\x80\x80\x00", b"\x0f", b"\xff\xff\xff\x7f"])
def test_unusual_lengths_of_records(
    monkeypatch: pytest.MonkeyPatch, together: int, length: bytes
) -> None:
    """A length may be needlessly long. A negative one, or one beyond the batch, is damage."""
    monkeypatch.setattr(framed, "TOGETHER", together)
    value = encode_record(NoOpRecord())
    one = build_value_batch([value] * 2, base_offset=0, leader_epoch=1, timestamp_ms=START_MS)
    one[61:62] = length
    one[8:12] = (len(one) - 12).to_bytes(4, "big")
    one[17:21] = crc32c(one[21:]).to_bytes(4, "big")
    good = leadership_of(1, epoch=1, offset=2, at_ms=START_MS)
    try:
        expected = one_by_one(bytes(one) + good)
    except CorruptBatch:
        (leader, remark) = at_once(bytes(one) + good)
        assert (leader["offset"], remark["offset"], remark["remark"]) == (2, 0, "damaged-batch")
    else:
        assert len(length) > 5
        assert same(at_once(bytes(one) + good)) == same(expected)


SCRIPTS = st.lists(
    st.lists(st.sampled_from([BEGIN, END, ABORT, NoOpRecord()]), min_size=1, max_size=4),
    max_size=12,
)


@settings(COMMON, max_examples=40)
@given(SCRIPTS, st.integers(1, 900))
def test_any_ranges_give_the_rows_of_one(script: list[list[Any]], slice_bytes: int) -> None:
    """A transaction (KIP-868) may begin in one range, continue in the next and end in a third."""
    data = b"".join(batches(script))
    whole = without_file(at_once(data))
    assert without_file(at_once(data, slice_bytes=slice_bytes)) == whole
    assert [row["effective"] for row in whole] == effective(whole)


def effective(rows: list[dict[str, Any]]) -> list[bool]:
    """Return the records that took effect. Those of a transaction do so when it ends."""
    says = [True] * len(rows)
    open_since: int | None = None
    for place, row in enumerate(rows):
        kind = row["type"].removesuffix("_TRANSACTION_RECORD")
        ends = place + (kind == "ABORT")
        if open_since is not None and kind in ("BEGIN", "ABORT"):
            says[open_since:ends] = [False] * (ends - open_since)
        if kind in ("BEGIN", "END", "ABORT"):
            open_since = place if kind == "BEGIN" else None
    if open_since is not None:
        says[open_since:] = [False] * (len(rows) - open_since)
    return [each or row["type"] == "LEADER_CHANGE" for each, row in zip(says, rows, strict=True)]


@settings(COMMON, max_examples=15)
@given(st.integers(50, 40_000))
def test_any_ranges_of_a_real_kafkas_log(slice_bytes: int) -> None:
    request = Request(with_json=False)
    assert rows_of(C1, request, slice_bytes) == rows_of(C1, request, 1 << 20)


def test_a_history_begins_with_the_snapshot_that_reaches_the_first_segment(tmp_path: Path) -> None:
    """Kafka deletes whole segments, so the snapshot usually ends inside of the first one that is
    left, and holds the earlier records of it."""
    made = batches()
    loader = Loader(MetadataImage())
    loader.feed(metadata_batches(b"".join(made[:8])))
    first = int.from_bytes(made[5][:8], "big")
    path = write_segment(tmp_path, first, b"".join(made[5:]))
    end_offset = loader.image.last.offset + 1
    assert first < end_offset
    name = f"{end_offset:020d}-0000000001.checkpoint"
    path.with_name(name).write_bytes(snapshot_of(loader.image))
    path.with_name(f"{first - 1:020d}-0000000001.checkpoint").write_bytes(b"older")
    base, *log = history_slices(metadata_dir(str(tmp_path)), 100)
    assert os.path.basename(base.path) == name
    offsets = [
        offset
        for piece in log
        for batch in arrow_batches(piece)
        for offset in batch.column("offset").to_pylist()
        if not piece.only_named
    ]
    last = one_by_one(b"".join(made))[-1]["offset"]
    assert offsets == list(range(end_offset, last + 1))


CONFIGS = [
    ConfigRecord(resource_type=kind, resource_name="x", name=name, value=value)
    for kind, name, value in (
        (2, "min.insync.replicas", "2"),
        (4, "ssl.keystore.password", "s3cret"),
        (4, "a.key.of.a.plug-in", "s3cret"),
        (16, "a.key.of.a.plug-in", "shown"),
        (2, "retention.ms", None),
        (4, "ssl.keystore.password", None),
    )
]


def test_configs_are_read_at_once_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of([encode_record(each) for each in CONFIGS * 2])
    request = Request(("name", "value"), with_json=False)
    expected = [(row["name"], row["value"]) for row in one_by_one(log)]
    assert [value for _, value in expected[:6]] == ["2", HIDDEN, HIDDEN, "shown", None, None]
    single: list[int] = []
    read = rows._Rows._read_one_by_one

    def counted(self: rows._Rows, left: list[int]) -> None:
        single.extend(left)
        read(self, left)

    monkeypatch.setattr(rows._Rows, "_read_one_by_one", counted)
    assert [(row["name"], row["value"]) for row in at_once(log, request)] == expected
    assert single == [1, 2, 5, 7, 8, 11], "only secrets are read one by one"


def test_types_that_need_codecs_are_left_out_without_decoding_them() -> None:
    quota = ClientQuotaRecord(entity=(), key="producer_byte_rate", value=1.0, remove=False)
    log = log_of([encode_record(each) for each in (quota, CONFIGS[0], quota)])
    (row,) = at_once(log, Request(types=frozenset({"CONFIG_RECORD"}), with_json=False))
    assert (row["type"], row["offset"], row["value"]) == ("CONFIG_RECORD", 1, "2")
