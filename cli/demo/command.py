"""The command `quorate demo`."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import click

from quorate.cli.client.errors import Refused
from quorate.cli.parsing.strict_command import StrictCommand


@click.command(cls=StrictCommand)
@click.option(
    "--dir",
    "root",
    default=".demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory of the cluster and the report.",
)
@click.option("--seconds", default=40.0, show_default=True, help="Duration of the writes.")
@click.option(
    "--lines",
    type=click.IntRange(min=1),
    help="Number of lines of the standard library to write. [default: all]",
)
@click.option("--no-spark", is_flag=True, help="Do not run Spark, and do not report the history.")
def demo(root: Path, seconds: float, lines: int | None, no_spark: bool) -> None:
    """Kill a leader and the active controller under load, and check that no record is lost.

    The demo starts three controllers and three brokers. A librdkafka client writes every line of
    Python's standard library with acks=all. Meanwhile the demo kills a leader and the active
    controller with SIGKILL, and restarts both. Then it reads everything back and compares, and
    Spark reports the history. The exit status is the verdict: 0 good, 1 bad."""
    if not 0 < seconds < math.inf:  # also NaN
        raise click.UsageError(f"--seconds must be a positive number, not {seconds}")
    if importlib.util.find_spec("confluent_kafka") is None:
        raise Refused("the demo needs confluent-kafka: pip install confluent-kafka")
    from quorate.cli.demo.run import run

    raise SystemExit(run(root, seconds=seconds, max_lines=lines, spark=not no_spark))
