"""`quorate console-producer`: sends each line of standard input as a record.

The brokers acknowledge the lines of one read before more input is read. The first error ends the
command, and the rest of the input is not sent. If a line lacks its key separator, no line of the
same read is sent. Unknown properties are ignored.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected
from quorate.cli.console_properties import properties_of
from quorate.cli.parsing.strict_command import StrictCommand

READ_BYTES = 65_536
"""Maximum size of one read from standard input, in bytes."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"0": 0, "1": 1, "-1": -1, "all": -1}
"""The values of `acks` in a Produce request, by option. The option does not offer 0."""


@click.command("console-producer", cls=StrictCommand)
@cluster_options()
@click.option("--topic", required=True, help="The topic to write to.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="K=V",
    help="A property of the input, such as parse.key=true.",
)
@click.option(
    "--reader-property",
    "reader_properties",
    multiple=True,
    metavar="K=V",
    help="Same as --property.",
)
@click.option(
    "--request-required-acks",
    "acks",
    type=click.Choice(["1", "-1", "all"]),
    default="-1",
    show_default=True,
    help="Acknowledgements of each batch: by the leader (1), or by all in-sync replicas.",
)
@click.option(
    "--compression-codec",
    "codec",
    type=click.Choice(CODECS),
    default="none",
    show_default=True,
    help="Compression of the batches.",
)
def console_producer(
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    topic: str,
    properties: tuple[str, ...],
    reader_properties: tuple[str, ...],
    acks: str,
    codec: str,
) -> None:
    """Send the lines of standard input to a topic.

    With --property parse.key=true each line consists of the key, a tab (or key.separator), and the
    value."""
    from quorate.cli.client.producer import Producer
    from quorate.quorum.log.batches.compression import Codec

    settings = properties_of((*properties, *reader_properties), ("parse.key", "key.separator"))
    separator = settings.get("key.separator", "\t").encode()
    if not separator:
        raise click.UsageError("key.separator must not be empty")
    keyed = settings.get("parse.key", "false").lower() == "true"
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        producer = Producer(admin, topic, acks=ACKS[acks], codec=Codec[codec.upper()])
        for lines in chunks(sys.stdin.fileno()):
            producer.send([parse_line(line, separator if keyed else None) for line in lines])


def chunks(descriptor: int) -> Iterator[list[bytes]]:
    """Yield the complete lines of each read as a list, so that typed lines are sent immediately.

    Block until there is input, and end at the end of the input. Lines end with a newline, or with a
    carriage return and a newline, which are removed. If the input does not end with a newline, the
    last list holds the rest, unchanged."""
    rest = b""
    while data := os.read(descriptor, READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def parse_line(line: bytes, separator: bytes | None) -> tuple[bytes | None, bytes]:
    """Return the key and the value of a line: the bytes before and after the first `separator`.

    If `separator` is None, the key is None and the value is the line. Raise Refused if the line
    does not contain the separator."""
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    if not found:
        raise Refused(f"No key separator found on line {line.decode('utf-8', 'replace')!r}")
    return key, value
