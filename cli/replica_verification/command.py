"""`quorate replica-verification`, with the options and output of kafka-replica-verification.

Beyond Kafka, `--once` ends with a verdict when everything is compared."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from quorate.cli.client.consumer import EARLIEST, LATEST
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.replica_verification.comparison import Comparison, Difference
from quorate.cli.replica_verification.fetches import FetchSettings, ReplicaFetches
from quorate.cli.terminal.safe_text import echo

IDLE_S = 0.1


@click.command("replica-verification", cls=StrictCommand)
@cluster_options()
@click.option("--broker-list", metavar="HOST:PORT,...", help="Same as --bootstrap-server.")
@click.option(
    "--topics-include",
    default=".*",
    show_default=True,
    help="Compare topics that match this regular expression.",
)
@click.option(
    "--fetch-size",
    type=int,
    default=1048576,
    show_default=True,
    help="Maximum bytes of one partition in one fetch.",
)
@click.option(
    "--max-wait-ms",
    type=int,
    default=1000,
    show_default=True,
    help="Maximum time that a broker waits before it answers a fetch.",
)
@click.option(
    "--report-interval-ms",
    type=int,
    default=30000,
    show_default=True,
    help="Interval between reports of the lag.",
)
@click.option(
    "--time",
    "timestamp",
    type=int,
    help="Start at this timestamp in ms since 1970, at the end (-1) or at the start (-2). "
    " [default: -1; -2 with --once]",
)
@click.option(
    "--once",
    is_flag=True,
    help="Compare up to the present end, then exit with 0 if all replicas are equal, else with 1.",
)
@format_option
def replica_verification(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    broker_list: str | None,
    topics_include: str,
    fetch_size: int,
    max_wait_ms: int,
    report_interval_ms: int,
    timestamp: int | None,
    once: bool,
    output: str,
) -> None:
    """Compare the replicas of partitions, batch by batch, up to their high watermarks."""
    if timestamp is None:
        timestamp = EARLIEST if once else LATEST
    with connected(
        bootstrap_server=bootstrap_server or broker_list,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        # A broker that waits as long as the client's timeout would appear to be unreachable.
        settings = FetchSettings(fetch_size, min(max_wait_ms, admin.timeout_ms // 2))
        fetches = ReplicaFetches(admin, topics_include, timestamp, settings)
        reporter = Reporter(output, report_interval_ms, once=once)
        if once:
            verify_once(fetches, reporter, admin.timeout_ms / 1000)
        else:
            admin.show_no_progress()
            verify_continuously(fetches, reporter)


def verify_continuously(fetches: ReplicaFetches, reporter: Reporter) -> None:
    """Compare until the offsets of two replicas differ, as Kafka's tool does, then exit with 1."""
    reporter.say("verification process is started")
    while True:
        moved, faults = fetches.compare()
        reporter.faults(faults)
        if any(fault.final for _, fault in faults):
            raise SystemExit(1)
        reporter.lag(fetches.comparisons)
        if not moved:
            time.sleep(IDLE_S)


def verify_once(fetches: ReplicaFetches, reporter: Reporter, patience_s: float) -> None:
    """Compare up to the present ends, print the verdict, and exit with 1 unless all are equal.

    Stop early if no partition progresses for `patience_s`."""
    deadline = time.monotonic() + patience_s
    while left := [each for each in fetches.comparisons if not each.done]:
        fetches.only(left)
        moved, faults = fetches.compare()
        reporter.faults(faults)
        reporter.lag(fetches.comparisons)
        if moved:
            deadline = time.monotonic() + patience_s
        elif time.monotonic() > deadline:
            break
        else:
            time.sleep(IDLE_S)
    reporter.verdict(fetches.comparisons)
    if not all(each.equal for each in fetches.comparisons):
        raise SystemExit(1)


class Reporter:
    """The output: lines of text, or one JSON object per event.

    With `once`, one JSON object at the end."""

    def __init__(self, output: str, report_interval_ms: int, *, once: bool) -> None:
        self._json = output == "json"
        self._once = once
        self._report_interval_s = report_interval_ms / 1000
        self._reported_s = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line with the time, in text mode."""
        if not self._json:
            now_ms = time.time_ns() // 1_000_000
            stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now_ms // 1000))
            echo(f"{stamp},{now_ms % 1000:03}: {text}")

    def event(self, **values: Any) -> None:
        """Print an event with the time, in JSON mode without `once`."""
        if self._json and not self._once:
            echo(json.dumps({"time_ms": time.time_ns() // 1_000_000, **values}))

    def faults(self, found: Sequence[tuple[Comparison, Difference]]) -> None:
        """Print faults."""
        for each, fault in found:
            self.say(f"partition {each.name}{fault}")
            self.event(topic=each.topic, partition=each.partition, fault=asdict(fault))

    def lag(self, comparisons: Sequence[Comparison]) -> None:
        """Print the largest lag and all problems if the report interval has passed."""
        if time.monotonic() - self._reported_s <= self._report_interval_s:
            return
        self._reported_s = time.monotonic()
        most = max(comparisons, key=lambda each: each.lag)
        self.say(
            f"max lag is {most.lag} for partition {most.name} at offset {most.offset} among "
            f"{len(comparisons)} partitions"
        )
        self.event(
            max_lag=most.lag,
            topic=most.topic,
            partition=most.partition,
            offset=most.offset,
            partitions=len(comparisons),
        )
        for each in comparisons:
            self._problems(each)

    def _problems(self, comparison: Comparison) -> None:
        for replica, problem in sorted(comparison.problems.items()):
            self.say(
                f"partition {comparison.name}: replica {replica} cannot be compared: {problem}"
            )

    def verdict(self, comparisons: Sequence[Comparison]) -> None:
        """Print the result of all comparisons."""
        if self._json:
            equal = all(each.equal for each in comparisons)
            partitions = [as_json(each) for each in comparisons]
            echo(json.dumps({"equal": equal, "partitions": partitions}, indent=2))
            return
        for each in comparisons:
            if not each.done:
                self.say(
                    f"partition {each.name} is compared up to offset {each.offset} of {each.end}"
                )
                self._problems(each)
        differing = sum(bool(each.faults) for each in comparisons)
        missing = sum(not each.done for each in comparisons)
        self.say(
            f"{len(comparisons)} partitions: {differing} differ, {missing} could not be compared "
            "to the end"
            if differing or missing
            else f"{len(comparisons)} partitions are equal on all of their replicas"
        )


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON values."""
    return {
        "topic": comparison.topic,
        "partition": comparison.partition,
        "replicas": list(comparison.replicas),
        "offset": comparison.offset,
        "end": comparison.end,
        "equal": comparison.equal,
        "faults": [asdict(each) for each in comparison.faults],
        "problems": {str(each): text for each, text in sorted(comparison.problems.items())},
    }
