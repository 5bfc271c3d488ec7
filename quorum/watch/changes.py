"""GET /v1/changes: committed records of the metadata log as JSON lines, in order, with causes.

    from=OFFSET    the first offset; default: the start of the log
    limit=N        maximum number of lines, 1 to MAX_LIMIT; default: DEFAULT_LIMIT
    wait_ms=N      maximum wait if nothing is committed at `from` yet, 0 (default) to MAX_WAIT_MS
    types=A,B      only records of these types (Kafka's names: PARTITION_CHANGE_RECORD)
    causes=A,B     only records with these causes (`quorum/metadata/causes.py`), without end offsets

The response header Quorate-Next-Offset names the offset at which the next request continues. One
response reads a bounded part of the log, so it may hold fewer lines than `limit`, or none.

A line is an object with offset, epoch, timestamp_ms, type, version, cause and record. The cause is
null if the record names none. Raft's control records are among the lines.

Pages are made in slices, one slice at a time for all requests together. After a slice the requests
pause for REST_FACTOR times the CPU time of the slice. These requests therefore use at most a third
of the node's CPU.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.files.errors import OffsetOutOfRange
from quorate.quorum.log.log import Log
from quorate.quorum.metadata.causes import DOCS
from quorate.quorum.metadata.record_text import (
    NAMES,
    control_message,
    metadata_message,
    text_of,
    type_name,
)
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.seams import Clock
from quorate.quorum.watch.http_dispatch import BadQuery, Query

SLICE_BYTES = 8 * 1024
"""Bytes of the log that one slice reads, but at least one batch."""
REST_FACTOR = 2
"""The length of the pause after a slice, as a multiple of the CPU time of the slice."""
MAX_READ_BYTES = 8 << 20
"""Bytes of the log after which a response ends. The last slice may exceed it."""
MAX_BODY_BYTES = 4 << 20
"""Characters of lines after which a response ends. The last line may exceed it."""
DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
MAX_WAIT_MS = 30_000
NEXT_OFFSET = "Quorate-Next-Offset"
JSON_LINES = "application/x-ndjson"
PARAMETERS = ("from", "limit", "wait_ms", "types", "causes")
TYPE_NAMES = frozenset(NAMES.values())
CAUSE_NAMES = frozenset(DOCS) - {""}


@dataclass(frozen=True, slots=True)
class Asked:
    """The checked parameters of one request.

    `offset` None means the start of the log. `types` and `causes` None mean all of them."""

    offset: int | None
    limit: int
    wait_ms: int
    types: frozenset[str] | None
    causes: frozenset[str] | None

    @classmethod
    def of(cls, query: Query) -> Asked:
        """Return the parameters. Raise BadQuery if one is unknown or out of range."""
        unknown = sorted(set(query) - set(PARAMETERS))
        if unknown:
            raise BadQuery(f"no parameter {unknown[0]!r}; there are {', '.join(PARAMETERS)}")
        return cls(
            offset=number(query, "from", 0, 2**63 - 1) if "from" in query else None,
            limit=number(query, "limit", 1, MAX_LIMIT, DEFAULT_LIMIT),
            wait_ms=number(query, "wait_ms", 0, MAX_WAIT_MS, 0),
            types=chosen(query, "types", "type of record", TYPE_NAMES),
            causes=chosen(query, "causes", "cause", CAUSE_NAMES),
        )


def chosen(query: Query, name: str, kind: str, known: frozenset[str]) -> frozenset[str] | None:
    """Return the names in a parameter, or None if it is absent. Raise BadQuery if one of them is
    not in `known`. `kind` says in the error what they name."""
    text = query.get(name)
    if text is None:
        return None
    names = frozenset(text.split(","))
    wrong = sorted(names - known)
    if wrong:
        raise BadQuery(f"{name}: {wrong[0][:100]!r} is no {kind}, as {min(known)} is")
    return names


def number(query: Query, name: str, low: int, high: int, default: int = 0) -> int:
    """Return the parameter as an integer from `low` to `high`, or `default` if it is absent.

    Raise BadQuery if it is not such a number."""
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and low <= int(text) <= high):
        raise BadQuery(f"{name}={text[:40]!r} is not a whole number from {low} to {high}")
    return int(text)


@dataclass(slots=True)
class Page:
    """A response while it is made."""

    next_offset: int
    lines: list[str] = field(default_factory=list)
    body_bytes: int = 0
    read_bytes: int = 0

    def is_full(self, limit: int) -> bool:
        """Return True if the page has `limit` lines or has reached the bound on its size or on
        reading.
        """
        return (
            len(self.lines) >= limit
            or self.body_bytes >= MAX_BODY_BYTES
            or self.read_bytes >= MAX_READ_BYTES
        )

    def response(self) -> HttpResponse:
        """Return the page as a response with the next offset."""
        body = "".join(self.lines).encode()
        return HttpResponse(body, JSON_LINES, headers=((NEXT_OFFSET, str(self.next_offset)),))


class Changes:
    """Handles /v1/changes. It runs on the node's event loop and reads the log between two awaits.

    Invariant: a page contains only records below the high watermark."""

    def __init__(self, clock: Clock, log: Log, high_watermark: Callable[[], int]) -> None:
        """`high_watermark` returns the present high watermark of the metadata log."""
        self._clock = clock
        self._log = log
        self._one_slice = asyncio.Lock()
        self._high_watermark = high_watermark
        self._waiting: dict[asyncio.Event, None] = {}

    def committed(self, high_watermark: int) -> None:
        """Wake the requests that wait for a commit. The node calls this when the high watermark
        rises.
        """
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for each in waiting:
                each.set()

    async def get(self, query: Query) -> HttpResponse:
        """Return one page. It has no lines if nothing was committed at the offset in time.

        Raise BadQuery with status 410 if the offset is below the start of the log, also if a
        snapshot replaces the log before the page has a line. Raise BadQuery with status 400 if it
        is above the high watermark or if a parameter is invalid.
        """
        asked = Asked.of(query)
        offset = self._log.start_offset if asked.offset is None else asked.offset
        self._check(offset)
        page = Page(offset)
        if await self._await_commit(offset, asked.wait_ms):
            await self._fill(page, asked)
        return page.response()

    async def _await_commit(self, offset: int, wait_ms: int) -> bool:
        """Wait until `offset` is committed. Return False if that takes longer than `wait_ms`."""
        news = asyncio.Event()
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while wait_ms and offset >= self._high_watermark():
                    news.clear()
                    self._waiting[news] = None
                    await news.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(news, None)
        return True

    def _check(self, offset: int) -> None:
        """Raise BadQuery if the offset is outside of the committed log."""
        start, end = self._log.start_offset, self._high_watermark()
        if offset < start:
            raise BadQuery(
                f"from={offset} is not in the log any more, which starts at {start}: what was "
                "before is only in a snapshot",
                status=410,
            )
        if offset > end:
            raise BadQuery(f"from={offset} is above the high watermark, {end}, of this node")

    async def _fill(self, page: Page, asked: Asked) -> None:
        """Add records slice by slice, with a pause after each slice."""
        more = True
        while more:
            async with self._one_slice:
                begun_ms = self._clock.cpu_ms()
                more = self._fill_slice(page, asked)
                rest_ms = REST_FACTOR * (self._clock.cpu_ms() - begun_ms)
                await asyncio.sleep(rest_ms / 1000)

    def _fill_slice(self, page: Page, asked: Asked) -> bool:
        """Add the lines of one piece of the log. Return False if the page is complete."""
        end = self._high_watermark()
        if page.is_full(asked.limit) or page.next_offset >= end:
            return False
        try:
            data = self._log.read(page.next_offset, SLICE_BYTES, end=end)
        except OffsetOutOfRange:  # A snapshot has replaced this part of the log.
            if page.lines:
                return False
            self._check(page.next_offset)
            raise
        page.read_bytes += len(data)
        for offset, line in lines(data, page.next_offset, asked):
            page.next_offset = offset + 1
            if line:
                page.lines.append(line)
                page.body_bytes += len(line)
            if page.is_full(asked.limit):
                return False
        return True


def lines(data: bytes, start: int, asked: Asked) -> Iterator[tuple[int, str]]:
    """Yield (offset, line) for each record from `start` on.

    The line is empty for a record that is not wanted, and for the last record of a batch without a
    wanted cause, whose other records are left out."""
    types, causes = asked.types, asked.causes
    names = [name.encode() for name in causes or ()]
    # `Log.read` has verified the checksums.
    for position, header in batches(data, verify=False):
        if names and not header.codec:
            end = position + header.size_bytes
            if all(data.find(name, position, end) < 0 for name in names):
                yield header.last_offset, ""
                continue
        read = control_message if header.is_control else metadata_message
        for record in records_of(data, position, header):
            if record.offset < start:
                continue
            message, version = read(record)
            name = type_name(message)
            stored = getattr(message, "cause", "")
            if (types is not None and name not in types) or (
                causes is not None and stored.partition(" ")[0] not in causes
            ):
                yield record.offset, ""
                continue
            cause = json.dumps(stored or None)
            line = (
                f'{{"offset":{record.offset},"epoch":{header.leader_epoch}'
                f',"timestamp_ms":{record.timestamp_ms},"type":"{name}","version":{version}'
                f',"cause":{cause},"record":{text_of(message, version)}}}\n'
            )
            yield record.offset, line
