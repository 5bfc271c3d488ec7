"""`quorate state-changes merge`: the metadata log and node logs as one story."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.cli.state_changes.merge import Wanted, lines_of, ms_of, of_log
from tests.unit.analytics.logs import batches, write_segment

B4 = """\
2027-01-15 08:00:04,100 INFO [broker 4] state.change: partition a-1: this broker leads
2027-01-15 08:00:04,200 INFO [broker 4] state.change: partition a-10: this broker leads
2027-01-15 08:00:05,000 ERROR [broker 4] quorate.broker: about aa-1 and a-1.b and x.a-1
Traceback: a-1
2027-01-15 08:00:09,500 INFO [broker 4] state.change: partition a-1: leads; see /d/a-1/0.log
"""
B5 = """\
[2027-01-15 08:00:06,300] INFO [Broker id=5] Follower a-1 starts at epoch 1 (state.change.logger)
"""


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return the directory of a local cluster with one metadata log and two node logs."""
    nodes = [
        {"id": n, "pid": None, "log_dir": str(tmp_path / f"nodes/{n}/data")} for n in (1, 4, 5)
    ]
    entry = {"cluster_id": "c", "controllers": nodes[:1], "brokers": nodes[1:]}
    (tmp_path / "cluster.json").write_text(json.dumps(entry))
    for node, text in ((4, B4), (5, B5)):
        (tmp_path / f"nodes/{node}").mkdir(parents=True)
        (tmp_path / f"nodes/{node}/node.log").write_text(text)
    write_segment(tmp_path / "nodes/1/data", 0, b"".join(batches()))
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["state-changes", "merge", *map(str, arguments)])


def test_the_story_of_a_partition_over_all_nodes(cluster: Path) -> None:
    done = run(cluster, "--topic", "a", "--partition", 1, "--to", "2027-01-15T08:00:07")
    assert done.exit_code == 0, done.output
    assert [line[11:].split(":  ")[0][:60] for line in done.output.splitlines()] == [
        "08:00:04.000  metadata offset 12: Created on brokers 1, 2 an",
        "08:00:04.100  broker 4: state.change: partition a-1: this br",
        "08:00:06.000  metadata offset 17: Broker 3 left the ISR; in ",
        "08:00:06.300  node.log: [Broker id=5] Follower a-1 starts at",
        "08:00:07.000  metadata offset 20: Broker 1 leads instead of ",
    ]
    assert "[topic-created]" in done.output


def test_a_period_and_json(cluster: Path) -> None:
    done = run(
        *(cluster, "--topic", "a", "--partition", 1, "--format", "json"),
        *("--from", "2027-01-15 08:00:06,001", "--to", ms_of("2027-01-15 08:00:07,000")),
    )
    assert json.loads(done.output) == [
        {
            "time_ms": ms_of("2027-01-15 08:00:06,300"),
            "source": "node.log",
            "partition": 1,
            "text": B5.split("INFO ")[1].strip(),
            "cause": "",
            "offset": None,
        },
        {
            "time_ms": ms_of("2027-01-15 08:00:07,000"),
            "source": "metadata",
            "partition": 1,
            "text": (
                "Broker 1 leads instead of broker 2, leader epoch 1. Broker 2 left the ISR; "
                "in sync: 1. No heartbeat came for broker.session.timeout.ms."
            ),
            "cause": "session-expired",
            "offset": 20,
        },
    ]


def test_only_lines_of_the_partition_belong_to_it(cluster: Path) -> None:
    found = list(of_log(cluster / "nodes/4/node.log", Wanted(topic="a", partitions=(1,))))
    assert [each.time_ms % 100_000 for each in found] == [4_100, 9_500]
    every = list(of_log(cluster / "nodes/4/node.log", Wanted(topic="a")))
    assert [each.partition for each in every] == [1, 10, 1]


def test_given_files_alone(cluster: Path) -> None:
    logs = f"{cluster}/nodes/4/node.log,{cluster}/nodes/5/node.log"
    done = run("--logs", logs, "--topic", "a", "--partition", 1)
    assert [line.split("  ")[1].split(":")[0] for line in done.output.splitlines()] == [
        "broker 4",
        "node.log",
        "broker 4",
    ]
    (cluster / "node-4.log").write_text(B4)
    (cluster / "other.txt").write_text(B5)
    chosen = run("--logs-regex", f"{cluster}/node-\\d", "--topic", "a", "--partition", 1)
    assert len(chosen.output.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--topic", "a"), 2, "DIR, --logs or --logs-regex must be given"),
        (("--logs", "x", "--logs-regex", "y", "--topic", "a"), 2, "only one of"),
        (("--logs", "/none/x.log", "--topic", "a"), 1, "a log cannot be read"),
        (("--logs-regex", "/none/x", "--topic", "a"), 1, "--logs-regex"),
        (("--logs-regex", "(", "--topic", "a"), 2, "--logs-regex"),
        (("--logs-regex", "a{99999999999}", "--topic", "a"), 2, "--logs-regex"),
        (("--logs", "x"), 2, "Missing option '--topic'"),
        (("--logs", "x", "--topic", "a", "--from", "soon"), 2, "must be a time"),
        (("--logs", "x", "--topic", "a", "--from", "9" * 5_000), 2, "must be a time"),
        (("--logs", "x", "--topic", "a", "--from", 9, "--to", 8), 2, "--to must be later than"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, said in done.output) == (code, True), done.output


def test_a_topic_that_no_record_names(cluster: Path) -> None:
    done = run(cluster, "--topic", "none")
    assert done.exit_code == 1
    assert "this history knows no none" in done.output


def test_a_long_line_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.cli.state_changes.merge.MAX_LINE_BYTES", 8)
    file = tmp_path / "long.log"
    file.write_bytes(b"0123456789abcdefghij\nshort\nlast")
    assert list(lines_of(file)) == [b"01234567", b"short\n", b"last"]
