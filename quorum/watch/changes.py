"""GET /v1/changes: committed records of the metadata log as JSON lines, in order, with causes.

    from=OFFSET    the first one wanted; the start of the log when not given
    limit=N        lines at most
    wait_ms=N      when nothing is committed at `from` yet: how long to wait for it
    types=A,B      only records of these types (Kafka's names: PARTITION_CHANGE_RECORD)

The header Quorate-Next-Offset says where to go on. One answer reads a bounded piece of the log, so
a page may hold fewer lines than asked for, or none.

Pages are made in slices, one slice at a time for all requests together. After a slice the loop has
REST_FACTOR times its CPU time for other work, so these requests use at most a third of the node.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from quorate.quorum.log.batch import batches, records_of
from quorate.quorum.log.errors import OffsetOutOfRange
from quorate.quorum.log.log import Log
from quorate.quorum.readable import (
    NAMES,
    control_message,
    metadata_message,
    text_of,
    type_name,
)
from quorate.quorum.rpc.http import HttpResponse
from quorate.quorum.seams import Clock
from quorate.quorum.watch.endpoints import BadQuery, Query

SLICE_BYTES = 8 * 1024
REST_FACTOR = 2
MAX_READ_BYTES = 8 << 20  # of the log, for one answer
MAX_BODY_BYTES = 4 << 20
DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
MAX_WAIT_MS = 30_000
NEXT_OFFSET = "Quorate-Next-Offset"
JSON_LINES = "application/x-ndjson"
PARAMETERS = ("from", "limit", "wait_ms", "types")
TYPE_NAMES = frozenset(NAMES.values())


@dataclass(frozen=True, slots=True)
class Asked:
    offset: int | None
    limit: int
    wait_ms: int
    types: frozenset[str] | None

    @classmethod
    def of(cls, query: Query) -> Asked:
        unknown = sorted(set(query) - set(PARAMETERS))
        if unknown:
            raise BadQuery(f"no parameter {unknown[0]!r}; there are {', '.join(PARAMETERS)}")
        names = query.get("types")
        types = None if names is None else frozenset(names.split(","))
        wrong = sorted((types or frozenset()) - TYPE_NAMES)
        if wrong:
            raise BadQuery(f"types: {wrong[0]!r} is no type of record, as {min(TYPE_NAMES)} is")
        return cls(
            offset=number(query, "from", 0, 2**63 - 1) if "from" in query else None,
            limit=number(query, "limit", 1, MAX_LIMIT, DEFAULT_LIMIT),
            wait_ms=number(query, "wait_ms", 0, MAX_WAIT_MS, 0),
            types=types,
        )


def number(query: Query, name: str, low: int, high: int, default: int = 0) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
        raise BadQuery(f"{name}={text[:40]!r} is not a whole number from {low} to {high}")
    return int(text)


@dataclass(slots=True)
class Page:
    """The answer in the making."""

    next_offset: int
    lines: list[str] = field(default_factory=list)
    body_bytes: int = 0
    read_bytes: int = 0

    def is_full(self, limit: int) -> bool:
        return (
            len(self.lines) >= limit
            or self.body_bytes >= MAX_BODY_BYTES
            or self.read_bytes >= MAX_READ_BYTES
        )

    def response(self) -> HttpResponse:
        body = "".join(self.lines).encode()
        return HttpResponse(body, JSON_LINES, headers=((NEXT_OFFSET, str(self.next_offset)),))


class Changes:
    def __init__(self, clock: Clock, log: Log, high_watermark: Callable[[], int]) -> None:
        self._clock = clock
        self._log = log
        self._one_slice = asyncio.Lock()
        self._high_watermark = high_watermark
        self._waiting: dict[asyncio.Event, None] = {}

    def committed(self, high_watermark: int) -> None:
        """The high watermark moved: those who wait may have something to read."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for each in waiting:
                each.set()

    async def get(self, query: Query) -> HttpResponse:
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
        except OffsetOutOfRange:  # a snapshot has replaced this part of the log
            if page.lines:
                return False
            self._check(page.next_offset)
            raise
        page.read_bytes += len(data)
        for offset, line in lines(data, page.next_offset, asked.types):
            page.next_offset = offset + 1
            if line:
                page.lines.append(line)
                page.body_bytes += len(line)
            if page.is_full(asked.limit):
                return False
        return True


def lines(data: bytes, start: int, types: frozenset[str] | None) -> Iterator[tuple[int, str]]:
    """(offset, line) of each record from `start` on; no line for types that are not wanted."""
    for position, header in batches(data, verify=False):  # the log checked them
        read = control_message if header.is_control else metadata_message
        for record in records_of(data, position, header):
            if record.offset < start:
                continue
            message, version = read(record)
            name = type_name(message)
            if types is not None and name not in types:
                yield record.offset, ""
                continue
            cause = json.dumps(getattr(message, "cause", "") or None)
            line = (
                f'{{"offset":{record.offset},"epoch":{header.leader_epoch}'
                f',"timestamp_ms":{record.timestamp_ms},"type":"{name}","version":{version}'
                f',"cause":{cause},"record":{text_of(message, version)}}}\n'
            )
            yield record.offset, line
