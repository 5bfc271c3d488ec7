"""Every command that asks a cluster shows that it waits, and for how long."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.cli.terminal import progress
from tests.unit.cli.fake_kafka import fake_kafka

HELD = {
    "quorate console": "serves a page, which shows the error",
    "quorate chaos run": "prints the steps of a scenario",
}
"""The commands that do not wait silently for a cluster, with the reason."""
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "quorate acls": ("--list",),
    "quorate broker-api-versions": (),
    "quorate cluster cluster-id": (),
    "quorate cluster decommission": ("4", "--yes"),
    "quorate cluster unregister": ("--id", "4"),
    "quorate configs": ("--describe", "--topic", "t"),
    "quorate console-consumer": ("--topic", "t"),
    "quorate console-producer": ("--topic", "t"),
    "quorate consumer-groups": ("--list",),
    "quorate delete-records": ("--offset-json-file", "@offsets"),
    "quorate features": ("describe",),
    "quorate get-offsets": ("--topic", "t"),
    "quorate leader-election": ("--election-type", "preferred", "--all-topic-partitions"),
    "quorate log-dirs": ("--describe",),
    "quorate metadata-quorum": ("describe", "--status"),
    "quorate reassign-partitions": ("--list",),
    "quorate replica-verification": (),
    "quorate status": (),
    "quorate topics": ("--list",),
}
"""The arguments of each command that takes --bootstrap-server, after that option."""


def asking(group: click.Group, path: str) -> Iterator[str]:
    """Yield the commands with --bootstrap-server. A group with the option stands for its
    commands."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if any("--bootstrap-server" in each.opts for each in command.params):
            yield f"{path} {name}"
        elif isinstance(command, click.Group):
            yield from asking(command, f"{path} {name}")


def test_the_table_has_every_command_that_asks_a_cluster() -> None:
    assert {*asking(main, "quorate")} == ARGUMENTS.keys() | HELD.keys()


@pytest.mark.parametrize("command", sorted(ARGUMENTS))
def test_a_command_that_waits_says_so(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system accepts the connection, and nobody answers."""
    monkeypatch.setattr(progress, "QUIET_S", 0.01)
    monkeypatch.setattr(progress, "REDRAW_S", 0.01)
    offsets = tmp_path / "offsets"
    offsets.write_text(
        '{"partitions": [{"topic": "t", "partition": 0, "offset": 1}], "version": 1}'
    )
    arguments = [str(offsets) if each == "@offsets" else each for each in ARGUMENTS[command]]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()[:2]
        options = ["--bootstrap-server", f"{host}:{port}", "--timeout", "0.1"]
        done = CliRunner().invoke(main, [*command.split()[1:], *options, *arguments], input="x\n")
    assert "asking the cluster: 0 s" in done.stderr, done.output
    assert "no server answers" in done.stderr
    assert done.exit_code == 3


def test_a_command_whose_answers_come_soon_says_nothing() -> None:
    with fake_kafka({}) as server:
        options = ["--bootstrap-server", server.address, "--timeout", "0.2"]
        done = CliRunner().invoke(main, ["metadata-quorum", *options, "describe", "--status"])
    assert "asking the cluster" not in done.stderr


def test_a_work_with_a_name_hides_the_wait_for_an_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress, "REDRAW_S", 0.001)
    background = progress.Background("asking the cluster")
    with progress.waiting_for("adding controller 3"), background.waiting():
        text = ""
        while "adding controller 3" not in text:
            text += capsys.readouterr().err
    background.close()
    assert "asking the cluster" not in text + capsys.readouterr().err
