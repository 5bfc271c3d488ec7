"""The timeline: the newest events of the metadata log, from GET /v1/changes.

The first reading begins LOOK_BACK offsets before the end of the log, or where the log begins. Later
readings continue where the last one ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from quorate.cli.client.admin import Admin
from quorate.cli.client.quorum import describe_quorum
from quorate.cli.console.views.change_events import READ, Event, EventReader
from quorate.cli.console.views.table import Table
from quorate.cli.status.cluster_status import Status, addresses_of
from quorate.cli.status.explanations import Get, NotServed, get_from
from quorate.cli.topics.topic_view import TopicView

LOOK_BACK = 50_000
"""The number of offsets before the end of the metadata log that the first reading covers."""
MAX_EVENTS = 20_000
"""The most events that are kept, the newest ones."""
LIMIT = 5_000
"""The most lines that one request asks for."""
READING_S = 2.0
"""The time after which a reading sends no further request. The next one continues."""
NO_CHANGES = "the nodes do not serve /v1/changes to this client, so that nothing is known"


class TimelineView:
    """The events that were read, and the offset at which the next reading continues. The thread of
    the watcher owns it."""

    COLUMNS: ClassVar = {"timeline": Event._fields}

    def __init__(self) -> None:
        self._reader = EventReader()
        self._events: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._begin: int | None = None
        self._next = 0

    def read(
        self, admin: Admin, status: Status, topics: Sequence[TopicView]
    ) -> Mapping[str, Table]:
        """Return the table `timeline`, the newest event first. Raise Refused if the quorum is lost.

        Blocks for READING_S at most plus one request."""
        addresses = addresses_of(describe_quorum(admin))
        get = partial(get_from, admin.http, addresses)
        end = status.high_watermark
        if self._begin is None:
            self._begin = self._next = max(0, end - LOOK_BACK)
        self._reader.know({each.topic_id: each.name for each in topics})
        deadline = time.monotonic() + READING_S
        try:
            while self._next < end and time.monotonic() < deadline and self._read_page(get):
                pass
        except NotServed:
            return {"timeline": Table(Event._fields, (), NO_CHANGES)}
        note = f"since offset {self._begin}"
        if self._next < end:
            note += f"; {end - self._next} newer records are not read yet"
        if len(self._events) == MAX_EVENTS:
            note = f"the newest {MAX_EVENTS} events; older ones are left out"
        return {"timeline": Table(Event._fields, tuple(reversed(self._events)), note)}

    def _read_page(self, get: Get) -> bool:
        """Add the events of the next page. Return False if the node returned nothing new."""
        query = f"limit={LIMIT}&types={','.join(READ)}"
        try:
            page = get(f"/v1/changes?from={self._next}&{query}")
        except LookupError:  # the log begins after this offset
            page = get(f"/v1/changes?{query}")
            self._begin = page.lines[0]["offset"] if page.lines else page.next_offset
        for line in page.lines:
            if (event := self._reader.event_of(line)) is not None:
                self._events.append(event)
        is_new = page.next_offset > self._next
        self._next = max(self._next, page.next_offset)
        return is_new
