"""Dispatch of HTTP GET requests by path. `endpoints.py` gives the handlers of a node.

A handler is a coroutine from query parameters to a response. Each request is a task, which is
cancelled when the client disconnects.

A connection carries one request, and the node closes it after the response. A request is in flight
until its connection is closed. If MAX_OPEN requests are in flight, or the responses that clients
have not taken have MAX_UNREAD_BYTES, the next one is refused with 503. The handlers in `always` are
never refused, because an orchestrator that gets no health check restarts the node.

If a handler fails, the response is 500 and the error is logged. It never stops the node.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from quorate.quorum.clipped import quoted
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.http import HttpResponse, refusal
from quorate.quorum.seams import Clock, Link
from quorate.quorum.watch.http_access import HttpAccess

MAX_OPEN = 64
"""Maximum number of requests in flight."""
MAX_UNREAD_BYTES = 64 << 20
"""Bytes of responses on connections that are not closed yet, above which requests are refused. No
budget of the node counts them. The responses that are being made then may exceed it."""
MAX_PARAMETERS = 32
"""Maximum number of parameters in a query."""
JSON = "application/json"

Query = Mapping[str, str]
HttpHandler = Callable[[Query], Awaitable[HttpResponse]]

logger = logging.getLogger("quorate.watch")


class BadQuery(Exception):
    """The request cannot be served. The message names the parameter and the allowed values.

    `status` is the HTTP status of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def json_response(value: object, status: int = 200) -> HttpResponse:
    """Return `value` as a JSON response."""
    return HttpResponse(json.dumps(value).encode() + b"\n", JSON, status)


class HttpDispatch:
    """The handlers by path, and the number of requests in flight. The node's event loop owns it."""

    def __init__(
        self,
        clock: Clock,
        handlers: Mapping[str, HttpHandler],
        always: Mapping[str, HttpHandler] | None = None,
        access: HttpAccess = HttpAccess(),  # noqa: B008  it is immutable
    ) -> None:
        """The handlers in `always` are exempt from MAX_OPEN and must not block or wait. `access`
        decides which requests are answered."""
        self.access = access
        self.open = 0
        """The number of requests in flight, also of those that are never refused."""
        self.unread_bytes = 0
        """The bytes of their responses."""
        self.refused = 0
        """The number of requests without a certificate or token that this node demands."""
        self.log_limit = LogLimit(clock)
        """Limits the lines about failed requests, which any client can repeat."""
        self._handlers = {**(always or {}), **handlers}
        self._bounded = frozenset(handlers)

    def accept(self, link: Link) -> Exchange:
        """Return the handler of a new HTTP connection (the callback that `Wire.HTTP` needs)."""
        return Exchange(self, link)

    async def answer(self, target: str) -> HttpResponse:
        """Return the response to a request target (path and query): 404 for an unknown path, 503
        above MAX_OPEN or MAX_UNREAD_BYTES, the status of a BadQuery, and 500 for any other
        error."""
        path, _, query = target.partition("?")
        handler = self._handlers.get(path)
        if handler is None:
            return refusal(404, f"no {path} here; there are {', '.join(self._handlers)}")
        if self.open > MAX_OPEN and path in self._bounded:
            return refusal(503, f"{MAX_OPEN} requests are under way; come back later")
        if self.unread_bytes >= MAX_UNREAD_BYTES and path in self._bounded:
            return refusal(503, f"clients leave {self.unread_bytes} bytes unread; come back later")
        try:
            return await handler(parameters(query))
        except BadQuery as error:
            return refusal(error.status, str(error))
        except Exception:
            left_out = self.log_limit.passes(path)
            if left_out is not None:
                logger.exception("GET %s failed%s", path, left_out)
            return refusal(500, "failed; the node's log says why")


def parameters(query: str) -> Query:
    """Return the parameters of a query. The last value of a repeated parameter wins.

    Raise BadQuery if the query cannot be read or has too many parameters."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise BadQuery(f"the query cannot be read: {error}") from None
    return dict(pairs)


class Exchange:
    """The link handler of one GET request. It owns the task that answers the request."""

    def __init__(self, dispatch: HttpDispatch, link: Link) -> None:
        self._dispatch = dispatch
        self._link = link
        self._task: asyncio.Task[None] | None = None
        self._unread_bytes = 0
        dispatch.open += 1

    def on_frame(self, frame: memoryview) -> None:
        """Start to answer the first request. Later requests on the connection are ignored."""
        if self._task is None:
            target = bytes(frame).decode("utf-8", "replace")
            self._task = asyncio.get_running_loop().create_task(self._answer(target))

    def on_closed(self, error: Exception | None) -> None:
        """Cancel the task if it still runs."""
        self._dispatch.open -= 1
        self._dispatch.unread_bytes -= self._unread_bytes
        if self._task is not None:
            self._task.cancel()

    async def _answer(self, target: str) -> None:
        response = self._refusal(target) or await self._dispatch.answer(target)
        try:
            encoded = response.encoded()
        except Exception:
            left_out = self._dispatch.log_limit.passes("encoding")
            if left_out is not None:
                logger.exception(
                    "the response to GET %s cannot be encoded%s", quoted(target), left_out
                )
            encoded = refusal(500, "failed; the node's log says why").encoded()
        self._unread_bytes = len(encoded)
        self._dispatch.unread_bytes += self._unread_bytes
        self._link.send(encoded)
        self._link.close()

    def _refusal(self, target: str) -> HttpResponse | None:
        """Return the response to a request that may not be answered, or None. Write a line."""
        link, path = self._link, target.partition("?")[0]
        bearer, access = getattr(link, "bearer", None), self._dispatch.access
        refused = access.refusal(path, link.identity, bearer, link.peer.host)
        if refused is not None:
            self._dispatch.refused += 1
            left_out = self._dispatch.log_limit.passes("refused")
            if left_out is not None:
                logger.warning(
                    "GET %s of %s refused with %d: %s%s",
                    quoted(path),
                    link.peer,
                    refused.status,
                    refused.body.decode().strip(),
                    left_out,
                )
        return refused
