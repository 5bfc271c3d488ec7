"""Merges the lines of node logs about the partitions of one topic with their metadata history.

A line of a log belongs to a partition if it contains TOPIC-PARTITION, as the lines of the logger
`state.change` do. Each log is read line by line, so its size does not matter. The times of logs are
in UTC. Those of Kafka's brokers and of earlier versions are local times of their node, and are read
as local times of this machine. The metadata log has the times of the controllers' clocks."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quorate.quorum.analytics.replay.story import Stories

MAX_LINE_BYTES = 1 << 20
"""The most bytes of a line that are read. The rest of a longer line is skipped."""
METADATA = "metadata"
LINE = re.compile(
    r"\[?(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}Z?)\]?"
    r" (?P<level>[A-Z]+) (?:\[(?P<node>[\w ,]+)\] )?(?P<text>.*)"
)
"""The first line of an entry: Quorate's log lines, and those of Kafka's default layout."""


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One line of the merged story. The order is that of the times; at the same time, the metadata
    comes first. `offset` is None for a line of a node's log."""

    time_ms: int
    of_log: bool
    source: str
    partition: int
    text: str
    cause: str = ""
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The topic, the partitions (None: all), and the period in ms since 1970, both ends included
    (None: no end)."""

    topic: str
    partitions: Container[int] | None = None
    start_ms: int | None = None
    end_ms: int | None = None

    def includes(self, partition: int, time_ms: int) -> bool:
        """Return True if an entry of this partition at this time is wanted."""
        return (
            (self.partitions is None or partition in self.partitions)
            and (self.start_ms is None or time_ms >= self.start_ms)
            and (self.end_ms is None or time_ms <= self.end_ms)
        )

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern that finds a partition of the topic in a line."""
        return re.compile(rf"(?<![\w.-]){re.escape(self.topic)}-(\d+)(?!\.?[\w-])")


def merged(streams: Iterable[Iterable[Entry]]) -> Iterator[Entry]:
    """Yield the entries of all streams by time. A stream is expected to be in the order of time. If
    a clock was set back, its entries keep their order."""
    yield from heapq.merge(*streams)


def of_metadata(stories: Stories, wanted: Wanted) -> Iterator[Entry]:
    """Yield the events of the metadata log that are wanted, in the order of the log."""
    found = [
        Entry(
            event.timestamp_ms,
            False,
            METADATA,
            story.partition,
            f"{event.what} {event.why}",
            event.cause or "",
            event.offset,
        )
        for story in stories.told
        for event in story.events
        if wanted.includes(story.partition, event.timestamp_ms)
    ]
    yield from sorted(found, key=lambda entry: (entry.offset or 0, entry.partition))


def of_log(file: Path, wanted: Wanted) -> Iterator[Entry]:
    """Yield the lines of a node's log that are wanted. Lines without a time, such as those of a
    traceback, are skipped. Raise OSError if the file cannot be read."""
    pattern = wanted.pattern()
    needle = f"{wanted.topic}-".encode()
    for raw in lines_of(file):
        if needle not in raw:
            continue
        line = raw.decode("utf-8", "replace").rstrip()
        found, head = pattern.search(line), head_of(line)
        if found is None or head is None:
            continue
        time_ms, source, text = head
        partition = int(found[1][:10])
        if wanted.includes(partition, time_ms):
            yield Entry(time_ms, True, source or file.name, partition, text)


def head_of(line: str) -> tuple[int, str, str] | None:
    """Return the time of a log line in ms since 1970, its node or "", and its text. Return None
    unless it is a line of Quorate in one of its two formats, or of Kafka's default layout."""
    if line.startswith("{"):
        try:
            found = json.loads(line)
            moment = datetime.fromisoformat(found["time"])
            node = f"{found['roles'][0]} {found['node_id']}"
            text = f"{found['logger']}: {found['message']}"
        except (ValueError, LookupError, TypeError):
            return None
        return round(moment.timestamp() * 1000), node, text
    head = LINE.fullmatch(line)
    return None if head is None else (ms_of(head["time"]), head["node"] or "", head["text"])


def lines_of(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file, each cut to MAX_LINE_BYTES."""
    with file.open("rb") as opened:
        begins = True
        while piece := opened.readline(MAX_LINE_BYTES):
            if begins:
                yield piece
            begins = piece.endswith(b"\n")


def ms_of(text: str) -> int:
    """Return the time of a log line in ms since 1970. With a Z it is in UTC, and otherwise a local
    time, as Kafka and earlier versions write it."""
    moment = datetime.strptime(text.removesuffix("Z"), "%Y-%m-%d %H:%M:%S,%f")
    moment = moment.replace(tzinfo=UTC) if text.endswith("Z") else moment.astimezone()
    return round(moment.timestamp() * 1000)


def matching_files(directory: Path, pattern: re.Pattern[str]) -> list[Path]:
    """Return the files of a directory whose names match, sorted. Raise OSError if it cannot be
    read."""
    return sorted(
        each for each in directory.iterdir() if each.is_file() and pattern.search(each.name)
    )
