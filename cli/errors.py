"""How a command ends: 0 done, 1 the cluster said no, 2 wrong usage (click's own), 3 not
reachable, 4 the cluster works but some of its nodes do not run (`up`)."""

from __future__ import annotations

import click

PARTLY = 4


class Refused(click.ClickException):
    """The cluster, a directory or a rule said no."""

    exit_code = 1


class NotReachable(click.ClickException):
    """Nobody answered in time."""

    exit_code = 3
