"""`quorate console-consumer`: the records of a topic, one per line, without a consumer group."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from quorate.cli.client.options import cluster_options, connected

if TYPE_CHECKING:
    from quorate.cli.client.consumer import Consumed, Consumer

SHOWN = ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")


@click.command("console-consumer")
@cluster_options()
@click.option("--topic", required=True)
@click.option("--from-beginning", is_flag=True, help="From the earliest record on.")
@click.option("--partition", type=int, help="This partition only.")
@click.option("--offset", default=None, help="earliest, latest or a number; with --partition.")
@click.option("--max-messages", type=int, default=-1, help="Stop after so many.")
@click.option("--timeout-ms", type=int, default=-1, help="Stop when none came for so long.")
@click.option("--property", "properties", multiple=True, metavar="K=V", help="print.key=true, ...")
@click.option("--formatter-property", "formatter_properties", multiple=True, metavar="K=V")
def console_consumer(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    topic: str,
    from_beginning: bool,
    partition: int | None,
    offset: str | None,
    max_messages: int,
    timeout_ms: int,
    properties: tuple[str, ...],
    formatter_properties: tuple[str, ...],
) -> None:
    """Print the records of a topic."""
    from quorate.cli.client.consumer import Consumer

    if offset is not None and partition is None:
        raise click.UsageError("The partition is required when --offset is given.")
    start = start_of(from_beginning, offset)
    line = Formatter(
        dict(each.partition("=")[::2] for each in (*properties, *formatter_properties))
    )
    count = 0
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        consumer = Consumer(admin, topic, () if partition is None else (partition,))
        consumer.seek(start)
        try:
            for each in taken(consumer, max_messages, timeout_ms):
                sys.stdout.buffer.write(line(each))
                count += 1
        except KeyboardInterrupt:
            pass
        finally:
            sys.stdout.flush()
            click.echo(f"Processed a total of {count} messages", err=True)


def start_of(from_beginning: bool, offset: str | None) -> int:
    from quorate.cli.client.consumer import EARLIEST, LATEST

    if offset is None:
        return EARLIEST if from_beginning else LATEST
    if offset in ("earliest", "latest"):
        return EARLIEST if offset == "earliest" else LATEST
    if not offset.isdigit():
        raise click.UsageError(
            f"--offset: value {offset!r} must be 'earliest', 'latest' or a non-negative number"
        )
    return int(offset)


def taken(consumer: Consumer, max_messages: int, timeout_ms: int) -> Iterator[Consumed]:
    count, last = 0, time.monotonic()
    while count != max_messages:
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
    """Kafka's DefaultMessageFormatter: print.X for X in SHOWN, and the separators."""

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
