"""`history at | explain | diff | whatif` refuse a damaged log, or read around the damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from crc32c import crc32c

from quorate.cli.main import main
from quorate.quorum import analytics
from quorate.quorum.analytics.log.damage import Damage
from quorate.quorum.analytics.replay.differences import Point
from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.log.batches.batch import HEADER_BYTES, build_value_batch
from quorate.quorum.metadata.records import TopicRecord
from tests.unit.analytics.logs import BEGIN, END, SCRIPT, START_MS, A, B, batches, write_segment

CRC_AT = 17
"""The position of the checksum in a batch."""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["history", *map(str, arguments)])


def damaged(directory: Path, batch: int) -> None:
    """Write the log with a flipped bit in one batch."""
    made = [bytearray(each) for each in batches()]
    made[batch][-1] ^= 1
    write_segment(directory, 0, b"".join(map(bytes, made)))


QUESTIONS = (
    ("at",),
    ("explain", "--topic", "a"),
    ("explain", "--broker", "1"),
    ("explain", "--quorum"),
    ("diff", "4", "38"),
    ("whatif", "--kill", "1"),
    ("whatif", "--scenario", "kill", "--kill", "2", "--at", "30", "--seed", "1"),
)


def asked(directory: Path, question: tuple[str, ...], *more: str) -> Result:
    return run(question[0], directory, *question[1:], *more)


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_damage_is_refused_or_read_around(tmp_path: Path, question: tuple[str, ...]) -> None:
    damaged(tmp_path, 8)  # the end of a session and its elections
    refused = asked(tmp_path, question)
    assert refused.exit_code == 1 and "is damaged" in refused.output
    read = asked(tmp_path, question, "--permissive")
    assert read.exit_code == 0, read.output
    lines = read.stderr.splitlines()
    assert len([line for line in lines if line.startswith("error: damaged-batch: ")]) == 1


PYTHON: dict[str, Callable[..., object]] = {
    "at": analytics.at,
    "explain": partial(analytics.explain, topic="a"),
    "explain_topic": partial(analytics.explain_topic, topic="a"),
    "explain_broker": partial(analytics.explain_broker, broker_id=1),
    "explain_quorum": analytics.explain_quorum,
    "diff": partial(analytics.diff, before=Point(offset=4), after=Point(offset=38)),
    "what_if": partial(analytics.what_if, lost=[1]),
    "each_broker": analytics.each_broker,
    "rehearse": partial(analytics.rehearse, scenario="kill", seeds=[1], brokers=[2], offset=30),
}


@pytest.mark.parametrize("name", PYTHON)
def test_a_python_function_raises_damage_or_reports_it(tmp_path: Path, name: str) -> None:
    damaged(tmp_path, 8)
    with pytest.raises(analytics.DamagedLog, match="is damaged"):
        PYTHON[name](tmp_path)
    met: list[Damage] = []
    PYTHON[name](tmp_path, found=met.append)
    assert "damaged-batch" in {each.kind for each in met}


def test_records_that_contradict_what_is_left_are_left_out(tmp_path: Path) -> None:
    """The batch that created the topic is lost, and the log continues with its changes."""
    sound = [b"".join(batches())]
    write_segment(tmp_path / "sound", 0, sound[0])
    creation = next(at for at, each in enumerate(batches()) if b"\x00a" in each or b"\x02a" in each)
    damaged(tmp_path / "damaged", creation)
    met: list[Damage] = []
    state = moment(tmp_path / "damaged", found=met.append)
    whole = moment(tmp_path / "sound")
    assert state.offset == whole.offset and state.image.broker_ids() == whole.image.broker_ids()
    kinds = {each.kind for each in met}
    assert kinds == {"damaged-batch", "contradiction"}
    (text,) = (each.text for each in met if each.kind == "contradiction")
    assert "records contradict the state before them and are left out" in text
    assert "node must stop" not in text, "advice for nodes does not help here"


def test_a_transaction_whose_end_is_lost_is_reported(tmp_path: Path) -> None:
    topic, other = TopicRecord(name="a", topic_id=A), TopicRecord(name="b", topic_id=B)
    made = [bytearray(each) for each in batches((SCRIPT[1], (BEGIN, topic), (END,), (other,)))]
    write_segment(tmp_path / "sound", 0, b"".join(map(bytes, made)))
    assert moment(tmp_path / "sound").image.topic_names() == ["a", "b"]
    made[3][-1] ^= 1
    write_segment(tmp_path / "damaged", 0, b"".join(map(bytes, made)))
    met: list[Damage] = []
    assert list(moment(tmp_path / "damaged", found=met.append).image.topic_names()) == []
    assert [each.kind for each in met] == ["damaged-batch", "unfinished"]
    assert "the transaction at offset 4 has no end that can be read, so 2 records" in met[1].text


def test_a_record_that_cannot_be_decoded_is_left_out(tmp_path: Path) -> None:
    made = batches()
    end = moment_of(tmp_path / "x", made) + 1
    bad = build_value_batch(
        [bytes([1, 3, 0, 0xFF])], base_offset=end, leader_epoch=2, timestamp_ms=START_MS + 10**6
    )
    write_segment(tmp_path, 0, b"".join([*made, bytes(bad)]))
    assert run("at", tmp_path).exit_code == 1
    read = run("at", tmp_path, "--permissive", "--format", "json")
    assert json.loads(read.stdout)["offset"] == end - 1
    assert f"error: damaged-record: the record at offset {end} cannot be decoded" in read.stderr


def test_a_batch_whose_records_do_not_fill_it_is_left_out(tmp_path: Path) -> None:
    """Its checksum is right, so only the decoder of the records notices."""
    made = batches()
    end = moment_of(tmp_path / "x", made) + 1
    short = bytearray(
        build_value_batch([b"abc"], base_offset=end, leader_epoch=2, timestamp_ms=START_MS)
    )
    short[HEADER_BYTES] -= 2  # the length of the record
    short[CRC_AT : CRC_AT + 4] = crc32c(bytes(short[CRC_AT + 4 :])).to_bytes(4, "big")
    write_segment(tmp_path, 0, b"".join([*made, bytes(short)]))
    assert run("at", tmp_path).exit_code == 1
    read = run("at", tmp_path, "--permissive", "--format", "json")
    assert json.loads(read.stdout)["offset"] == end - 1
    assert f"error: damaged-batch: the batch at offset {end} cannot be decoded" in read.stderr


def moment_of(directory: Path, made: list[bytes]) -> int:
    write_segment(directory, 0, b"".join(made))
    return moment(directory).offset
