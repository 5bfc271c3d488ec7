"""The exit codes of the commands.

- 0: the command succeeded.
- 1: the cluster, a directory or a rule refused it.
- 2: the usage is wrong (click's own code).
- 3: no node answered in time.
- 4: the cluster works, but some of its nodes do not run (`up`)."""

from __future__ import annotations

import click

PARTLY = 4


class Refused(click.ClickException):
    """The cluster, a directory or a rule refused the command."""

    exit_code = 1


class NotReachable(click.ClickException):
    """No node answered in time."""

    exit_code = 3
