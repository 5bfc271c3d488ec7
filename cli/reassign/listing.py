"""`quorate reassign-partitions --list`."""

from __future__ import annotations

import json

import click

from quorate.cli.client.admin import Admin
from quorate.cli.reassign import reassignments
from quorate.cli.reassign.partition_files import text_of


def print_all(admin: Admin, output: str) -> None:
    """Print all reassignments that are in progress, as text or, if `output` is "json", as JSON."""
    ongoing = reassignments.ongoing_reassignments(admin)
    if output == "json":
        found = [
            {
                "topic": topic,
                "partition": partition,
                "replicas": list(each.replicas),
                "adding": list(each.adding),
                "removing": list(each.removing),
            }
            for (topic, partition), each in ongoing.items()
        ]
        click.echo(json.dumps(found, indent=2))
        return
    if not ongoing:
        click.echo("No partition reassignments found.")
        return
    click.echo("Current partition reassignments:")
    for key, each in ongoing.items():
        parts = (
            ("replicas", each.replicas),
            ("adding", each.adding),
            ("removing", each.removing),
        )
        shown = [f"{name}: {','.join(map(str, ids))}." for name, ids in parts if ids]
        click.echo(f"{text_of(key)}: {' '.join(shown)}")
