"""No value of any option and no argument shows a traceback: each is refused with a sentence."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from aiohttp import web
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.quorum.log.batches.batch import build_value_batch

VALUES = (
    "\u00b2", "abc", "-1", "", "a:b:c", "1e400", "=", "[", ":", ",", "99999999999999999999",
    "9" * 5_000, "a{99999999999}", "a\udcff",
)  # fmt: skip
LONG_RUNNING = {"up", "demo", "history", "chaos"}
"""Commands that start nodes or Spark. tests/clients and tests/unit/cli cover their options."""


class Reached(Exception):
    """The command has accepted its options, and begins to do something."""


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    for name in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), name)
        assert found is not None
        yield from commands(found, (*path, name))


def command_at(path: tuple[str, ...]) -> click.Command:
    found: click.Command = main
    for name in path:
        assert isinstance(found, click.Group)
        next_command = found.get_command(click.Context(found), name)
        assert next_command is not None
        found = next_command
    return found


def arguments(path: tuple[str, ...], target: click.Parameter, value: str) -> list[str]:
    """Return arguments with `value` for one parameter and plausible values for all required."""
    given = list(path)
    for each in command_at(path).params:
        if isinstance(each, click.Option) and not each.is_flag:
            if each is target:
                given += [each.opts[0], *[value] * max(1, each.nargs)]
            elif each.name == "bootstrap_server":
                given += [each.opts[0], "127.0.0.1:1"]
            elif each.required:
                given += [each.opts[0], "1"]
    for each in command_at(path).params:
        if isinstance(each, click.Argument) and (each is target or each.required):
            given.append(value if each is target else ".")
    return given


PATHS = [each for each in commands(main, ()) if each[0] not in LONG_RUNNING]


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_bad_values_are_refused(
    path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(*_: object, **__: object) -> None:
        raise Reached

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "create_connection", reached)
    monkeypatch.setattr(socket.socket, "connect", reached)
    monkeypatch.setattr(subprocess.Popen, "__init__", reached)
    monkeypatch.setattr(web.AppRunner, "__init__", reached)
    for target in command_at(path).params:
        if isinstance(target, click.Option) and target.is_flag:
            continue
        for value in VALUES:
            given = arguments(path, target, value)
            result = CliRunner().invoke(main, given, input="")
            assert isinstance(result.exception, SystemExit | Reached | None), (
                given,
                result.exception,
            )


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_file_whose_name_has_no_offset_cannot_be_dumped(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"copy{suffix}"
    path.write_bytes(
        bytes(build_value_batch([b"v"], base_offset=0, leader_epoch=0, timestamp_ms=0))
    )
    result = CliRunner().invoke(main, ["dump-log", "--files", str(path)])
    assert result.exit_code == 1
    assert "must begin with the segment's base offset" in result.output


@pytest.mark.parametrize("value", ["abc", "0", "-5", "1e3", str(10**12)])
def test_a_timeout_in_a_client_config_must_be_a_number_of_ms(tmp_path: Path, value: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"default.api.timeout.ms={value}\n")
    result = CliRunner().invoke(
        main, ["topics", "--list", "-b", "127.0.0.1:1", "--command-config", str(path)]
    )
    assert result.exit_code == 1
    assert f"default.api.timeout.ms: value {value!r} must be a number from 1" in result.output


def test_a_broker_is_named_by_a_number() -> None:
    given = ["configs", "-b", "127.0.0.1:1", "--describe", "--broker", "abc"]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 2
    assert "must be a valid integer broker id, found: abc" in result.output


def test_the_walk_meets_every_command() -> None:
    names = set(main.list_commands(click.Context(main, **main.context_settings)))
    assert {path[0] for path in PATHS} == names - LONG_RUNNING
    assert names >= LONG_RUNNING
