"""`quorate dump-log` prints the same lines as kafka-dump-log 4.1.1 for the same files."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record

FIXTURE = Path(__file__).parents[2] / "fixtures" / "kafka-4.1.1-metadata" / "c1"
DUMPED = sorted(path.name.removesuffix(".dump.txt") for path in FIXTURE.glob("*.dump.txt"))


def dump(*arguments: str) -> Result:
    """Run `quorate dump-log`."""
    return CliRunner().invoke(main, ["dump-log", *arguments])


def test_there_are_files_to_compare() -> None:
    assert len(DUMPED) >= 2


@pytest.mark.parametrize("name", DUMPED)
def test_metadata_as_kafka_shows_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURE)
    result = dump("--cluster-metadata-decoder", "--files", name)
    expected = (FIXTURE / f"{name}.dump.txt").read_text().splitlines()
    assert result.output.splitlines() == expected


def test_json_is_one_object_per_record() -> None:
    result = dump(
        "--cluster-metadata-decoder",
        *("--format", "json", "--files", str(FIXTURE / "00000000000000000000.log")),
    )
    rows = [json.loads(line) for line in result.output.splitlines()]
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    assert rows[2]["value"]["data"] == {"name": "metadata.version", "featureLevel": 27}


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment with one compressed batch of two records."""
    batch = build_batch(
        [
            Record(7, 1000, b"k", b"v"),
            Record(8, 1005, None, b"w", (("h", b"1"),)),
        ],
        leader_epoch=3,
        codec=Codec.ZSTD,
        producer_id=5,
        producer_epoch=1,
        base_sequence=2**31 - 1,
    )
    path = tmp_path / "00000000000000000007.log"
    path.write_bytes(bytes(batch) + b"torn")
    return path


def test_records_of_a_partition(segment: Path) -> None:
    lines = dump("--print-data-log", "--files", str(segment)).output.splitlines()
    assert lines[1] == "Log starting offset: 7"
    assert "baseSequence: 2147483647 lastSequence: 0 producerId: 5" in lines[2]
    assert "compresscodec: zstd" in lines[2]
    assert lines[2].endswith("isvalid: true")
    assert lines[3] == (
        "| offset: 7 CreateTime: 1000 keySize: 1 valueSize: 1 sequence: 2147483647 "
        "headerKeys: [] key: k payload: v"
    )
    assert lines[4].endswith("sequence: 0 headerKeys: [h] payload: w")
    assert lines[5] == f"Found 4 invalid bytes at the end of {segment.name}"


def test_a_damaged_batch_is_shown_as_invalid(segment: Path) -> None:
    content = bytearray(segment.read_bytes())
    content[30] ^= 1
    segment.write_bytes(content)
    assert "isvalid: false" in dump("--files", str(segment)).output


def test_an_index_is_compared_with_its_log(segment: Path) -> None:
    index = segment.with_suffix(".index")
    index.write_bytes(bytes.fromhex("00000001 00000000"))
    result = dump("--files", str(index))
    assert "offset: 8 position: 0" in result.output
    assert result.exit_code == 0
    index.write_bytes(bytes.fromhex("00000000 00000000"))
    result = dump("--verify-index-only", "--files", str(index))
    assert "Index offset: 7, log offset: 8" in result.output
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ((1005, 1), None),
        ((1000, 1), "Index timestamp: 1000, log timestamp: 1005"),
        ((1005, 0), "Indexed offset: 7, found log offset: 8"),
        ((1005, 2), "Indexed offset: 9, found log offset: -1"),
    ],
)
def test_a_time_index_is_compared_with_its_log(
    segment: Path, entry: tuple[int, int], fault: str | None
) -> None:
    index = segment.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">qi", *entry))
    result = dump("--verify-index-only", "--files", str(index))
    assert result.exit_code == (0 if fault is None else 1)
    assert fault is None or f"  {fault}\n" in result.stderr
    index.write_bytes(struct.pack(">qiqi", 1005, 1, 1005, 1))
    result = dump("--verify-index-only", "--files", str(index))
    assert "Index timestamp: 1005, Previously indexed timestamp: 1005" in result.stderr


def test_json_of_indexes_is_one_object_per_entry(segment: Path) -> None:
    index, times = segment.with_suffix(".index"), segment.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">ii", 1, 0))
    times.write_bytes(struct.pack(">qi", 1005, 1))
    result = dump("--format", "json", "--files", f"{index},{times}")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert rows == [{"offset": 8, "position": 0}, {"timestamp": 1005, "offset": 8}]
    result = dump("--format", "json", "--index-sanity-check", "--files", f"{index},{times}")
    assert (result.exit_code, result.stdout) == (0, "")


def test_an_error_of_the_output_does_not_name_the_file(
    segment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("quorate.cli.dump_log.command.echo", full)
    result = dump("--files", str(segment))
    assert result.exit_code == 1
    assert segment.name not in result.output


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert dump("--files", str(tmp_path / "00000000000000000000.log")).exit_code == 1


def test_the_bootstrap_snapshot_has_no_offset_in_its_name(tmp_path: Path) -> None:
    source = FIXTURE / next(name for name in DUMPED if name.endswith(".checkpoint"))
    shutil.copy(source, tmp_path / "bootstrap.checkpoint")
    result = dump("--files", str(tmp_path / "bootstrap.checkpoint"))
    assert result.output.splitlines()[1] == "KRaft bootstrap snapshot"
