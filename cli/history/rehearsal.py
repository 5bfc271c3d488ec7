"""`quorate history whatif --scenario`: a scenario that is played many times on a real cluster."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.analytics.log.text import clock, span

if TYPE_CHECKING:
    from quorate.quorum.analytics.rehearsal.outcome import Outcome, Rehearsal
    from quorate.quorum.analytics.replay.moment import Moment

DEFAULT_SEEDS = 20
MAX_SEEDS = 10_000
"""The most runs of one command."""
TIMES = {
    "leaderless_ms": "without a leader, all partitions",
    "longest_leaderless_ms": "without a leader, the longest",
    "below_min_ms": "below min.insync.replicas",
    "waiting_ms": "acks=all waits for a dead replica",
    "recovery_ms": "until all can be written again",
}
COUNTS = {
    "leaderless_partitions": "partitions without a leader",
    "below_min_partitions": "partitions below min.insync.replicas",
    "unclean_elections": "unclean elections",
    "leader_moves": "leader moves",
}
"""The lines of the table, in this order, after those of TIMES."""


def time_range(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Return the two times of LOW-HIGH, or of one number. Raise BadParameter for anything else."""
    if value is None:
        return None
    low, _, high = value.partition("-")
    high = high or low
    if not low.isdecimal() or not high.isdecimal() or int(low) > int(high):
        raise click.BadParameter(f"{value!r} must be a number of ms, or a range such as 500-2000")
    return int(low), int(high)


def _ms(name: str, text: str, default: int) -> Callable[[Any], Any]:
    return click.option(
        name, type=click.IntRange(min=1), help=f"{text} [default: {default}]", metavar="MS"
    )


def _range(name: str, text: str, default: str) -> Callable[[Any], Any]:
    return click.option(
        name, callback=time_range, help=f"{text} [default: {default}]", metavar="LOW-HIGH"
    )


OPTIONS = (
    click.option(
        "--scenario",
        metavar="NAME",
        help="Play this scenario: kill, kill-and-return, rack-loss, rolling-restart, "
        "hasty-restart or controller-failover. It concerns the brokers of --kill and --rack, or "
        "those that each seed chooses.",
    ),
    click.option(
        "--seeds",
        type=click.IntRange(min=1, max=MAX_SEEDS),
        help=f"Play the scenario this many times. [default: {DEFAULT_SEEDS}]",
    ),
    click.option(
        "--seed", type=click.IntRange(min=0), help="Play only this seed, and print what happens."
    ),
    _ms("--session-timeout-ms", "broker.session.timeout.ms.", 9_000),
    _ms("--heartbeat-interval-ms", "broker.heartbeat.interval.ms.", 2_000),
    _ms("--replica-lag-ms", "replica.lag.time.max.ms.", 30_000),
    click.option(
        "--min-isr",
        type=click.IntRange(min=1),
        help="min.insync.replicas of topics for which the log has none. [default: 1]",
    ),
    _range("--restart-ms", "The time from the end of a broker to its registration.", "5000-30000"),
    _range("--catch-up-ms", "The time in which one replica catches up.", "1000-20000"),
    _range("--failover-ms", "The time without an active controller.", "200-3000"),
)
ASSUMED = (
    "session_timeout_ms", "heartbeat_interval_ms", "replica_lag_ms", "min_isr", "restart_ms",
    "catch_up_ms", "failover_ms",
)  # fmt: skip
"""The options that replace an assumption of the same name."""
ONLY_HERE = ("seeds", "seed", *ASSUMED)
"""The options that have no effect without --scenario."""


def rehearsal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a rehearsal to a command."""
    return reduce(lambda made, option: option(made), reversed(OPTIONS), command)


def refuse_without_scenario(chosen: dict[str, Any]) -> None:
    """Raise UsageError if an option of a rehearsal was given without --scenario."""
    for name in ONLY_HERE:
        if chosen[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} needs --scenario")


def play(
    at: Moment,
    directory: Path,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    chosen: dict[str, Any],
    output: str,
) -> None:
    """Play the scenario of the options `chosen` and print the result. Raise UsageError if it cannot
    be played.

    `chosen` also has the option `permissive`, with which `at` was read."""
    from quorate.quorum.analytics.log.errors import BadOption
    from quorate.quorum.analytics.rehearsal.assumptions import Assumptions
    from quorate.quorum.analytics.rehearsal.rehearse import rehearse

    if chosen["seed"] is not None and chosen["seeds"] is not None:
        raise click.UsageError("only one of --seed and --seeds can be given")
    assumed = {name: chosen[name] for name in ASSUMED if chosen[name] is not None}
    single = chosen["seed"] is not None
    seeds = [chosen["seed"]] if single else range(1, (chosen["seeds"] or DEFAULT_SEEDS) + 1)
    try:
        assumptions = Assumptions(**assumed)
        with waiting_for(f"playing {chosen['scenario']} with {len(seeds)} seeds"):
            found = rehearse(
                at,
                chosen["scenario"],
                seeds,
                brokers=brokers,
                racks=racks,
                assumptions=assumptions,
                with_events=single,
            )
    except BadOption as error:
        raise click.UsageError(str(error)) from None
    replay = replay_command(directory, found, brokers, racks, assumed)
    if chosen["permissive"]:
        replay += " --permissive"
    if output == "json":
        echo(json.dumps({**asdict(found), "replay": replay}))
        return
    for line in lines(found, replay):
        echo(line)


def replay_command(
    directory: Path,
    found: Rehearsal,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    assumed: dict[str, Any],
) -> str:
    """Return the command that plays the worst run alone."""
    words = ["quorate", "history", "whatif", str(directory), "--at", str(found.offset)]
    words += ["--scenario", found.scenario, "--seed", str(found.worst.seed)]
    words += [word for each in brokers for word in ("--kill", str(each))]
    words += [word for each in racks for word in ("--rack", each)]
    for name, value in assumed.items():
        text = f"{value[0]}-{value[1]}" if isinstance(value, tuple) else str(value)
        words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(words)


def lines(found: Rehearsal, replay: str) -> Iterator[str]:
    """Yield the lines of a rehearsal: its events and outcome if it is one run, or else the spread
    of all outcomes."""
    runs, worst = len(found.outcomes), found.worst
    when = f"at offset {found.offset}, {clock(found.timestamp_ms)} UTC"
    yield f"{when}: {found.partitions} partitions"
    if runs == 1:
        yield f"{found.scenario}, seed {worst.seed}, {_brokers(worst)}"
        yield from (f"  {ms / 1000:9.3f} s  {text}" for ms, text in worst.events)
        yield from (f"{text}: {_time(getattr(worst, name))}" for name, text in TIMES.items())
        yield from (f"{text}: {getattr(worst, name)}" for name, text in COUNTS.items())
        return
    yield f"{found.scenario}, {runs} seeds"
    yield f"{'':38}{'min':>12}{'median':>12}{'p95':>12}{'max':>12}"
    for name, text in (TIMES | COUNTS).items():
        spread = found.spreads[name]
        values = (spread.smallest, spread.median, spread.p95, spread.largest)
        shown = [_time(each) if name in TIMES else str(each) for each in values]
        yield f"{text:38}" + "".join(f"{each:>12}" for each in shown)
    if found.not_recovered:
        yield f"in {found.not_recovered} of {runs} runs, some partition could not be written again"
    yield f"worst: seed {worst.seed}, {_brokers(worst)}"
    yield f"play it again: {replay}"


def _time(value_ms: int | None) -> str:
    return "never" if value_ms is None else span(value_ms)


def _brokers(outcome: Outcome) -> str:
    ids = ", ".join(map(str, outcome.brokers))
    return f"broker{'s' if len(outcome.brokers) > 1 else ''} {ids}"
