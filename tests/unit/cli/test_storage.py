"""`quorate storage`: the files that it writes, and the refusals, which change no file."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.config.loader import load
from quorate.quorum.ids import ReplicaKey, Uuid, uuid_from_text, uuid_to_text
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.node.opening.data_directory import LOCK_FILE, require_formatted
from quorate.quorum.node.opening.directory_lock import lock_directories
from quorate.quorum.node.opening.meta_properties import (
    META_COPY,
    META_FILE,
    StorageError,
    read_meta,
)
from quorate.quorum.node.replica.metadata_mark import MARK_NAME, read_mark, write_mark
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.errors import ElectionFileError
from quorate.quorum.seams import Seams

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
OTHER = "JEXY6aqzQY-32P5TStzaFg"
FIRST = "JEXY6aqzQY-32P5TStzaFg"
SECOND = "MvDxzVmcRsaTz33bUuRU6A"
STATIC = "controller.quorum.voters=1@localhost:9093\n"
DYNAMIC = "controller.quorum.bootstrap.servers=localhost:9093\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of the node."""
    return tmp_path / "data"


@pytest.fixture
def disk() -> OsDisk:
    """The real disk."""
    return OsDisk()


def write_config(data: Path, quorum: str = STATIC, node_id: int = 1) -> Path:
    """Write the .properties file of a controller, and return its path."""
    file = data.parent / "server.properties"
    file.write_text(
        f"process.roles=controller\nnode.id={node_id}\nlog.dirs={data}\n{quorum}"
        "listeners=CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\n"
    )
    return file


def run(*arguments: str | Path) -> Result:
    """Run a command of `quorate storage`."""
    return CliRunner().invoke(main, ["storage", *map(str, arguments)])


def format_node(data: Path, *more: str, quorum: str = STATIC, cluster: str = CLUSTER) -> Result:
    """Format the data directory."""
    named = () if "--cluster-id" in more else ("-t", cluster)
    return run("format", *named, "-c", write_config(data, quorum), *more)


def dumped(path: Path) -> str:
    """Return the output of `quorate dump-log` for a file of metadata records."""
    dump = ["dump-log", "--cluster-metadata-decoder", "--files", str(path)]
    return CliRunner().invoke(main, dump).output


def content(data: Path) -> dict[str, bytes]:
    """Return the content of all files of the directory by relative path, without the lock."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in sorted(data.rglob("*"))
        if path.is_file() and path.name != LOCK_FILE
    }


def test_a_formatted_directory(data: Path, disk: OsDisk) -> None:
    result = format_node(data)
    assert result.output == f"Formatting metadata directory {data} with metadata.version 4.1-IV1.\n"
    meta = read_meta(disk, str(data))
    assert meta is not None
    assert (meta.cluster_id, meta.node_id) == (CLUSTER, 1)
    assert sorted(content(data)) == ["bootstrap.checkpoint", META_FILE, META_COPY, MARK_NAME]
    assert '{"name":"metadata.version","featureLevel":27}' in dumped(data / "bootstrap.checkpoint")


def test_info(data: Path, disk: OsDisk) -> None:
    file = write_config(data)
    result = run("info", "-c", file)
    assert result.exit_code == 1
    assert f"Found problem:\n  {data} does not exist" in result.output
    format_node(data)
    meta = read_meta(disk, str(data))
    assert meta is not None
    result = run("info", "-c", file)
    assert result.exit_code == 0
    assert (
        f"Found metadata: {{cluster.id={CLUSTER}, "
        f"directory.id={uuid_to_text(meta.directory_id)}, node.id=1, version=1}}"
    ) in result.output


def test_an_override_replaces_a_value_of_the_file(data: Path, disk: OsDisk) -> None:
    other = data.with_name("other")
    done = format_node(data, "--override", f"log.dirs={other}", "--override", "node.id=1")
    assert done.exit_code == 0, done.output
    assert not data.exists()
    meta = read_meta(disk, str(other))
    assert meta is not None
    assert meta.node_id == 1


def test_a_formatted_directory_is_left_alone(data: Path) -> None:
    format_node(data)
    before = content(data)
    result = format_node(data)
    assert result.exit_code == 1
    assert "is already formatted. Use --ignore-formatted" in result.output
    assert format_node(data, "--ignore-formatted").exit_code == 0
    assert content(data) == before


def test_another_cluster_or_node_is_refused(data: Path) -> None:
    format_node(data)
    before = content(data)
    result = format_node(data, "--ignore-formatted", cluster=OTHER)
    assert result.exit_code == 1
    assert f"Expected {OTHER}, but read {CLUSTER}" in result.output
    file = write_config(data, "controller.quorum.voters=2@localhost:9093\n", node_id=2)
    result = run("format", "-g", "-t", CLUSTER, "-c", file)
    assert result.exit_code == 1
    assert "Invalid node.id in" in result.output
    assert content(data) == before


def test_a_directory_in_use_is_refused(data: Path, disk: OsDisk) -> None:
    data.mkdir()
    lock = disk.lock(str(data / LOCK_FILE))
    result = format_node(data)
    lock.release()
    assert result.exit_code == 1
    assert "in use by a running node" in result.output
    assert content(data) == {}


def test_the_voters_of_a_dynamic_quorum(data: Path, disk: OsDisk) -> None:
    voters = f"1@localhost:9093:{FIRST},2@localhost:9094:{SECOND}"
    result = format_node(data, "--initial-controllers", voters, quorum=DYNAMIC)
    assert result.output.startswith(f"Formatting dynamic metadata voter directory {data}")
    meta = read_meta(disk, str(data))
    assert meta is not None
    assert meta.directory_id == uuid_from_text(FIRST)
    snapshot = data / "__cluster_metadata-0" / f"{0:020d}-{0:010d}.checkpoint"
    shown = dumped(snapshot)
    assert 'KRaftVersion {"version":0,"kRaftVersion":1}' in shown
    assert f'"voterId":2,"voterDirectoryId":"{SECOND}"' in shown
    assert '"endpoints":[{"name":"CONTROLLER","host":"localhost","port":9094}]' in shown


def test_a_standalone_voter_is_the_node_itself(data: Path, disk: OsDisk) -> None:
    assert format_node(data, "--standalone", quorum=DYNAMIC).exit_code == 0
    meta = read_meta(disk, str(data))
    assert meta is not None
    snapshot = data / "__cluster_metadata-0" / f"{0:020d}-{0:010d}.checkpoint"
    assert f'"voterDirectoryId":"{uuid_to_text(meta.directory_id)}"' in dumped(snapshot)


@pytest.mark.parametrize(
    ("quorum", "options", "code", "message"),
    [
        (DYNAMIC, [], 1, "you must specify one of the following: --standalone"),
        (STATIC, ["--standalone"], 1, "also set controller.quorum.voters"),
        (DYNAMIC, ["--standalone", "--no-initial-controllers"], 2, "only one of --standalone"),
        (DYNAMIC, ["-I", f"2@localhost:9094:{SECOND}"], 1, "must name this controller, node.id 1"),
        (DYNAMIC, ["-I", "1@localhost:9093"], 2, "must be id@host:port:directory-id"),
        (DYNAMIC, ["-I", "1@localhost:9093:short"], 2, "is not a uuid"),
        (DYNAMIC, ["-I", f"1@localhost:99999:{FIRST}"], 2, "must have a port from 1 to 65535"),
        (DYNAMIC, ["-I", f"1@localhost:0:{FIRST}"], 2, "must have a port from 1 to 65535"),
        (DYNAMIC, ["-I", f"{2**31}@localhost:9093:{FIRST}"], 2, "must be id@host:port"),
        (DYNAMIC, ["-I", f"1@a:1:{FIRST},1@b:1:{SECOND}"], 2, "node id 1 must occur only once"),
        (DYNAMIC, ["-I", f"1@a:1:{FIRST},2@b:1:{FIRST}"], 2, "another directory id than node 1"),
        (DYNAMIC, ["-I", f"1@localhost:9093:{'A' * 22}"], 2, "is reserved"),
        (DYNAMIC, ["-I", ""], 2, "must be id@host:port:directory-id"),
        (STATIC, ["--cluster-id", ""], 2, "must have 1 to 249 bytes of printable text"),
        (STATIC, ["--cluster-id", "a\nb"], 2, "must have 1 to 249 bytes of printable text"),
        (STATIC, ["--cluster-id", "ü" * 125], 2, "must have 1 to 249 bytes of printable text"),
        (STATIC, ["-S", "SCRAM-SHA-256=[name=a\udcff,password=p]"], 1, "must be UTF-8 text"),
        (STATIC, ["-S", "SCRAM-SHA-256=[name=a,password=p\udcff]"], 1, "must be UTF-8 text"),
        (STATIC, ["--release-version", "3.9"], 1, "must be 4.1-IV1"),
    ],
)
def test_refusals_before_anything_is_made(
    data: Path, quorum: str, options: list[str], code: int, message: str
) -> None:
    result = format_node(data, *options, quorum=quorum)
    assert result.exit_code == code
    assert message in result.output
    assert not data.exists()


def test_a_format_without_a_cluster_id_names_the_command_that_makes_one(tmp_path: Path) -> None:
    file = tmp_path / "node.properties"
    file.touch()
    result = run("format", "--config", str(file))
    assert result.exit_code == 2
    assert "Missing option '-t' / '--cluster-id'." in result.output
    assert "`quorate storage random-uuid` prints the id of a new cluster" in result.output


def test_a_random_uuid_is_a_cluster_id() -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}\n", run("random-uuid").output)


class TestMetaProperties:
    """meta.properties and its copy: both valid and equal, one damaged, none, or two that contradict
    each other."""

    @pytest.fixture(autouse=True)
    def formatted(self, data: Path) -> None:
        """Formats the directory for each test."""
        format_node(data)

    @pytest.mark.parametrize("damaged", [META_FILE, META_COPY])
    @pytest.mark.parametrize("how", ["missing", "garbage", "empty"])
    def test_one_damaged_file_is_repaired(
        self, data: Path, disk: OsDisk, damaged: str, how: str
    ) -> None:
        whole = content(data)
        if how == "missing":
            (data / damaged).unlink()
        else:
            (data / damaged).write_bytes(b"" if how == "empty" else b"\xff\xfe")
        assert read_meta(disk, str(data)) is not None
        assert content(data) != whole
        read_meta(disk, str(data), repair=True)
        assert content(data) == whole

    def test_a_flipped_bit_in_the_copy_is_found(self, data: Path, disk: OsDisk) -> None:
        whole = (data / META_COPY).read_bytes()
        for position in range(len(whole)):
            flipped = bytearray(whole)
            flipped[position] ^= 1
            (data / META_COPY).write_bytes(flipped)
            meta = read_meta(disk, str(data))
            assert meta is not None
            assert meta.cluster_id == CLUSTER

    def test_kafkas_own_file_gets_a_copy(self, data: Path, disk: OsDisk) -> None:
        (data / META_COPY).unlink()
        (data / META_FILE).write_text(
            f"#\n#Sat Nov 21 03:44:19 UTC 2026\nnode.id=1\ndirectory.id={FIRST}\nversion=1\n"
            f"cluster.id={CLUSTER}\n"
        )
        meta = read_meta(disk, str(data), repair=True)
        assert meta is not None
        assert meta.directory_id == uuid_from_text(FIRST)
        assert (data / META_COPY).exists()

    def test_two_that_contradict_each_other_are_refused(self, data: Path, disk: OsDisk) -> None:
        text = (data / META_FILE).read_text()
        (data / META_FILE).write_text(text.replace("node.id=1", "node.id=2"))
        with pytest.raises(StorageError, match="remove the file that is wrong"):
            read_meta(disk, str(data))

    def test_two_damaged_files_are_refused(self, data: Path, disk: OsDisk) -> None:
        (data / META_FILE).write_text("version=1\n")
        (data / META_COPY).write_text("")
        with pytest.raises(StorageError, match=r"cluster\.id is missing. Restore it"):
            read_meta(disk, str(data))

    def test_a_node_takes_only_its_own_directory(self, data: Path, disk: OsDisk) -> None:
        file = write_config(data)
        assert require_formatted(disk, load(str(file), environment={})).metadata.node_id == 1
        with pytest.raises(StorageError, match=f"belongs to cluster {CLUSTER}, not to {OTHER}"):
            require_formatted(disk, load(str(file), environment={"CLUSTER_ID": OTHER}))
        file = write_config(data, "controller.quorum.voters=2@localhost:9093\n", node_id=2)
        with pytest.raises(StorageError, match=r"belongs to node\.id 1, not to 2"):
            require_formatted(disk, load(str(file), environment={}))


def test_a_node_says_how_to_format(data: Path, disk: OsDisk) -> None:
    with pytest.raises(StorageError, match="Run `quorate storage format"):
        require_formatted(disk, load(str(write_config(data)), environment={}))


def test_an_operator_declares_a_disk_new_or_lost(data: Path, disk: OsDisk) -> None:
    config = write_config(data)
    assert "is not formatted" in run("declare", "--new", "-c", config).output
    format_node(data)
    assert run("declare", "-c", config).exit_code == 2
    result = run("declare", "--lost", "-c", config)
    assert (result.exit_code, "catches up before it votes" in result.output) == (0, True)
    mark = read_mark(disk, str(data))
    assert mark is not None and mark.catching_up
    result = run("declare", "--new", "-c", config)
    assert (result.exit_code, "votes from its next start" in result.output) == (0, True)
    mark = read_mark(disk, str(data))
    assert mark is not None and not mark.catching_up


def test_a_directory_in_use_is_not_declared(data: Path, disk: OsDisk) -> None:
    format_node(data)
    lock = disk.lock(str(data / LOCK_FILE))
    result = run("declare", "--new", "-c", write_config(data))
    lock.release()
    assert result.exit_code == 1 and "in use" in result.output


def test_a_formatted_directory_is_the_nodes_own(data: Path) -> None:
    before = os.umask(0)
    try:
        data.mkdir(mode=0o777)
        format_node(data)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (data, *data.rglob("*"))}
    assert modes.pop(data) == 0o700
    assert set(modes.values()) == {0o600}


def election_of(data: Path, disk: OsDisk) -> ElectionFile:
    """Return the election files of the node."""
    directory = data / "__cluster_metadata-0"
    directory.mkdir(exist_ok=True)
    return ElectionFile(disk, str(directory), [1])


@pytest.mark.parametrize("epoch", [1 << 40, (1 << 31) - 1])
def test_an_epoch_that_a_false_message_raised_is_repaired(
    data: Path, disk: OsDisk, epoch: int
) -> None:
    """A controller saved the epoch of a Vote with epoch 2^40, and each later leader stopped at its
    first record."""
    format_node(data)
    mark = read_mark(disk, str(data))
    assert mark is not None
    file = election_of(data, disk)
    voted = ReplicaKey(2, Uuid(b"d" * 16))
    pinned = (ReplicaKey(1, mark.directory_id), voted)
    file.save(Election(epoch, voted, pinned=pinned))
    if epoch == 1 << 40:
        with pytest.raises(ElectionFileError, match=rf"quorum-state.*{epoch}.*repair-epoch"):
            file.load()
        assert "repair-epoch" in run("verify", data).output
    else:
        write_mark(disk, str(data), replace(mark, epoch=epoch))
    config = write_config(data)
    result = run("repair-epoch", "-c", config)
    assert result.exit_code == 0, result.output
    assert f"epoch {epoch} became 1000" in result.output
    assert file.load() == Election(1000, None, pinned=pinned)
    mark = read_mark(disk, str(data))
    assert mark is not None and mark.epoch <= 1000
    again = run("repair-epoch", "-c", config)
    assert (again.exit_code, "is plausible" in again.output) == (1, True)


@pytest.mark.parametrize("chosen", [-1, 0, 1 << 21, 1 << 31])
def test_a_repaired_epoch_is_just_above_the_log(data: Path, disk: OsDisk, chosen: int) -> None:
    format_node(data)
    file = election_of(data, disk)
    file.save(Election(1 << 40))
    result = run("repair-epoch", "-c", write_config(data), "--epoch", str(chosen))
    assert (result.exit_code, "is not possible" in result.output) == (1, True)
    assert file.load(any_epoch=True).epoch == 1 << 40
    assert run("repair-epoch", "-c", write_config(data), "--epoch", "17").exit_code == 0
    assert file.load().epoch == 17


def test_the_epoch_of_a_running_node_is_not_repaired(data: Path, disk: OsDisk) -> None:
    format_node(data)
    lock = disk.lock(str(data / LOCK_FILE))
    result = run("repair-epoch", "-c", write_config(data))
    lock.release()
    assert result.exit_code == 1 and "in use" in result.output


def test_a_start_takes_the_directory_from_other_users(data: Path, disk: OsDisk) -> None:
    format_node(data)
    data.chmod(0o755)
    config = load(str(write_config(data)), environment={})
    seams = Seams(clock=None, random=None, transport=None, disk=disk)  # type: ignore[arg-type]
    lock_directories(config, seams).release()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_several_directories(data: Path, disk: OsDisk) -> None:
    one, two, three = (data / each for each in ("one", "two", "three"))

    def configured(*paths: Path) -> str:
        file = write_config(data)
        text = Path(file).read_text().replace(f"log.dirs={data}\n", "")
        Path(file).write_text(f"{text}\nlog.dirs={','.join(map(str, paths))}\n")
        return str(file)

    both = configured(one, two)
    result = run("format", "-t", CLUSTER, "-c", both)
    assert result.output.splitlines() == [
        f"Formatting metadata directory {one} with metadata.version 4.1-IV1.",
        f"Formatting data directory {two} with metadata.version 4.1-IV1.",
    ]
    assert sorted(content(two)) == [META_FILE, META_COPY]
    info = run("info", "-c", both)
    assert info.exit_code == 0
    assert f"Found log directories:\n  {one}\n  {two}\n" in info.output
    assert len(set(re.findall(r"directory.id=(\S+),", info.output))) == 2
    all_three = configured(one, two, three)
    assert "is already formatted" in run("format", "-t", CLUSTER, "-c", all_three).output
    assert f"Found problem:\n  {three} does not exist\n" in run("info", "-c", all_three).output
    result = run("format", "-t", CLUSTER, "-c", all_three, "--ignore-formatted")
    assert result.output == (f"Formatting data directory {three} with metadata.version 4.1-IV1.\n")
    other = run("format", "-t", OTHER, "-c", all_three, "--ignore-formatted")
    assert f"Invalid cluster.id in: {one}/meta.properties" in other.output
    held = disk.lock(f"{two}/{LOCK_FILE}")
    (three / META_FILE).unlink()
    (three / META_COPY).unlink()
    assert f"{two} is in use by a running node" in (
        run("format", "-t", CLUSTER, "-c", all_three, "--ignore-formatted").output
    )
    held.release()
