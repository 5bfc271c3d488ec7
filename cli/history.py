"""`quorate history`: what happened, from the metadata log, in Spark."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from quorate.cli.client.options import format_option
from quorate.cli.errors import Refused

METADATA_DIRECTORY = "__cluster_metadata-0"


@click.group()
def history() -> None:
    """What happened: leaderships, ISR changes, sessions, unavailability, and why."""


@history.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="report.html",
    show_default=True,
    help="The page.",
)
@click.option(
    "--parquet", type=click.Path(file_okay=False, path_type=Path), help="Tables go there, too."
)
@format_option
def report(directory: Path, out: Path, parquet: Path | None, output: str) -> None:
    """Write one self-contained page of what the metadata log in DIRECTORY says.

    DIRECTORY is a metadata log, a node's data directory (Quorate's or Apache Kafka's), or the
    directory of a cluster of `quorate up`. The logs of a running node may be read.
    """
    from quorate.quorum.analytics.report import report as write_report

    source = longest_log(directory)
    try:
        summary = write_report(source, out, parquet)
    except (OSError, ValueError) as error:
        raise Refused(str(error)) from None
    if output == "json":
        click.echo(json.dumps(asdict(summary)))
        return
    for line in summary.lines():
        click.echo(line)


def longest_log(directory: Path) -> Path:
    """Of a local cluster, the node directory that holds the most; else `directory` itself."""
    if not (directory / "cluster.json").exists():
        return directory
    entry = json.loads((directory / "cluster.json").read_text())
    nodes = [Path(node["log_dir"]) for node in (*entry["controllers"], *entry["brokers"])]
    held = [node for node in nodes if (node / METADATA_DIRECTORY).is_dir()]
    if not held:
        raise Refused(f"{directory}: no node of this cluster has a metadata log yet")
    return max(held, key=log_bytes)


def log_bytes(node: Path) -> int:
    return sum(each.stat().st_size for each in (node / METADATA_DIRECTORY).glob("*.log"))
