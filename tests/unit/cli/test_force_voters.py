"""`quorate metadata-quorum force-voters`: its output, its question, and its result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import TopicRecord
from quorate.quorum.node.opening.data_directory import METADATA_DIRECTORY
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.offline.source_directories import read_source

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
WALL_MS = 1_700_000_000_000


def run(*arguments: str, answer: str = "") -> Result:
    """Run a command with an answer on standard input."""
    return CliRunner().invoke(main, list(arguments), input=answer)


def config_file(root: Path, node_id: int, role: str) -> Path:
    """Write the .properties file of a node, and return its path."""
    file = root / f"{node_id}.properties"
    listener = "CONTROLLER://localhost:9093" if role == "controller" else "PLAINTEXT://localhost:1"
    file.write_text(
        f"process.roles={role}\nnode.id={node_id}\nlog.dirs={root}/{node_id}\n"
        f"listeners={listener}\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
    )
    return file


def broker(root: Path, node_id: int, topics: int) -> str:
    """Create the directory of a broker whose metadata has `topics` topics, and return it."""
    file = config_file(root, node_id, "broker")
    assert run("storage", "format", "-t", CLUSTER, "-c", str(file)).exit_code == 0
    directory = root / str(node_id) / METADATA_DIRECTORY
    settings = LogSettings(flushed_is_acknowledged=True)
    storage = MetadataStorage.open(OsDisk(), str(directory), settings, wall_ms=WALL_MS)
    for number in range(topics):
        record = TopicRecord(name=f"topic-{number}", topic_id=bytes([number + 1] * 16))  # type: ignore[arg-type]
        batch = build_value_batch(
            [encode_record(record)], base_offset=number, leader_epoch=2, timestamp_ms=WALL_MS
        )
        storage.log.append(batch, wall_ms=WALL_MS)
    storage.close()
    return str(root / str(node_id))


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return a command line with two brokers' directories and one new controller."""
    directories = [broker(tmp_path, 4, 3), broker(tmp_path, 5, 20)]
    controller = config_file(tmp_path, 10, "controller")
    given = [part for each in directories for part in ("--dir", each)]
    return ["metadata-quorum", "force-voters", *given, "--controller", str(controller)]


def test_what_would_be_lost_is_shown_before_it_asks(tmp_path: Path, arguments: list[str]) -> None:
    refused = run(*arguments, answer="n\n")
    assert refused.exit_code == 1
    assert not (tmp_path / "10").exists()
    lines = [line.strip() for line in refused.output.splitlines()]
    assert lines[1].startswith(
        f"{tmp_path}/5 (node 5) has the most up-to-date log: ends at offset 20, epoch 2"
    )
    assert "lacks offsets 3 to 19" in lines
    shown = ", ".join(f"topic-{n}" for n in sorted(range(3, 20), key=lambda n: f"topic-{n}")[:10])
    assert f"topics created since: {shown} and 7 more" in lines
    assert any(line.startswith("10@localhost:9093 in ") for line in lines)
    assert "Rebuild the quorum from this? [y/N]: n" in lines


def test_a_yes_rebuilds_and_says_what_to_do_next(tmp_path: Path, arguments: list[str]) -> None:
    done = run(*arguments, answer="y\n")
    assert done.exit_code == 0
    assert "set controller.quorum.bootstrap.servers=localhost:9093" in done.output
    found = read_source(OsDisk(), str(tmp_path / "10"))
    assert found.image.topic_names() == sorted(f"topic-{number}" for number in range(20))
    assert len(found.rebuilds) == 1
    again = run(*arguments, "--yes")
    assert again.exit_code == 1 and "Give the directory with --dir too" in again.output


def test_dry_runs_and_scripts(tmp_path: Path, arguments: list[str]) -> None:
    dry = run(*arguments, "--dry-run")
    assert dry.exit_code == 0 and dry.output.endswith("DRY RUN: nothing was changed\n")
    assert not (tmp_path / "10").exists()
    done = json.loads(run(*arguments, "--yes", "--format", "json").output)
    assert done["done"] and done["generation"] == 1 and done["epoch"] > 2
    assert done["others"][0]["lacks"] == {"from": 3, "to": 19}
    assert [each["id"] for each in done["voters"]] == [10]


def test_the_plan_is_shown_before_the_confirmation_also_with_json(
    tmp_path: Path, arguments: list[str]
) -> None:
    refused = run(*arguments, "--format", "json", answer="n\n")
    assert refused.exit_code == 1
    assert refused.stdout == ""
    shown = refused.stderr.index("(node 5) has the most up-to-date log: ends at offset 20")
    assert shown < refused.stderr.index("Rebuild the quorum from this? [y/N]")
    done = run(*arguments, "--format", "json", answer="y\n")
    assert json.loads(done.stdout)["done"]


def test_mistakes_are_told_in_one_line(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "empty").mkdir()
    refused = run(*arguments, "--dir", str(tmp_path / "empty"), "--yes")
    assert refused.exit_code == 1 and "empty holds no meta.properties" in refused.output
    usage = run("metadata-quorum", "force-voters", "--dir", str(tmp_path))
    assert usage.exit_code == 2 and "--controller" in usage.output
