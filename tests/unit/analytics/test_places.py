"""The locations that a user names, and the part of several logs of a cluster that is committed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from subprocess import PIPE, Popen
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

pytest.importorskip("pyarrow", reason="analytics needs `pip install 'quorate[spark]'`")

from quorate.quorum.analytics.archives import unpacking
from quorate.quorum.analytics.archives.extracted import PARTIAL
from quorate.quorum.analytics.log.agreement import LogEnd
from quorate.quorum.analytics.log.commits import log_end_of
from quorate.quorum.analytics.log.damage import CONFLICT, DIVERGENCE
from quorate.quorum.analytics.log.errors import (
    AnalyticsError,
    BadOption,
    DamagedLog,
    NoMetadataLog,
)
from quorate.quorum.analytics.log.plan import Choice, planned
from quorate.quorum.analytics.log.plan_text import decoded, encoded
from quorate.quorum.analytics.log.seek import PROBE_BYTES
from quorate.quorum.analytics.log.segments import Committed, Slice
from quorate.quorum.analytics.spark.options import Options
from quorate.quorum.analytics.spark.rows import Request, arrow_batches
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import NoOpRecord
from tests.unit.analytics.logs import START_MS, batches, leadership_of, voters_of, write_segment
from tests.unit.metadata.kafka_dump import C1

COLUMNS = ("cluster_id", "node_id", "offset", "epoch", "committed")
Row = tuple[str, int | None, int, int, bool | None]


def rows(*locations: Path | str, nodes: str = "one", snapshots: bool = False) -> list[Row]:
    options = {"paths": json.dumps([str(each) for each in locations]), "nodes": nodes}
    pieces = planned(Options(options).choice())
    request = Request(COLUMNS, with_json=False)
    return [
        tuple(row[name] for name in COLUMNS)
        for piece in pieces
        for batch in arrow_batches(piece, request)
        for row in batch.to_pylist()
    ]


def node(
    root: Path, node_id: int, epochs: list[int], cluster_id: str = "c", voters: int = 3
) -> Path:
    """Write the log of a node, with one record for each of these epochs. Return its directory."""
    directory = root / str(node_id)
    write_segment(directory, 0, log_of(epochs, voters=voters))
    (directory / "meta.properties").write_text(
        f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n"
    )
    return directory


def log_of(epochs: list[int], *, first: int = 0, voters: int = 3, late: int = -1) -> bytes:
    """Return one batch for each of these epochs, from offset `first` on.

    The record at the offset `late` has another timestamp than usual."""
    made, leader = [], tuple(range(1, voters + 1))
    for offset, epoch in enumerate(epochs, first):
        at_ms = START_MS + offset + (offset == late)
        if offset == first or epochs[offset - first - 1] != epoch:
            batch = leadership_of(1, epoch=epoch, offset=offset, at_ms=at_ms, voters=leader)
        else:
            values = [encode_record(NoOpRecord())]
            batch = bytes(
                build_value_batch(
                    values, base_offset=offset, leader_epoch=epoch, timestamp_ms=at_ms
                )
            )
        made.append(batch)
    return b"".join(made)


def test_a_list_of_directories_is_read_whole(tmp_path: Path) -> None:
    one = node(tmp_path / "a", 1, [1, 1, 1], "east", voters=1)
    two = node(tmp_path / "b", 7, [1, 1], "west", voters=3)
    assert rows(one, two) == [
        ("east", 1, 0, 1, True),
        ("east", 1, 1, 1, True),
        ("east", 1, 2, 1, True),
        ("west", 7, 0, 1, None),
        ("west", 7, 1, 1, None),
    ]
    assert rows(two, two, f"file://{two}", f"file:{two}/__cluster_metadata-0") == rows(two)
    assert rows(tmp_path / "?" / "[0-9]") == rows(one, two)


def test_a_log_without_an_identity_is_a_cluster_of_its_own(tmp_path: Path) -> None:
    found = [write_segment(tmp_path / each, 0, b"".join(batches())) for each in "ab"]
    assert {row[:2] for row in rows(tmp_path / "a", tmp_path / "b")} == {
        (str(path.parent), None) for path in found
    }


def test_a_real_kafkas_log_names_its_cluster_and_what_its_snapshots_prove() -> None:
    found = rows(C1)
    assert {row[:2] for row in found} == {("MkU3OEVBNTcwNTJENDM2Qg", 1)}
    assert [row[4] for row in found] == [True] * 368 + [None] * 111


def up_directory(root: Path, logs: list[list[int]]) -> Path:
    nodes = [
        {"id": number, "log_dir": str(node(root / "nodes", number, epochs))}
        for number, epochs in enumerate(logs, 1)
    ]
    (root / "cluster.json").write_text(json.dumps({"controllers": nodes, "brokers": []}))
    return root


def test_the_directory_of_a_local_cluster_is_read_as_one_cluster(tmp_path: Path) -> None:
    """Two of three voters have four records, so those are committed and the fifth is not."""
    root = up_directory(tmp_path / "was", [[1, 1, 1, 1, 1], [1, 1, 1, 1], [1]])
    assert [row[2:] for row in rows(root)] == [(offset, 1, True) for offset in range(4)]
    moved = root.rename(tmp_path / "is")
    assert [row[2:] for row in rows(moved)] == [(offset, 1, True) for offset in range(4)]


def test_nodes_that_diverge_show_what_is_committed(tmp_path: Path) -> None:
    """Node 1 led epoch 1 and kept two records that the leader of epoch 2 never had."""
    root = up_directory(tmp_path, [[1, 1, 1, 1], [1, 1, 2, 2, 2], [1, 1, 2, 2]])
    assert [row[2:] for row in rows(root)] == [
        (0, 1, True), (1, 1, True), (2, 2, True), (3, 2, True),
    ]  # fmt: skip
    seen = {
        number: [row[2:] for row in rows(root, nodes="all") if row[1] == number]
        for number in (1, 2, 3)
    }
    common = [(0, 1, True), (1, 1, True)]
    assert seen == {
        1: [*common, (2, 1, False), (3, 1, False)],
        2: [*common, (2, 2, True), (3, 2, True), (4, 2, False)],
        3: [*common, (2, 2, True), (3, 2, True)],
    }


def said_in(*locations: Path, nodes: str = "one") -> list[tuple[int | None, str, int, str]]:
    """Return the node, kind, offset and text of all differences between nodes."""
    paths = json.dumps([str(each) for each in locations])
    pieces = planned(Options({"paths": paths, "nodes": nodes, "include": "base"}).choice())
    assert decoded(encoded(pieces)) == pieces
    return [
        (piece.origin.node_id, each.kind, each.first_offset, each.text)
        for piece in pieces
        for each in piece.differences
    ]


def test_records_that_only_one_node_has_are_a_conflict(tmp_path: Path) -> None:
    root = up_directory(tmp_path, [[1, 1, 1, 1], [1, 1, 2, 2, 2], [1, 1, 2, 2], [1]])
    text = (
        "From offset 2 on, the log of node 1 has records of another epoch than the log of node 3. "
        "Raft keeps the records of one of them, and all committed records."
    )
    assert said_in(root) == [(3, CONFLICT, 2, text)]
    assert said_in(root, nodes="all") == [(1, CONFLICT, 2, text)]
    assert said_in(tmp_path / "nodes" / "1", tmp_path / "nodes" / "4") == []


def test_logs_that_differ_from_their_first_record_on_are_a_conflict(tmp_path: Path) -> None:
    """Node 1 led epoch 1 alone. No record of it is known to be committed."""
    root = up_directory(tmp_path, [[1, 1], [2, 2], [2, 2]])
    log = root / "nodes" / "1" / "__cluster_metadata-0" / f"{0:020d}.log"
    log.write_bytes(log_of([1, 1], late=0))
    assert [each[1:3] for each in said_in(root)] == [(CONFLICT, 0)]


def test_logs_that_share_no_offset_are_not_compared(tmp_path: Path) -> None:
    one, two = (node(tmp_path, number, [1, 1, 2, 2]) for number in (1, 2))
    log = two / "__cluster_metadata-0" / f"{0:020d}.log"
    log.write_bytes(log_of([3, 3], first=7))
    log.rename(log.with_name(f"{7:020d}.log"))
    assert said_in(one, two) == []


def test_a_log_without_its_first_records_is_read_from_the_next_one(tmp_path: Path) -> None:
    log = node(tmp_path, 1, [1], voters=1) / "__cluster_metadata-0" / f"{0:020d}.log"
    log.write_bytes(log_of([3, 3], first=7, voters=1))
    assert [row[2:4] for row in rows(tmp_path / "1")] == [(7, 3), (8, 3), (0, None)]


def test_committed_records_that_differ_are_a_divergence(tmp_path: Path) -> None:
    """The snapshot proves that node 1's record at offset 2 is committed."""
    root = up_directory(tmp_path, [[1, 1, 1, 1], [1, 1, 2, 2], [1, 1, 2, 2]])
    log = root / "nodes" / "1" / "__cluster_metadata-0"
    (log / f"{3:020d}-{1:010d}.checkpoint").write_bytes(b"")
    ((reader, kind, offset, text),) = said_in(root)
    assert (reader, kind, offset) == (3, DIVERGENCE, 2)
    assert "ends in epoch 1, but the log of node 3 has epoch 2 at offset 2, so" in text


@pytest.mark.parametrize("offset", [0, 3])
def test_other_records_of_the_same_epoch_are_a_divergence(tmp_path: Path, offset: int) -> None:
    epochs = [1, 1, 1, 1]
    root = up_directory(tmp_path, [epochs, epochs, epochs])
    assert said_in(root) == []
    log = root / "nodes" / "3" / "__cluster_metadata-0" / f"{0:020d}.log"
    log.write_bytes(log_of(epochs, late=offset))
    assert [each[1:3] for each in said_in(root)] == [(DIVERGENCE, offset)]
    strict = Request(COLUMNS, with_json=False, strict=True)
    (piece,) = planned(Choice(locations=(str(root),)))
    with pytest.raises(DamagedLog, match=f"At offset {offset}, the log of node"):
        list(arrow_batches(piece, strict))


def test_records_that_an_election_could_remove_are_left_out(tmp_path: Path) -> None:
    """Node 1 or node 2 could win, and their logs differ from offset 2 on."""
    root = up_directory(tmp_path, [[1, 1, 2], [1, 1, 1, 1], [1, 1]])
    assert [row[2:] for row in rows(root)] == [(0, 1, True), (1, 1, True)]


def test_without_a_voters_log_no_record_is_left_out(tmp_path: Path) -> None:
    root = up_directory(tmp_path, [[1, 1, 1, 1], [1, 1, 2, 2, 2], [1, 1, 2, 2]])
    shutil.rmtree(root / "nodes" / "3")
    assert [row[2:] for row in rows(root)] == [
        (offset, epoch, None) for offset, epoch in enumerate([1, 1, 2, 2, 2])
    ]


def test_two_copies_of_one_nodes_log_are_not_the_logs_of_two_voters(tmp_path: Path) -> None:
    old, new = (node(tmp_path / each, 1, epochs) for each, epochs in (("o", [1]), ("n", [1, 1])))
    other = node(tmp_path, 2, [1, 1])
    assert [row[2:] for row in rows(old, new, other)] == [(0, 1, None), (1, 1, None)]


def no_op(offset: int) -> bytes:
    values = [encode_record(NoOpRecord())]
    return bytes(
        build_value_batch(values, base_offset=offset, leader_epoch=1, timestamp_ms=START_MS)
    )


def changed(root: Path, *sets: tuple[int, ...]) -> list[Path]:
    """Write the logs of three nodes, with the voters at the election of node 1, their changes, and
    a last record that only node 1 has. Return the directories."""
    log = leadership_of(1, epoch=1, offset=0, at_ms=START_MS, voters=sets[0])
    for offset, voters in enumerate(sets[1:], 1):
        log += voters_of(voters, epoch=1, offset=offset, at_ms=START_MS)
    made = [node(root, number, [1]) for number in (1, 2, 3)]
    for place in made:
        write_segment(place, 0, log + (no_op(len(sets)) if place == made[0] else b""))
    return made


def test_a_change_of_the_voters_counts_from_its_record_on(tmp_path: Path) -> None:
    """The log of the first voter alone proves nothing. Only node 1 can be elected by nodes 1 and 2,
    which would keep its last record. With node 3, another node can be elected."""
    made = changed(tmp_path, (1,), (1, 2), (1, 2, 3))
    assert [row[4] for row in rows(made[0])] == [None] * 4
    assert [row[4] for row in rows(*made)] == [True] * 3 + [None]


def test_a_snapshot_proves_a_change_of_the_voters(tmp_path: Path) -> None:
    """Until then, node 3 could still be elected without the record of its removal. If nodes 1 and 2
    are the only voters, only node 1 can be elected, with its last record."""
    made = changed(tmp_path, (1, 2, 3), (1, 2))
    assert [row[4] for row in rows(*made[:2])] == [None] * 3
    snapshot = voters_of((1, 2), epoch=1, offset=0, at_ms=START_MS)
    name = f"{2:020d}-{1:010d}.checkpoint"
    (made[1] / "__cluster_metadata-0" / name).write_bytes(snapshot)
    assert [row[4] for row in rows(*made[:2])] == [True, True, None], "read from the newest log"
    (made[0] / "__cluster_metadata-0" / name).write_bytes(snapshot)
    assert [row[4] for row in rows(*made[:2])] == [True] * 3


def test_the_epochs_of_a_long_log_are_found_by_bisection(tmp_path: Path) -> None:
    epochs = [epoch for epoch in (1, 2, 5, 6) for _ in range(500)]
    directory = node(tmp_path, 1, epochs) / "__cluster_metadata-0"
    assert sum(file.stat().st_size for file in directory.iterdir()) > 2 * PROBE_BYTES
    assert log_end_of(str(directory)) == LogEnd(((1, 0), (2, 500), (5, 1000), (6, 1500)), 2000)


@pytest.mark.parametrize(
    ("locations", "error", "text"),
    [
        ([], BadOption, "needs a directory"),
        (["{}/nothing"], NoMetadataLog, "give a node's log directory"),
        (["{}/nothing*"], BadOption, "nothing matches this pattern"),
        (["{}/log.tar.gz"], BadOption, "No such file or directory: '.*log.tar.gz'"),
        (["s3://bucket/log.zip"], BadOption, "copy it to this machine and load the copy, or"),
        (["s3://bucket/log.tgz?region=x"], BadOption, "an archive on another filesystem, and only"),
        (["gopher://host/log"], BadOption, "gopher://host"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_a_sentence(
    tmp_path: Path, locations: list[str], error: type[AnalyticsError], text: str
) -> None:
    with pytest.raises(error, match=text):
        rows(*(each.format(tmp_path) for each in locations))


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of extracted archives."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return temporary / f"quorate-archives-{os.getuid()}"


def offsets_in(*locations: Path | str) -> list[tuple[str, int]]:
    return [(cluster, offset) for cluster, _, offset, *_ in rows(*locations)]


def archive_of(place: Path, name: str) -> str:
    """Return an archive that is all that remains of the directory."""
    made = shutil.make_archive(str(place.parent / name), "gztar", place)
    shutil.rmtree(place)
    return made


def test_archives_and_patterns_of_archives_are_loaded(tmp_path: Path, archives: Path) -> None:
    for name in ("east", "west"):
        node(tmp_path / name, 1, [1, 1, 1], name, voters=1)
        archive_of(tmp_path / name, name)
    expected = [(name, offset) for name in ("east", "west") for offset in range(3)]
    assert sorted(offsets_in(tmp_path / "*.tar.gz")) == expected
    first, second = sorted(archives.iterdir())
    os.utime(first, (0, 0))
    both = (tmp_path / "east.tar.gz", tmp_path / "west.tar.gz")
    assert sorted(offsets_in(*both)) == expected
    assert first.stat().st_mtime > 0, "a use keeps the directory"
    os.utime(first, (0, 0))
    node(tmp_path / "new", 1, [1], "new", voters=1)
    assert offsets_in(archive_of(tmp_path / "new", "new")) == [("new", 0)]
    assert not first.exists() and second.exists() and len([*archives.iterdir()]) == 2


def test_an_archive_of_a_cluster_leads_to_no_log_outside_of_it(
    tmp_path: Path, archives: Path
) -> None:
    live = node(tmp_path / "live", 1, [1, 1])
    sent = tmp_path / "sent"
    node(sent / "nodes", 2, [1, 1, 1], "sent")
    names = [str(live), "/x/nodes/../../../../live/1", "/gone/nodes/2"]
    entry = {"controllers": [{"log_dir": each} for each in names], "brokers": []}
    (sent / "cluster.json").write_text(json.dumps(entry))
    assert offsets_in(archive_of(sent, "sent")) == [("sent", 0), ("sent", 1), ("sent", 2)]
    assert len([*archives.iterdir()]) == 1


@pytest.mark.parametrize("log_dir", ["/nodes/\0", "/nodes/\ud800"])
def test_a_name_in_an_archive_that_no_file_can_have_is_refused(
    tmp_path: Path, archives: Path, log_dir: str
) -> None:
    sent = tmp_path / "sent"
    sent.mkdir()
    entry = {"controllers": [{"log_dir": log_dir}], "brokers": []}
    (sent / "cluster.json").write_text(json.dumps(entry))
    with pytest.raises(NoMetadataLog, match=r"its cluster.json cannot be read"):
        rows(archive_of(sent, "sent"))


def test_another_process_may_remove_the_files_of_an_archive(
    tmp_path: Path, archives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is listed, and the directory is gone when its age is asked for."""
    node(tmp_path / "east", 1, [1], "east", voters=1)
    gone, listed = archives / "gone", Path.iterdir
    monkeypatch.setattr(
        Path, "iterdir", lambda self: iter([gone] if self == archives else listed(self))
    )
    assert offsets_in(archive_of(tmp_path / "east", "east")) == [("east", 0)]


EXTRACTION = """
import sys, tempfile
from pathlib import Path
from quorate.quorum.analytics.archives import extracted

def unpack(archive, directory):
    (directory / "half").write_text("of a file")
    print("extracting", flush=True)
    sys.stdin.read()

archive, tempfile.tempdir = sys.argv[1:]
extracted.unpack = unpack
extracted.extracted(Path(archive))
"""


def test_a_partial_directory_is_removed_after_the_death_of_its_process(
    tmp_path: Path, archives: Path
) -> None:
    node(tmp_path / "east", 1, [1], "east", voters=1)
    east = archive_of(tmp_path / "east", "east")
    command = (sys.executable, "-c", EXTRACTION, east, str(archives.parent))
    with Popen(command, stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"extracting\n"
        (partial,) = archives.iterdir()
        assert offsets_in(east) == [("east", 0)]
        assert partial.is_dir(), "its process may still extract into it"
        process.kill()
    node(tmp_path / "west", 1, [1], "west", voters=1)
    assert offsets_in(archive_of(tmp_path / "west", "west")) == [("west", 0)]
    assert not partial.exists() and len([*archives.iterdir()]) == 2


def test_the_files_of_an_archive_are_on_the_disk_before_their_directory_has_its_name(
    tmp_path: Path, archives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: set[int] = set()
    rename = os.rename

    def flush(descriptor: int) -> None:
        flushed.add(os.fstat(descriptor).st_ino)

    def named(own: Path, place: Path) -> None:
        if own.name.startswith(PARTIAL):
            written = {path.stat().st_ino for path in (own, *own.rglob("*"))}
            assert len(written) > 3 and written == flushed
        rename(own, place)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "rename", named)
    node(tmp_path / "east", 1, [1], "east", voters=1)
    assert offsets_in(archive_of(tmp_path / "east", "east")) == [("east", 0)]


def test_an_archive_that_cannot_be_trusted_is_refused(
    tmp_path: Path, archives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "FREE_BYTES", 10_000)
    damaged = tmp_path / "damaged.tar.gz"
    damaged.write_bytes(b"\x1f\x8b" + bytes(30))
    with pytest.raises(BadOption, match=r"damaged.tar.gz is damaged"):
        rows(damaged)
    assert not [*archives.iterdir()], "a failed extraction leaves nothing"
    bomb = tmp_path / "bomb.zip"
    with ZipFile(bomb, "w", ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(1_000_000))
    with pytest.raises(BadOption, match=r"bomb.zip is refused: \d+ bytes unpack to more than"):
        rows(bomb)
    archives.chmod(0o755)
    with pytest.raises(BadOption, match="is open to other users"):
        rows(damaged)


def test_a_cluster_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(NoMetadataLog, match=r"cluster.json cannot be read"):
        rows(tmp_path)
    (tmp_path / "cluster.json").write_text('{"controllers": [], "brokers": []}')
    with pytest.raises(NoMetadataLog, match="no node of this cluster has a metadata log yet"):
        rows(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("nodes", "two"), ("mode", "loose"), ("include", "all"), ("sliceBytes", "0"),
     ("sliceBytes", "big"), ("sliceBytes", str(65 << 20))],
)  # fmt: skip
def test_a_wrong_option_is_named(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=f"{name} is '{value}': it must be"):
        Options({"path": str(C1), name.lower(): value}).choice()


def test_a_snapshots_rows_are_committed() -> None:
    pieces = planned(Choice(locations=(str(C1),), include="snapshots", every_node=True))
    snapshots = [piece for piece in pieces if piece.snapshot is not None]
    request = Request(("committed", "file"), with_json=False)
    for piece in snapshots:
        assert isinstance(piece, Slice) and piece.committed == Committed(368, False)
        for batch in arrow_batches(piece, request):
            assert set(batch["committed"].to_pylist()) == {True}
            assert set(batch["file"].to_pylist()) == {piece.path}
