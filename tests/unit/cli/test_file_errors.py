"""A file that cannot be read is named once, with the reason and without the number of the error."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.client.errors import said_once
from quorate.cli.main import main

AT = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "0.1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("dump-log", "--files", "@none.log"),
        ("state-changes", "merge", "--topic", "t", "--logs", "@none.log"),
        ("reassign-partitions", *AT, "--verify", "--reassignment-json-file", "@none.json"),
        ("chaos", "run", "@none.toml"),
    ],
)
def test_a_missing_file_is_named_once(arguments: tuple[str, ...], tmp_path: Path) -> None:
    given = [each.replace("@", f"{tmp_path}/") for each in arguments]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 1
    assert done.output.count("none") == 1
    assert done.output.endswith(": No such file or directory\n")
    assert "Errno" not in done.output


def test_a_file_of_another_encoding(tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_bytes(b"\xff\xfe")
    try:
        file.read_text("utf-8")
    except UnicodeDecodeError as error:
        assert said_once(error, file) == f"{file}: it is not UTF-8 text"


def test_a_dump_of_no_file_fails(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["dump-log", "--files", f"{tmp_path / 'a.txt'}"])
    assert done.exit_code == 1
    assert "no file was printed: names end with .log" in done.output
