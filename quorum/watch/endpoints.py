"""HTTP GET by path: how a node answers those who watch it.

A handler is a coroutine from query parameters to a response, one task per request, cancelled when
the client goes. At most MAX_OPEN requests are under way, and the next one is refused with 503.
Handlers in `always` are answered beyond that, because an orchestrator that gets no health check
restarts the node. A handler that fails is answered with 500 and logged. It never stops the node.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from quorate.quorum.clipped import quoted
from quorate.quorum.rpc.http import HttpResponse, refusal
from quorate.quorum.seams import Link

MAX_OPEN = 64
MAX_PARAMETERS = 32
JSON = "application/json"

Query = Mapping[str, str]
HttpHandler = Callable[[Query], Awaitable[HttpResponse]]

logger = logging.getLogger("quorate.watch")


class BadQuery(Exception):
    """What the client asks for is not possible; the message names the parameter and the rule."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def json_response(value: object, status: int = 200) -> HttpResponse:
    return HttpResponse(json.dumps(value).encode() + b"\n", JSON, status)


class Endpoints:
    def __init__(
        self, handlers: Mapping[str, HttpHandler], always: Mapping[str, HttpHandler] | None = None
    ) -> None:
        """`always` are handlers that do not wait for anything."""
        self.open = 0
        self._handlers = {**(always or {}), **handlers}
        self._bounded = frozenset(handlers)

    def accept(self, link: Link) -> Exchange:
        """The Accept of `Wire.HTTP`."""
        return Exchange(self, link)

    async def answer(self, target: str) -> HttpResponse:
        path, _, query = target.partition("?")
        handler = self._handlers.get(path)
        if handler is None:
            return refusal(404, f"no {path} here; there are {', '.join(self._handlers)}")
        if self.open > MAX_OPEN and path in self._bounded:
            return refusal(503, f"{MAX_OPEN} requests are under way; come back later")
        try:
            return await handler(parameters(query))
        except BadQuery as error:
            return refusal(error.status, str(error))
        except Exception:
            logger.exception("GET %s failed", path)
            return refusal(500, "failed; the node's log says why")


def parameters(query: str) -> Query:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise BadQuery(f"the query cannot be read: {error}") from None
    return dict(pairs)


class Exchange:
    """The LinkHandler of one GET."""

    def __init__(self, endpoints: Endpoints, link: Link) -> None:
        self._endpoints = endpoints
        self._link = link
        self._task: asyncio.Task[None] | None = None
        endpoints.open += 1

    def on_frame(self, frame: memoryview) -> None:
        if self._task is None:
            target = bytes(frame).decode("utf-8", "replace")
            self._task = asyncio.get_running_loop().create_task(self._answer(target))

    def on_closed(self, error: Exception | None) -> None:
        self._endpoints.open -= 1
        if self._task is not None:
            self._task.cancel()

    async def _answer(self, target: str) -> None:
        response = await self._endpoints.answer(target)
        try:
            encoded = response.encoded()
        except Exception:
            logger.exception("the response to GET %s cannot be encoded", quoted(target))
            encoded = refusal(500, "failed; the node's log says why").encoded()
        self._link.send(encoded)
        self._link.close()
