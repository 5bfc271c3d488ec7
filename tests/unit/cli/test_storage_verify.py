"""`quorate storage verify` on real directories of Quorate and of Apache Kafka."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.cli.nodes.node_process import run_to_end
from quorate.cli.nodes.server import load_config
from quorate.cli.storage import verify as verify_module
from quorate.cli.terminal import progress
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.node.opening.data_directory import LOCK_FILE
from quorate.quorum.offline.storage_verify import Verification
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from tests.unit.log.batches import append

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
KAFKA = Path(__file__).parents[2] / "fixtures/kafka-4.1.1-metadata/c1"
LOG = f"{0:020}.log"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of the node."""
    return tmp_path / "data"


def verify(directory: Path, *more: str | Path) -> Result:
    """Run `quorate storage verify`."""
    return CliRunner().invoke(main, ["storage", "verify", str(directory), *map(str, more)])


def formatted(data: Path, role: str) -> Path:
    """Format the directory for a node with this role, and return its .properties file."""
    file = data.parent / f"{role}.properties"
    listener = "CONTROLLER://localhost:9093" if role == "controller" else "PLAINTEXT://localhost:0"
    file.write_text(
        f"process.roles={role}\nnode.id=1\nlog.dirs={data}\nlisteners={listener}\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters={1 if role == 'controller' else 2}@localhost:9093\n"
    )
    command = ["storage", "format", "-t", CLUSTER, "-c", str(file)]
    assert CliRunner().invoke(main, command).exit_code == 0
    return file


def metadata_log(data: Path, *, unflushed: int = 0) -> Path:
    """Write a metadata log with ten flushed records and some more, and return its segment."""
    directory = data / "__cluster_metadata-0"
    settings = LogSettings(flushed_is_acknowledged=True)
    log = Log.open(OsDisk(), str(directory), settings, wall_ms=0, clean=False)
    ElectionFile(OsDisk(), str(directory), (1,)).save(Election(1))
    for offset in range(10 + unflushed):
        if offset == 10:
            log.flush()
        append(log, 1, b"%d" % offset)
    if unflushed:
        return directory / LOG
    log.close()
    return directory / LOG


def flip(path: Path, position: int) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_formatted_directory_is_sound(data: Path) -> None:
    formatted(data, "broker")
    result = verify(data)
    assert (result.exit_code, result.output) == (0, f"{data}: 0 logs, 0 batches: sound\n")


def test_a_check_that_takes_long_shows_its_progress(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress, "REDRAW_S", 0.001)
    formatted(data, "broker")
    real, shown = verify_module.check, ""

    def slow(disk: OsDisk, path: str) -> Verification:
        nonlocal shown
        while not shown:
            shown = capsys.readouterr().err
        return real(disk, path)

    monkeypatch.setattr(verify_module, "check", slow)
    verify_module.run(str(data), repairing=False, file=None, output="text")
    assert shown.startswith(f"verifying {data}: ")


def test_kafkas_own_directory(tmp_path: Path) -> None:
    directory = tmp_path / "kafka"
    shutil.copytree(KAFKA, directory)
    result = verify(directory, "--format", "json")
    rows = [json.loads(line) for line in result.output.splitlines()]
    assert result.exit_code == 0
    assert {row["kind"] for row in rows} == {"note"}
    flip(directory / LOG, 5_000)
    result = verify(directory, "--format", "json")
    (row,) = [each for line in result.output.splitlines() if (each := json.loads(line))["byte"]]
    assert result.exit_code == 1
    assert (row["file"], row["kind"], row["repaired"]) == (str(directory / LOG), "damaged", False)
    assert row["offset"] > 0
    assert "restore this file from a backup" in row["wayOut"]


def test_a_torn_tail_is_cut_by_repair_alone(data: Path) -> None:
    formatted(data, "controller")
    log = metadata_log(data, unflushed=3)
    torn = log.read_bytes()[:-20]
    log.write_bytes(torn)
    result = verify(data)
    assert result.exit_code == 1
    assert f"{log}: byte" in result.output
    assert "torn" in result.output
    assert log.read_bytes() == torn
    result = verify(data, "--repair")
    assert result.exit_code == 0
    assert f"repaired: {log}: byte" in result.output
    assert torn.startswith(log.read_bytes())
    assert verify(data).exit_code == 0


def damaged_log(data: Path) -> str:
    """Damage the metadata log, and return the place that the error must name."""
    flip(metadata_log(data), 100)
    return "byte 69, offset 1"


def damaged_vote(data: Path) -> str:
    """Damage both files of the vote, and return a part of the expected error."""
    directory = data / "__cluster_metadata-0"
    directory.mkdir()
    (directory / "quorum-state").write_text("{")
    (directory / "quorate-quorum-state").write_text("{")
    return "the vote of this node is lost"


def damaged_generation(data: Path) -> str:
    """Damage the file of the generation, and return a part of the expected error."""
    directory = data / "__cluster_metadata-0"
    directory.mkdir()
    (directory / "quorate-quorum-generation").write_text("{")
    return "quorate-quorum-generation is damaged"


@pytest.mark.parametrize("damage", [damaged_log, damaged_vote, damaged_generation])
def test_a_node_that_refuses_its_directory_says_it_in_one_line(
    data: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], str]
) -> None:
    """The operator must repair the directory, so that the error is no broken invariant and no
    traceback."""
    file = formatted(data, "controller")
    expected = damage(data)
    assert run_to_end(load_config(str(file)), None) == 1
    assert f"the node stops: {data}" in caplog.text
    assert expected in caplog.text
    assert "Traceback" not in caplog.text
    assert expected in verify(data).output


def test_a_voters_damaged_log_is_never_touched(data: Path) -> None:
    file = formatted(data, "controller")
    log = metadata_log(data)
    flip(log, 100)
    before = log.read_bytes()
    result = verify(data, "--repair", "--config", file)
    assert result.exit_code == 1
    assert f"{log}: byte 69, offset 1: damaged: " in result.output
    assert log.read_bytes() == before


def test_a_brokers_damaged_metadata_log_is_set_aside_when_asked_for(data: Path) -> None:
    file = formatted(data, "broker")
    log = metadata_log(data)
    flip(log, 100)
    before = log.read_bytes()
    assert verify(data, "--repair").exit_code == 1
    assert log.read_bytes() == before, "nobody said that it is a broker's"
    result = verify(data, "--repair", "--config", file)
    assert result.exit_code == 0
    (aside,) = data.glob("__cluster_metadata-0.*-stray")
    assert f"was renamed to {aside}" in result.output
    assert (aside / LOG).read_bytes() == before
    assert not log.exists()


def test_another_nodes_config_is_refused(data: Path, tmp_path: Path) -> None:
    file = formatted(data, "broker")
    other = tmp_path / "other"
    shutil.copytree(data, other)
    result = verify(other, "--repair", "--config", file)
    assert result.exit_code == 1
    assert f"belongs to {data}, not to {other}" in result.output
    text = file.read_text()
    assert f"log.dirs={data}\n" in text
    file.write_text(text.replace(f"log.dirs={data}\n", f"log.dirs={data},{other}\n"))
    assert verify(other, "--config", file).exit_code == 0, "it is one of the node's directories"


def test_a_directory_in_use_is_refused(data: Path) -> None:
    formatted(data, "broker")
    log = metadata_log(data)
    lock = OsDisk().lock(str(data / LOCK_FILE))
    for directory in (data, log.parent):
        result = verify(directory)
        assert result.exit_code == 1
        assert "in use by a running node" in result.output
    lock.release()
    assert verify(log.parent).exit_code == 0


def test_what_kafka_locks_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(*arguments: object) -> None:
        raise BlockingIOError

    formatted(data, "broker")
    monkeypatch.setattr(fcntl, "lockf", held)
    result = verify(data)
    assert result.exit_code == 1
    assert "in use by a running Kafka" in result.output
