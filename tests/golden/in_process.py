"""Runs our command line in this process where a command needs no process of its own."""

from __future__ import annotations

from click.testing import CliRunner

from quorate.cli.main import main
from tests.golden.nodes import QUORATE
from tests.kafka.tools import Ended

OWN_PROCESS = ("console-producer", "console-consumer")
"""They read and write the files of a process."""


def quorate(tool: str, *arguments: str, stdin: str = "") -> Ended:
    if tool in OWN_PROCESS:
        return QUORATE.run(tool, *arguments, stdin=stdin)
    result = CliRunner().invoke(main, [tool, *arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout.splitlines(), result.stderr)
