"""`quorate get-offsets`, with the options and output of kafka-get-offsets.

A partition with an error gets a line on standard error, and the command still succeeds. A partition
that has no offset for the timestamp is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.by_leader import Answer, TopicPartition, ask_leaders
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.leader_election import java_text
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.reassign.partition_files import text_of
from quorate.cli.terminal.safe_text import echo
from quorate.cli.topics.topic_view import matching
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.protocol.schemas import list_offsets as schemas

CONSUMER = -1
"""The replica id of a client that is no replica. Its latest offset is the high watermark."""
UNKNOWN_OFFSET = -1
"""The value in a response if the partition has no offset for the timestamp."""
TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}
"""The special timestamps of ListOffsets, by their names in --time."""
PATTERN = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
"""A rule of --topic-partitions. Its groups are the topic, one partition, and the two bounds of a
range: the first partition, and the end, which is not selected."""
Wanted = Callable[[TopicPartition], bool]
"""A filter, which returns True if a partition is selected."""


@click.command(cls=StrictCommand)
@cluster_options()
@click.option("--topic", help="A topic, or a regular expression for topics.")
@click.option("--partitions", metavar="ID,...", help="Print only these partitions.")
@click.option(
    "--topic-partitions",
    metavar="TOPIC:ID,...",
    help="Topics and partitions: topic, topic:3, topic:0-3 (without 3), topic:5-, topic:-3, or :3.",
)
@click.option(
    "--time",
    default="latest",
    help="The offset at a timestamp in ms, or " + ", ".join(TIMES) + ". [default: latest]",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Do not print internal topics.")
@format_option
def get_offsets(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    topic: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    time: str,
    exclude_internal_topics: bool,
    output: str,
) -> None:
    """Print an offset of each partition: its first, its last, or the one at a timestamp.

    \b
    quorate get-offsets -b HOST:PORT --topic orders --time earliest
    quorate get-offsets -b HOST:PORT --topic-partitions orders:0-3 --time 1767225600000"""
    if topic_partitions and (topic or partitions):
        raise Refused("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = parse_time(time)
    wanted = by_rules(topic_partitions) if topic_partitions else by_names(topic, partitions)
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        keys = [
            (each.name, partition.partition_index)
            for each in admin.metadata(None).topics
            if each.name is not None
            and not (exclude_internal_topics and each.name in INTERNAL_TOPICS)
            for partition in each.partitions
        ]
        keys = sorted(filter(wanted, keys), key=text_of)
        if not keys:
            raise Refused("Could not match any topic-partitions with the specified filters")
        found = offsets_at(admin, keys, timestamp)
    for key, (error, _) in found.items():
        if error:
            echo(
                f"Skip getting offsets for topic-partition {text_of(key)} due to error: "
                f"{java_text(error, None)}",
                err=True,
            )
    known = {key: at for key, (error, at) in found.items() if not error and at != UNKNOWN_OFFSET}
    if output == "json":
        rows = [{"topic": t, "partition": p, "offset": at} for (t, p), at in known.items()]
        echo(json.dumps(rows, indent=2))
        return
    for (name, partition), offset in known.items():
        echo(f"{name}:{partition}:{offset}")


def offsets_at(
    admin: Admin, keys: list[TopicPartition], timestamp: int
) -> dict[TopicPartition, Answer]:
    """Return the error code and the offset of each partition, in the order of `keys`.

    `timestamp` is in ms since 1970, or a value of TIMES. For a time in ms, the offset is that of
    the first record with this timestamp or a later one. It is UNKNOWN_OFFSET if there is none.

    Transient errors, such as a missing leader, are retried until the timeout of `admin`. Other
    errors are results. Raise Refused if a leader does not serve ListOffsets, and NotReachable if no
    node returns the metadata."""

    def ask(leader: int, topics: dict[str, list[int]]) -> dict[TopicPartition, Answer]:
        request = schemas.ListOffsetsRequest(
            replica_id=CONSUMER,
            topics=tuple(
                schemas.ListOffsetsTopic(
                    name=topic,
                    partitions=tuple(
                        schemas.ListOffsetsPartition(partition_index=each, timestamp=timestamp)
                        for each in partitions
                    ),
                )
                for topic, partitions in topics.items()
            ),
        )
        answer = admin.ask_node(leader, request, schemas.ListOffsetsResponse)
        return {
            (topic.name, each.partition_index): (each.error_code, each.offset)
            for topic in answer.topics
            for each in topic.partitions
        }

    return ask_leaders(admin, keys, ask)


def parse_time(text: str) -> int:
    """Return the timestamp of --time: ms since 1970, or a value of TIMES.

    Raise Refused if the text is neither a number nor a name in TIMES."""
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        names = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
        raise Refused(
            f"Malformed time argument {text}. Please use {names}, or a specified long format "
            "timestamp"
        ) from None


def by_names(topic: str | None, partitions: str | None) -> Wanted:
    """Return the filter of --topic and --partitions. A missing option selects everything.

    `topic` is a regular expression for the whole name, or several separated by commas (`matching`).
    If it is invalid, the filter raises Refused. Raise Refused for a partition that is no number."""
    try:
        numbers = {int(each) for each in partitions.split(",")} if partitions else set()
    except ValueError:
        raise Refused(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{partitions}"
        ) from None

    def wanted(key: TopicPartition) -> bool:
        named = bool(matching([key[0]], topic, exclude_internal=False))
        return named and (not numbers or key[1] in numbers)

    return wanted


def by_rules(text: str) -> Wanted:
    """Return the filter of --topic-partitions: a partition passes if any rule selects it.

    `text` holds rules separated by commas. Errors are those of `rule`."""
    rules = [rule(each) for each in text.split(",")]
    return lambda key: any(each(key) for each in rules)


def rule(text: str) -> Wanted:
    """Return the filter of one rule `TOPIC:PARTITIONS`. A missing part selects everything.

    The topic is a regular expression for the whole name. If it is invalid, the filter raises
    Refused. Raise Refused if the rule does not match PATTERN."""
    found = PATTERN.fullmatch(text)
    if found is None:
        raise Refused(f"Invalid rule specification: {text}")
    topic, one, lowest, highest = found.groups()
    first = int(one or lowest or 0)
    end = int(one) + 1 if one else int(highest) if highest else None

    def wanted(key: TopicPartition) -> bool:
        named = bool(matching([key[0]], topic or None, exclude_internal=False))
        return named and key[1] >= first and (end is None or key[1] < end)

    return wanted
