"""`quorate history` without Spark: the state at an offset, the history of a partition, and the
search for a log."""

from __future__ import annotations

import io
import json
import random
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorate.cli.client.errors import Refused
from quorate.cli.history import text as history_text
from quorate.cli.history.source import history_in, longest_log
from quorate.cli.main import main
from quorate.quorum.analytics.archives.unpacking import unpack
from quorate.quorum.analytics.log.places import logs_at
from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import build_value_batch, read_header
from quorate.quorum.metadata.acl_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import ClientQuotaRecord, ConfigRecord, QuotaEntity
from quorate.quorum.metadata.scram_records import UserScramCredentialRecord
from tests.unit.analytics.logs import START_MS, STEP_MS, batches, snapshot_of, write_segment
from tests.unit.metadata.kafka_dump import BEFORE_SHUTDOWN, C1, FIXTURE, HISTORY

WHOLE = b"".join(batches())


def run(*arguments: str | Path) -> Result:
    """Run a command of `quorate history`."""
    return CliRunner().invoke(main, ["history", *map(str, arguments)])


def said(*arguments: str | Path) -> Any:
    """Return the JSON output of a successful command."""
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def replayed(end_offset: int) -> MetadataImage:
    """Return the image after all records up to and including `end_offset`, replayed one by one."""
    loader = Loader(MetadataImage())
    for batch in metadata_batches(WHOLE):
        for index, record in enumerate(batch.records):
            offset = batch.base_offset + index
            if offset <= end_offset:
                last = type(batch.last)(batch.last.epoch, offset)
                loader.position = offset
                loader.feed([batch._replace(base_offset=offset, last=last, records=[record])])
    return loader.image


def test_every_moment_is_what_replay_says(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    for offset in range(40):
        seen, expected = moment(tmp_path, offset=offset).image, replayed(offset)
        assert seen.brokers == expected.brokers, offset
        assert seen.topics == expected.topics, offset
        assert seen.configs == expected.configs, offset


VOTERS = (FIXTURE.parent / "kafka-4.1.1-voters", FIXTURE.parent / "kafka-3.9.1-voters")
TOLD = [(C1, BEFORE_SHUTDOWN, HISTORY["final"], [1, 2, 3])] + [
    (directory, told["offset"], told["final"], [1])
    for directory in VOTERS
    for told in [json.loads((directory / "history.json").read_text())]
]


@pytest.mark.parametrize(("log", "offset", "final", "voters"), TOLD)
def test_the_end_of_a_real_kafkas_history_is_what_its_clients_saw(
    log: Path, offset: int, final: dict[str, Any], voters: list[int]
) -> None:
    state = said("at", log, "--offset", str(offset))
    seen = {
        topic["name"]: [
            {name: partition[name] for name in ("partition", "leader", "isr", "replicas")}
            for partition in topic["partitions"]
        ]
        for topic in state["topics"]
    }
    assert seen == final
    assert (state["quorum"]["leader"], state["quorum"]["voters"]) == (1, voters)


def test_a_moment_in_text(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    at_ms = START_MS + 7 * STEP_MS
    assert run("at", tmp_path, "--time", str(at_ms)).stdout.splitlines() == [
        "offset 20, 2027-01-15 08:00:07.000 UTC",
        "quorum: leader 1, epoch 1, voters 1",
        "features: none",
        "broker 1: active, epoch 11",
        "broker 2: fenced, epoch 12",
        "broker 3: active, epoch 13",
        "topic a (QUFBQUFBQUFBQUFBQUFBQQ), 2 partitions",
        "  partition 0: leader 1, leader epoch 0, replicas 1,2,3, isr 1,3",
        "  partition 1: leader 1, leader epoch 1, replicas 1,2,3, isr 1",
        "config of broker (default): min.insync.replicas=2",
    ]
    same = run("at", tmp_path, "--time", "2027-01-15T08:00:07.000").stdout
    assert same == run("at", tmp_path, "--time", "2027-01-15T10:00:07.000+02:00").stdout
    assert same.startswith("offset 20,")


def test_quotas_of_a_moment(tmp_path: Path) -> None:
    """A removed quota is gone, and a removal before it was set changes nothing."""
    pair = (
        QuotaEntity(entity_type="user", entity_name="u"),
        QuotaEntity(entity_type="client-id", entity_name=None),
    )
    records = [
        ClientQuotaRecord(entity=pair, key="producer_byte_rate", value=7.5),
        ClientQuotaRecord(entity=pair, key="consumer_byte_rate", value=1.0),
        ClientQuotaRecord(entity=pair, key="consumer_byte_rate", remove=True),
        ClientQuotaRecord(entity=pair[:1], key="request_percentage", remove=True),
    ]
    values = [encode_record(each) for each in records]
    write_segment(
        tmp_path,
        0,
        bytes(build_value_batch(values, base_offset=0, leader_epoch=1, timestamp_ms=START_MS)),
    )
    state = said("at", tmp_path)
    entity = {"client-id": None, "user": "u"}
    assert state["client_quotas"] == [{"entity": entity, "quotas": {"producer_byte_rate": 7.5}}]
    text = run("at", tmp_path).stdout.splitlines()
    assert text[-1] == "quotas of the default client-id, user u: producer_byte_rate=7.5"


def test_a_moment_shows_credentials_and_configs_without_secrets(tmp_path: Path) -> None:
    records = [
        UserScramCredentialRecord(
            name="u",
            mechanism=2,
            salt=b"canary",
            stored_key=b"canary",
            server_key=b"canary",
            iterations=4096,
        ),
        ConfigRecord(resource_type=4, resource_name="", name="ssl.key.password", value="canary"),
    ]
    values = [encode_record(each) for each in records]
    write_segment(
        tmp_path,
        0,
        bytes(build_value_batch(values, base_offset=0, leader_epoch=1, timestamp_ms=START_MS)),
    )
    assert said("at", tmp_path)["scram_credentials"] == [
        {"user": "u", "mechanism": "SCRAM-SHA-512", "iterations": 4096}
    ]
    text = run("at", tmp_path).stdout
    assert text.splitlines()[-2:] == [
        "config of broker (default): ssl.key.password=[hidden]",
        "SCRAM-SHA-512 credential of user u: 4096 iterations",
    ]


def test_acls_of_a_moment(tmp_path: Path) -> None:
    """An ACL is part of the state until its record is removed."""
    one = AccessControlEntryRecord(
        id=Uuid(b"A" * 16),
        resource_type=2,
        resource_name="orders",
        pattern_type=4,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    other = replace(one, id=Uuid(b"B" * 16), principal="User:bob")
    records = (one, other, RemoveAccessControlEntryRecord(id=other.id))
    values = [encode_record(each) for each in records]
    batch = build_value_batch(values, base_offset=0, leader_epoch=1, timestamp_ms=START_MS)
    write_segment(tmp_path, 0, bytes(batch))
    text = run("at", tmp_path).stdout.splitlines()
    acl = "ALLOW READ on PREFIXED TOPIC orders for User:{} from *"
    assert text[-1] == f"acl: {acl.format('alice')}"
    assert len(said("at", tmp_path)["acls"]) == 1
    between = run("diff", tmp_path, "1", "2").stdout
    assert "acl on PREFIXED TOPIC orders: ALLOW READ for User:bob from *" in between


def test_moments_that_are_not_there(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    for arguments, code, text in (
        (("--offset", "999"), 1, "the log ends at offset 41, before 999"),
        (("--time", "5"), 1, "the history begins later: at offset 0, 2027-01-15 08:00:00.000 UTC"),
        (("--time", "noon"), 2, "'noon' must be a time such as"),
        (("--time", "5", "--offset", "1"), 2, "only one of --offset and --time"),
    ):
        result = run("at", tmp_path, *arguments)
        assert result.exit_code == code and text in result.output, result.output


def test_a_story_with_causes(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    told = run("explain", tmp_path, "--topic", "a", "--partition", "1").stdout
    assert told == Path(__file__).with_name("explained.txt").read_text()


def test_a_real_kafkas_story_has_no_causes_but_what_is_certain() -> None:
    for topic in HISTORY["final"]:
        for partition in said("explain", C1, "--topic", topic)["partitions"]:
            assert all(event["cause"] is None for event in partition["events"])
            assert all(event["inferred"] for event in partition["events"])
            assert partition["events"][0]["why"] in (
                "The partition was created with its topic.",
                "The number of partitions of the topic was raised.",
            )
    lines = run("explain", C1, "--topic", "topic-0", "--partition", "0").stdout
    assert "    Inferred: In the same step broker 4 began to shut down in order." in lines
    assert "    Inferred: The leader reported that broker 4 had caught up." in lines


def test_a_story_that_is_not_there(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, WHOLE)
    for name in ("never", "b-9"):  # an aborted topic, and one that never existed
        result = run("explain", tmp_path, "--topic", name)
        assert result.exit_code == 1 and f"knows no {name}" in result.output


@pytest.mark.parametrize("command", [["at"], ["explain", "--topic", "a"]])
def test_a_record_that_cannot_be_decoded_is_named(tmp_path: Path, command: list[str]) -> None:
    """The batch's CRC is right, so a newer version or another program wrote the record."""
    made = batches()
    end_offset = read_header(made[0], 0).next_offset
    value = bytes([1, 3, 0, 0xFF])  # the beginning of a partition record
    damaged = build_value_batch(
        [value], base_offset=end_offset, leader_epoch=1, timestamp_ms=START_MS
    )
    write_segment(tmp_path, 0, made[0] + bytes(damaged))
    result = run(command[0], tmp_path, *command[1:])
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert f"the metadata log in {tmp_path} cannot be read to the end" in result.output


def test_a_history_without_its_beginning(tmp_path: Path) -> None:
    made = batches()
    loader = Loader(MetadataImage())
    loader.feed(metadata_batches(b"".join(made[:8])))
    end_offset = loader.image.last.offset + 1
    path = write_segment(tmp_path, end_offset, b"".join(made[8:]))
    refused = run("at", tmp_path)
    assert refused.exit_code == 1 and "the snapshot that it stands on is missing" in refused.output
    name = f"{end_offset:020d}-0000000001.checkpoint"
    path.with_name(name).write_bytes(snapshot_of(loader.image))
    whole = moment(tmp_path)
    assert whole.image.topics == replayed(1000).topics
    events = said("explain", tmp_path, "--topic", "a", "--partition", "0")["partitions"][0][
        "events"
    ]
    assert events[0]["why"] == "Its history before is gone: the log begins with a snapshot."
    assert [event["cause"] for event in events[1:]] == [
        "connection-lost", "isr-expand", "unclean-restart", None,
    ]  # fmt: skip


# ------------------------------------------------------------------- the search for a history


def a_cluster(root: Path, *lengths: int) -> Path:
    """Create controllers whose logs have these numbers of batches, and a broker with all
    batches."""
    nodes = [
        {"id": number, "log_dir": str(root / "nodes" / str(number) / "data")}
        for number in range(1, len(lengths) + 2)
    ]
    for node, length in zip(nodes, (*lengths, len(batches())), strict=True):
        if length:
            write_segment(Path(str(node["log_dir"])), 0, b"".join(batches()[:length]))
    entry = {"controllers": nodes[:-1], "brokers": nodes[-1:]}
    (root / "cluster.json").write_text(json.dumps(entry))
    return root


@pytest.mark.parametrize(
    ("lengths", "node"),
    [
        ((9, 5, 7), "3"),  # two of three have seven batches, which are thus committed
        ((5, 5, 9), "1"),
        ((15, 14, 3), "2"),
        ((9, 0, 7), "1"),  # the missing log may have nine too, and a majority of two then
        ((9, 5, 7, 8), "4"),
        ((4,), "1"),
        ((0, 0, 9), "4"),  # too few voters for a majority: the longest log
        ((0, 0, 0), "4"),
    ],
)
def test_of_a_cluster_what_a_majority_has(
    tmp_path: Path, lengths: tuple[int, ...], node: str
) -> None:
    found = longest_log(a_cluster(tmp_path, *lengths))
    assert found.parent.name == node


def test_a_cluster_without_a_log(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"controllers": [], "brokers": []}')
    with pytest.raises(Refused, match="no node of this cluster has a metadata log yet"):
        longest_log(tmp_path)


@pytest.mark.parametrize("kind", ["gztar", "zip"])
@pytest.mark.parametrize("whole", [True, False], ids=["with-its-folder", "what-is-in-it"])
def test_an_archive_of_a_cluster_that_is_gone(tmp_path: Path, kind: str, whole: bool) -> None:
    root = tmp_path / "data"
    root.mkdir()
    a_cluster(root, 9, 5, 7)
    base = {"root_dir": tmp_path, "base_dir": "data"} if whole else {"root_dir": root}
    archive = shutil.make_archive(str(tmp_path / "a"), kind, **base)
    shutil.rmtree(root)
    with history_in(Path(archive)) as source:
        assert source.parent.name == "3"


def test_commands_with_spark_read_all_nodes_of_a_cluster(tmp_path: Path) -> None:
    a_cluster(tmp_path, 9, 5, 7)
    with history_in(tmp_path, all_nodes=True) as source:
        assert source == tmp_path
        assert len(logs_at([str(source)])) == 4, "three controllers and a broker"
    archive = shutil.make_archive(str(tmp_path.parent / "a"), "tar", tmp_path)
    with history_in(Path(archive), all_nodes=True) as source:
        assert source.parent.name == "3", "the names in an archive are not trusted"


@pytest.mark.parametrize("deep", [True, False])
def test_an_archive_of_a_log(tmp_path: Path, deep: bool) -> None:
    root = tmp_path / "node"
    log = write_segment(root, 0, WHOLE).parent
    archive = shutil.make_archive(str(tmp_path / "a"), "tar", root if deep else log)
    assert said("at", archive)["offset"] == 39


def test_an_archive_leads_to_no_directory_outside_of_it(tmp_path: Path) -> None:
    """The cluster.json in the archive names directories that exist on this machine."""
    live = tmp_path / "live"
    a_cluster(live, 9, 9, 9)
    root = tmp_path / "sent"
    root.mkdir()
    names = [str(live / "nodes" / "1" / "data"), "/x/nodes/../../../live/nodes/2/data", "../live"]
    entry = {"controllers": [{"id": 1, "log_dir": each} for each in names], "brokers": []}
    (root / "cluster.json").write_text(json.dumps(entry))
    archive = Path(shutil.make_archive(str(tmp_path / "a"), "gztar", root))
    no_log = pytest.raises(Refused, match="no node of this cluster has a metadata log")
    with no_log, history_in(archive):
        pass
    result = run("at", archive)
    assert result.exit_code == 1 and str(live) not in result.output


@pytest.mark.parametrize(
    "log_dir", ["/x/nodes/../../live/nodes/1/data", "/x/../live/nodes", "/x/nodes/\ud800"]
)
def test_no_name_in_an_archive_leads_out_of_it(tmp_path: Path, log_dir: str) -> None:
    a_cluster(tmp_path / "live", 9)
    sent = tmp_path / "sent"
    (sent / "nodes").mkdir(parents=True)
    entry = {"controllers": [{"id": 1, "log_dir": log_dir}], "brokers": []}
    (sent / "cluster.json").write_text(json.dumps(entry))
    with pytest.raises(Refused, match="has a metadata log yet"):
        longest_log(sent, within=sent)


def test_what_is_no_history(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("")
    for given, text in ((file, "is neither a directory nor an archive"), (tmp_path, "no metadata")):
        result = run("at", given)
        assert result.exit_code == 1 and text in result.output, result.output


def test_an_archive_cannot_lead_out_of_its_directory(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out.txt"
    inside.mkdir()
    with tarfile.open(tmp_path / "sent.tar.gz", "w:gz") as tar:
        for name in ("../out.txt", str(outside), "kept/0.log"):
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"data"))
        link = tarfile.TarInfo("kept/link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        tar.addfile(link)
    unpack(tmp_path / "sent.tar.gz", inside)
    assert not outside.exists()
    assert sorted(each.name for each in inside.rglob("*")) == ["0.log", "kept"]


@pytest.mark.parametrize(
    ("kind", "damage"),
    [("gztar", "cut"), ("xztar", "cut"), ("xztar", "flipped"), ("zip", "flipped"), ("tar", "cut")],
)
def test_a_damaged_archive_is_refused_by_its_name(tmp_path: Path, kind: str, damage: str) -> None:
    root = tmp_path / "data"
    root.mkdir()
    (root / "0.log").write_bytes(random.Random(0).randbytes(10_000))
    archive = Path(shutil.make_archive(str(tmp_path / "a"), kind, root))
    content = bytearray(archive.read_bytes())
    half = len(content) // 2
    if damage == "cut":
        del content[half:]
    else:
        content[half] ^= 1
    archive.write_bytes(content)
    with pytest.raises(Refused, match=f"{archive.name} is damaged"), history_in(archive):
        pass


def test_many_rows_are_printed_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_text, "WIDTH_ROWS", 2)
    taken = []

    def rows() -> Iterator[dict[str, Any]]:
        for number in (1, 20, 300, 4000):
            taken.append(number)
            yield {"n": number, "t": "x"}

    lines = history_text.table_lines(["n", "t"], rows())
    assert next(lines) == " n  t" and taken == [1, 20]
    assert list(lines) == [" 1  x", "20  x", "300  x", "4000  x"]
    read = "\n".join(history_text.json_lines(rows()))
    assert json.loads(read) == list(rows())
    assert json.loads("\n".join(history_text.json_lines([]))) == []


def test_a_reader_of_the_output_that_ends_is_no_error_of_the_log(tmp_path: Path) -> None:
    """click ends the command without a message, as for `quorate history at DIR | head`."""
    with pytest.raises(BrokenPipeError), history_in(tmp_path):
        raise BrokenPipeError
