"""`quorate console-consumer`: print the records of a topic, one per line.

With --group the command joins the group as a member. It reads the partitions assigned to it from
the committed offsets on, and commits the offsets of the records that it has printed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from quorate.cli.client.options import cluster_options, connected
from quorate.cli.console_properties import properties_of
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo, echo_bytes

if TYPE_CHECKING:
    from quorate.cli.client.consumer import Consumed, Consumer
    from quorate.cli.client.membership import Membership

AUTO_COMMIT_INTERVAL_S = 5.0
SHOWN = ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")
PROPERTIES = (
    *(f"print.{name}" for name in SHOWN),
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
)


@click.command("console-consumer", cls=StrictCommand)
@cluster_options()
@click.option("--topic", required=True, help="The topic to read.")
@click.option(
    "--from-beginning", is_flag=True, help="Start at the earliest record. [default: at the end]"
)
@click.option(
    "--group",
    help="Join this consumer group: read the partitions assigned to this member, from the "
    "committed offsets on, and commit.",
)
@click.option("--partition", type=int, help="Read only this partition.")
@click.option(
    "--offset",
    default=None,
    help="The first offset to read, with --partition: earliest, latest or a number.",
)
@click.option("--max-messages", type=int, default=-1, help="Stop after this number of records.")
@click.option(
    "--timeout-ms", type=int, default=-1, help="Stop when no record has arrived for this time."
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="K=V",
    help="A property of the output, such as print.key=true.",
)
@click.option(
    "--formatter-property",
    "formatter_properties",
    multiple=True,
    metavar="K=V",
    help="Same as --property.",
)
def console_consumer(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    topic: str,
    from_beginning: bool,
    group: str | None,
    partition: int | None,
    offset: str | None,
    max_messages: int,
    timeout_ms: int,
    properties: tuple[str, ...],
    formatter_properties: tuple[str, ...],
) -> None:
    """Print the records of a topic, one per line, until Ctrl-C.

    \b
    quorate console-consumer -b HOST:PORT --topic orders --from-beginning --max-messages 10
    quorate console-consumer -b HOST:PORT --topic orders --group audit --property print.key=true"""
    from quorate.cli.client.consumer import Consumer
    from quorate.cli.client.membership import Membership

    if offset is not None and partition is None:
        raise click.UsageError("The partition is required when --offset is given.")
    if group is not None and partition is not None:
        raise click.UsageError(
            "--partition cannot be given with --group: the group assigns the partitions."
        )
    start = start_of(from_beginning, offset)
    line = Formatter(properties_of((*properties, *formatter_properties), PROPERTIES))
    count = 0
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        consumer = Consumer(admin, topic, () if partition is None else (partition,))
        consumer.seek(start)
        if offset is None:
            consumer.when_out_of_range = partial(reset, consumer, topic, start)
        admin.show_no_progress()
        progress = None
        if group is not None:
            progress = Progress(Membership(admin, group, topic), consumer, start)
        between = progress.between_polls if progress else lambda: None
        try:
            for each in consumed_records(consumer, max_messages, timeout_ms, between):
                echo_bytes(line(each))
                count += 1
                if progress is not None:
                    progress.printed(each)
        except KeyboardInterrupt:
            pass
        finally:
            sys.stdout.flush()
            if progress is not None:
                progress.leave()
            echo(f"Processed a total of {count} messages", err=True)


def reset(consumer: Consumer, topic: str, start: int, partition: int) -> int:
    """Return the earliest or the latest offset (`start`) of a partition whose next records are
    gone, as Kafka's tool does, and say so on standard error."""
    position, found = consumer.positions[partition], consumer.offset_of(partition, start)
    echo(
        f"{topic}-{partition}: offset {position} is outside of the log. Reading on at {found}.",
        err=True,
    )
    return found


class Progress:
    """The group membership of the command, and the records printed since the last commit.

    It commits before it joins again, on leaving, and after a record is printed if the last commit
    is older than AUTO_COMMIT_INTERVAL_S. Standard output is flushed before each commit, so that
    every committed record was printed."""

    def __init__(self, membership: Membership, consumer: Consumer, start: int) -> None:
        """Join the group. Partitions without a committed offset are read from `start` on."""
        self._membership = membership
        self._consumer = consumer
        self._start = start
        self._next: dict[int, int] = {}
        self._committed_at = time.monotonic()
        self._join()

    def between_polls(self) -> None:
        """Send a heartbeat if one is due. If the group rebalances, commit and join again."""
        if not self._membership.alive():
            self.commit()
            self._join()

    def printed(self, consumed: Consumed) -> None:
        """Record that a record was printed, and commit if a commit is due."""
        self._next[consumed.partition] = consumed.record.offset + 1
        if time.monotonic() - self._committed_at > AUTO_COMMIT_INTERVAL_S:
            self.commit()

    def commit(self) -> None:
        """Flush standard output and commit the offsets of all records printed."""
        if self._next:
            sys.stdout.flush()
            self._membership.commit(self._next)
            self._next = {}
        self._committed_at = time.monotonic()

    def leave(self) -> None:
        """Commit and leave the group."""
        self.commit()
        self._membership.leave()

    def _join(self) -> None:
        partitions = self._membership.join()
        self._consumer.assign(partitions, self._start)
        committed = self._membership.committed()
        self._consumer.seek_to({each: committed[each] for each in partitions if each in committed})


def start_of(from_beginning: bool, offset: str | None) -> int:
    """Return the start offset of the options: EARLIEST, LATEST or a number.

    Raise UsageError if --offset is something else."""
    from quorate.cli.client.consumer import EARLIEST, LATEST

    if offset is None:
        return EARLIEST if from_beginning else LATEST
    if offset in ("earliest", "latest"):
        return EARLIEST if offset == "earliest" else LATEST
    if not offset.isdecimal():
        raise click.UsageError(
            f"--offset: value {offset!r} must be 'earliest', 'latest' or a non-negative number"
        )
    return int(offset)


def consumed_records(
    consumer: Consumer, max_messages: int, timeout_ms: int, between_polls: Callable[[], None]
) -> Iterator[Consumed]:
    """Yield records until `max_messages` are yielded or none has arrived for `timeout_ms`.

    Negative values mean no limit. The time is checked after each poll. `between_polls` is called
    before each poll, and standard output is flushed after it."""
    count, last = 0, time.monotonic()
    while count != max_messages:
        between_polls()
        some = False
        for each in consumer.poll():
            yield each
            some = True
            count += 1
            if count == max_messages:
                return
        sys.stdout.flush()
        if some:
            last = time.monotonic()
        elif 0 <= timeout_ms < (time.monotonic() - last) * 1000:
            return


class Formatter:
    """Kafka's DefaultMessageFormatter: one line of bytes per record.

    The property print.X shows the field X, for X in SHOWN. Other properties set the separators."""

    def __init__(self, properties: dict[str, str]) -> None:
        self._shown = [
            name
            for name in SHOWN
            if properties.get(f"print.{name}", str(name == "value")).lower() == "true"
        ]
        self._separator = properties.get("key.separator", "\t").encode()
        self._end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()

    def __call__(self, consumed: Consumed) -> bytes:
        return self._separator.join(self._field(name, consumed) for name in self._shown) + self._end

    def _field(self, name: str, consumed: Consumed) -> bytes:
        record = consumed.record
        match name:
            case "timestamp":
                kind = "LogAppendTime" if consumed.append_time else "CreateTime"
                return f"{kind}:{record.timestamp_ms}".encode()
            case "partition":
                return f"Partition:{consumed.partition}".encode()
            case "offset":
                return f"Offset:{record.offset}".encode()
            case "epoch":
                return f"Epoch:{consumed.epoch}".encode()
            case "headers":
                pairs = (f"{key}:".encode() + self._text(value) for key, value in record.headers)
                return self._headers_separator.join(pairs) or b"NO_HEADERS"
            case "key":
                return self._text(record.key)
        return self._text(record.value)

    def _text(self, value: object) -> bytes:
        return self._null if value is None else bytes(value)  # type: ignore[call-overload]
