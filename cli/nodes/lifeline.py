"""The lifeline of a cluster: a file descriptor whose end stops the cluster (`up --until-eof`).
`console --until-eof` uses it, too.

The tool that starts the process holds the other end of a pipe. The kernel closes that end when the
tool dies, also after SIGKILL."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable

import click


def lifeline_of_stdin() -> int:
    """Return a new file descriptor of standard input for `watch_lifeline`.

    Raise UsageError if it is a file or a device that cannot be waited for."""
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or sys.stdin.isatty()):
        raise click.UsageError("--until-eof: standard input must be a pipe or a terminal")
    return os.dup(sys.stdin.fileno())


def watch_lifeline(
    lifeline: int, loop: asyncio.AbstractEventLoop, stop: asyncio.Event, say: Callable[[str], None]
) -> None:
    """Read from the lifeline. If it has ended, say so and set `stop`."""
    try:
        if os.read(lifeline, 4096):
            return
    except OSError as error:  # for example a terminal that is gone
        say(f"standard input cannot be read: {error}")
    loop.remove_reader(lifeline)
    say("standard input has ended: stopping")
    stop.set()
