"""`quorate history explain`: the story of a partition, a topic, a broker or the quorum."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.client.options import format_option
from quorate.cli.history.options import damages, permissive_option
from quorate.cli.history.source import directory_argument, history_in
from quorate.cli.history.text import story_json, story_lines
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.progress import waiting_for
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.analytics.log.text import clock

if TYPE_CHECKING:
    from quorate.quorum.analytics.replay.chronicle import Chronicle


@click.command(cls=StrictCommand)
@directory_argument
@click.option("--topic", help="Explain this topic and its partitions.")
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition of the topic.")
@click.option("--broker", type=click.IntRange(min=0), help="Explain this broker.")
@click.option("--quorum", is_flag=True, help="Explain the quorum of controllers.")
@permissive_option
@format_option
def explain(
    directory: Path,
    topic: str | None,
    partition: int | None,
    broker: int | None,
    quorum: bool,
    permissive: bool,
    output: str,
) -> None:
    """Print the history of a topic, a partition, a broker or the quorum: its changes with their
    times and causes."""
    from quorate.quorum.analytics.replay.broker_story import explain_broker
    from quorate.quorum.analytics.replay.quorum_story import explain_quorum
    from quorate.quorum.analytics.replay.story import explain as explain_partitions
    from quorate.quorum.analytics.replay.topic_story import explain_topic

    if sum((topic is not None, broker is not None, quorum)) != 1:
        raise click.UsageError("give one of --topic, --broker and --quorum")
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    chronicles, stories = [], None
    with (
        waiting_for("reading the metadata log"),
        history_in(directory) as source,
        damages(permissive) as found,
    ):
        if broker is not None:
            chronicles = [explain_broker(source, broker, found=found)]
        elif quorum:
            chronicles = [explain_quorum(source, found=found)]
        elif topic is not None:
            chronicles = explain_topic(source, topic, found=found) if partition is None else []
            stories = explain_partitions(source, topic, partition, found=found)
    if stories is None:
        _print(chronicles, {}, output)
    else:
        _print(chronicles, story_json(stories), output, story_lines(stories))


def _print(
    chronicles: list[Chronicle], more: dict[str, Any], output: str, lines: Iterable[str] = ()
) -> None:
    if output == "json":
        echo(json.dumps({**more, "stories": [asdict(each) for each in chronicles]}))
        return
    for each in chronicles:
        for line in chronicle_lines(each):
            echo(line)
        if more:
            echo("")
    for line in lines:
        echo(line)


def chronicle_lines(chronicle: Chronicle) -> Iterator[str]:
    """Yield the lines of a story of a broker, a topic or the quorum."""
    yield chronicle.subject
    for each in chronicle.happenings:
        yield f"{clock(each.timestamp_ms)}  offset {each.offset}  {each.what}"
        cause = f" [{each.cause}]" if each.cause else ""
        yield f"    {'Inferred: ' if each.inferred else ''}{each.why}{cause}"
    when = f"{clock(chronicle.end_ms)}, offset {chronicle.end_offset}"
    yield f"When the log ends, {when}: {chronicle.ending}."
