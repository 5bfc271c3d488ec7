"""`quorate dump-log`, with the options and output of kafka-dump-log.

With `--format json` it prints one object per record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from quorate.cli.client.errors import Refused, said_once
from quorate.cli.client.options import format_option
from quorate.cli.dump_log import lines as dump_lines
from quorate.cli.dump_log.indexes import (
    OFFSET_ENTRY,
    TIME_ENTRY,
    index_mismatches,
    offset_index,
    time_index,
    time_mismatches,
)
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.log.files.errors import LogError


@click.command("dump-log", cls=StrictCommand)
@click.option(
    "--files",
    required=True,
    metavar="FILE,...",
    help="Log segments, snapshots and indexes to print.",
)
@click.option("--print-data-log", is_flag=True, help="Also print keys and values.")
@click.option("--deep-iteration", is_flag=True, help="Print a line for each record.")
@click.option(
    "--cluster-metadata-decoder", is_flag=True, help="Decode the values as metadata records."
)
@click.option(
    "--skip-record-metadata",
    is_flag=True,
    help="Print only keys and values of records, without their offsets and timestamps.",
)
@click.option(
    "--verify-index-only",
    is_flag=True,
    help="Compare indexes with their logs, and do not print them.",
)
@click.option(
    "--show-secrets",
    is_flag=True,
    help="Print the keys of SCRAM credentials and the values of secret configs.",
)
@click.option("--index-sanity-check", is_flag=True, help="Check only the size of indexes.")
@click.option(
    "--max-bytes",
    type=click.IntRange(min=0),
    default=dump_lines.MAX_INT - 1,
    help="Stop after this number of bytes of each log.",
)
@click.option("--max-message-size", type=int, hidden=True)
@format_option
def dump_log(
    files: str,
    print_data_log: bool,
    deep_iteration: bool,
    cluster_metadata_decoder: bool,
    skip_record_metadata: bool,
    verify_index_only: bool,
    show_secrets: bool,
    index_sanity_check: bool,
    max_bytes: int,
    max_message_size: int | None,
    output: str,
) -> None:
    """Print the content of log segments, snapshots and indexes.

    \b
    quorate dump-log --files 00000000000000000000.log --print-data-log
    quorate dump-log --files 00000000000000000000.log --cluster-metadata-decoder"""
    options = dump_lines.DumpOptions(
        data=print_data_log or cluster_metadata_decoder or skip_record_metadata,
        deep=deep_iteration,
        metadata=cluster_metadata_decoder,
        skip_record_metadata=skip_record_metadata,
        max_bytes=max_bytes,
        show_secrets=show_secrets,
    )
    faults = printed = 0
    for name in files.split(","):
        path = Path(name)
        try:
            if path.suffix in (".log", ".checkpoint"):
                dump_records(path, options, output)
            elif path.suffix in (".index", ".timeindex"):
                faults += dump_index(path, verify_index_only, index_sanity_check, output)
            else:
                echo(f"Ignoring unknown file {path}", err=True)
                continue
            printed += 1
        except LogError as error:
            raise Refused(str(error)) from None
        except dump_lines.NoOffset:
            raise Refused(
                f"{path}: the name must begin with the segment's base offset, such as "
                f"00000000000000000000{path.suffix}"
            ) from None
    if not printed:
        raise Refused("no file was printed: names end with .log, .checkpoint, .index or .timeindex")
    if faults:
        raise SystemExit(1)


def content_of(path: Path) -> bytes:
    """Return the content of a file. Raise Refused if it cannot be read. Errors of standard output
    must not name the file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(said_once(error, path)) from None


def dump_records(path: Path, options: dump_lines.DumpOptions, output: str) -> None:
    """Print the content of a segment or snapshot."""
    content = memoryview(content_of(path))
    if output == "json":
        for row in dump_lines.log_rows(content, options):
            echo_json(row)
        return
    echo(f"Dumping {path}")
    for line in dump_lines.log_lines(path.name, content, options):
        echo(line)


def echo_json(row: Mapping[str, object]) -> None:
    """Print an object on a line of its own."""
    echo(json.dumps(row, separators=(",", ":"), ensure_ascii=False))


def dump_index(path: Path, verify_only: bool, sanity_only: bool, output: str) -> int:
    """Print an index, and return the number of entries that contradict the log.

    `verify_only` compares and does not print. `sanity_only` checks only that the size is a multiple
    of an entry's, and raises Refused if not. The log must be in the same directory. With `output`
    "json", standard output has an object for each entry and nothing else."""
    is_text = output == "text"
    if is_text:
        echo(f"Dumping {path}")
    content = content_of(path)
    base_offset = dump_lines.base_offset_of(path.name)
    timed = path.suffix == ".timeindex"
    entry_bytes = TIME_ENTRY.size if timed else OFFSET_ENTRY.size
    if not content and not timed:
        if is_text:
            echo(f"{path} is empty.")
        return 0
    if sanity_only:
        if len(content) % entry_bytes:
            raise Refused(f"{path}: {len(content)} bytes must be a multiple of {entry_bytes}")
        if is_text:
            echo(f"{path} passed sanity check.")
        return 0
    names = ("timestamp", "offset") if timed else ("offset", "position")
    entries = list((time_index if timed else offset_index)(content, base_offset))
    for entry in () if verify_only else entries:
        row = dict(zip(names, entry, strict=True))
        if is_text:
            echo(" ".join(f"{name}: {value}" for name, value in row.items()))
        else:
            echo_json(row)
    log = memoryview(content_of(path.with_suffix(".log")))
    faults = list((time_mismatches if timed else index_mismatches)(entries, log))
    if faults:
        echo(f"Mismatches in :{path.absolute()}", err=True)
    for fault in faults:
        echo(f"  {fault}", err=True)
    return len(faults)
