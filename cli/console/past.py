"""Earlier states of the cluster, from a metadata log on this machine (`--metadata-dir`).

    GET /api/past                       the first and the last offset, or why there is none
    GET /api/past/overview?at=OFFSET    the values above the tables, after that record
    GET /api/past/table/NAME?at=OFFSET  a window of a table (`windows.py`)

A state is replayed from the nearest snapshot, in a thread of its own, one state at a time. The log
is read as `quorate history at` reads it, and nothing is written."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path
from typing import Any

from aiohttp import web

from quorate.cli.client.errors import Refused
from quorate.cli.console.access.request_rules import RequestRefused
from quorate.cli.console.cluster_tables import ClusterTables
from quorate.cli.console.past_tables import past_tables
from quorate.cli.console.slices import in_slices
from quorate.cli.console.views.table import Table
from quorate.cli.console.windows import Window, window_of
from quorate.cli.history.source import history_in
from quorate.quorum.analytics.log.seek import last_batch
from quorate.quorum.analytics.log.segments import log_start_offset, metadata_dir, snapshot_slices
from quorate.quorum.analytics.log.text import clock
from quorate.quorum.analytics.replay.moment import moment

MAX_STATES = 2
"""The most states that are kept, so that the tables of one state need one replay."""
MAX_WAITING = 8
"""The most requests that wait for a replay."""
MAX_OFFSET_DIGITS = 18
NO_DIRECTORY = "start the console with --metadata-dir to see earlier states"
NOT_IN_LOG = "the metadata log does not tell this"


class Past:
    """The earlier states of the log in a directory, on the event loop of the console's server.
    Without a directory there are none."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._states: OrderedDict[int, ClusterTables] = OrderedDict()
        self._one_replay = asyncio.Lock()
        self._waiting = 0

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes. The server has checked the sender and the token of a request."""
        router.add_get("/api/past", self._range)
        router.add_get("/api/past/overview", self._overview)
        router.add_get("/api/past/table/{name}", self._table)

    async def _range(self, request: web.Request) -> web.Response:
        if self._directory is None:
            return web.json_response({"why": NO_DIRECTORY})
        try:
            return web.json_response(await asyncio.to_thread(range_of, self._directory))
        except Refused as refused:
            return web.json_response({"why": refused.format_message()})

    async def _overview(self, request: web.Request) -> web.Response:
        state = await self._at(request)
        return web.json_response({**state.overview, "version": 0, "error": ""})

    async def _table(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        state = await self._at(request)
        table = state.tables.get(name, Table((), (), NOT_IN_LOG))
        window = Window.of({key: text for key, text in request.query.items() if key != "at"})
        found = await in_slices(window_of(table, window))
        return web.json_response({**found, "version": 0})

    async def _at(self, request: web.Request) -> ClusterTables:
        """Return the state that a request names.

        Raise RequestRefused if there is no directory, the offset is no number or not in the log,
        the log cannot be read, or MAX_WAITING requests wait already."""
        text = request.query.get("at", "")
        if self._directory is None:
            raise RequestRefused(404, NO_DIRECTORY)
        if not (text.isascii() and text.isdecimal() and len(text) <= MAX_OFFSET_DIGITS):
            raise RequestRefused(400, f"at: value {text[:20]!r} must be an offset")
        offset = int(text)
        if offset in self._states:
            return self._states[offset]
        if self._waiting >= MAX_WAITING:
            raise RequestRefused(503, f"{MAX_WAITING} requests for earlier states wait already")
        self._waiting += 1
        try:
            async with self._one_replay:
                if offset not in self._states:
                    self._keep(offset, await asyncio.to_thread(state_at, self._directory, offset))
                return self._states[offset]
        except Refused as refused:
            raise RequestRefused(409, refused.format_message()) from None
        finally:
            self._waiting -= 1

    def _keep(self, offset: int, state: ClusterTables) -> None:
        self._states[offset] = state
        if len(self._states) > MAX_STATES:
            self._states.popitem(last=False)


def state_at(directory: Path, offset: int) -> ClusterTables:
    """Return the tables after the record at `offset`. Block. Raise Refused if the log cannot be
    read or does not have the offset."""
    with history_in(directory) as source:
        return past_tables(moment(source, offset=offset))


def range_of(directory: Path) -> dict[str, Any]:
    """Return the first and the last offset whose states can be replayed, as `first` and `last`, and
    `until`, the time of the last one in UTC. Block. Raise Refused if the log cannot be read."""
    with history_in(directory) as source:
        log = metadata_dir(str(source))
        last = last_batch(log)
        if last is None:
            raise Refused(f"{directory}: the metadata log is empty")
        first = log_start_offset(log)
        if first > 0:
            ends = [each.snapshot.end_offset for each in snapshot_slices(log) if each.snapshot]
            first = min((end - 1 for end in ends if end >= first), default=first)
        return {"first": first, "last": last.last_offset, "until": clock(last.max_timestamp_ms)}
