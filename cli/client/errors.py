"""The exit codes of the commands.

- 0: the command succeeded.
- 1: the cluster, a directory or a rule refused it.
- 2: the usage is wrong (click's own code).
- 3: no node answered in time.
- 4: the command succeeded in part: some nodes do not run (`up`) or were not healed (`chaos heal`),
  or some scenarios were not run (`chaos run all`), or a file of the result was not written."""

from __future__ import annotations

import sys
from typing import IO, Any

import click

from quorate.cli.terminal.safe_text import safe_text

PARTLY = 4


class Failure(click.ClickException):
    """The base class of these errors. A message may have texts of peers."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message to `file`, by default standard error, as safe text."""
        stream: IO[Any] = sys.stderr if file is None else file
        click.echo(safe_text(f"Error: {self.format_message()}", stream), file=stream)


class Refused(Failure):
    """The cluster, a directory or a rule refused the command."""

    exit_code = 1


class NotReachable(Failure):
    """No node answered in time."""

    exit_code = 3


def said_once(error: OSError | UnicodeDecodeError, path: object = "") -> str:
    """Return the path of a file and the reason why it cannot be read or written. `path` is used if
    the error names none. The text of an OSError itself has a number, and the path at its end."""
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: it is not UTF-8 text"
    return f"{error.filename or path}: {error.strerror or error}"
