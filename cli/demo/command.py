"""The command `quorate demo`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from quorate.cli.client.errors import Refused


@click.command()
@click.option("--dir", "root", default=".demo", show_default=True, type=click.Path(path_type=Path))
@click.option("--seconds", default=40.0, show_default=True, help="How long the client writes.")
@click.option("--lines", type=int, help="Of the standard library; default: all.")
@click.option("--no-spark", is_flag=True, help="Leave the history out.")
def demo(root: Path, seconds: float, lines: int | None, no_spark: bool) -> None:
    """Kill a leader and the active controller under load; nothing acknowledged may be lost.

    Starts three controllers and three brokers. A librdkafka client writes every line of Python's
    standard library with acks=all. Meanwhile a leader and the active controller get kill -9 and are
    started again. Then everything is read back and compared, and Spark reports the history. The
    exit status is the verdict."""
    if importlib.util.find_spec("confluent_kafka") is None:
        raise Refused("the demo's client is confluent-kafka: pip install confluent-kafka")
    from quorate.cli.demo.run import run

    raise SystemExit(run(root, seconds=seconds, max_lines=lines, spark=not no_spark))
