"""The HTTP server of the console: the files of the page, and the tables as JSON.

    GET /                       the page; GET /static/NAME its files
    GET /api/overview           the values above the tables, with the version of the reading
    GET /api/news?seen=V&table=NAME
                                the present version, when it is not V any more, or after NEWS_S; the
                                page shows the table NAME meanwhile
    GET /api/table/NAME         a window of a table (`windows.py`)
    GET /api/explain?subject=S  the state and the events of one subject (`explanation.py`)
    GET /api/past...            earlier states (`past.py`)

All requests of /api/ need the token. None of them changes anything. Extras add further routes
(`actions/routes.py`, `chaos_runs.py`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from typing import Protocol

from aiohttp import web

from quorate.cli.console.access.request_rules import (
    HEADERS,
    RequestRefused,
    check_sender,
    check_token,
)
from quorate.cli.console.actions.routes import MAX_BODY_BYTES
from quorate.cli.console.explanation import MAX_SUBJECT_CHARS, explanation
from quorate.cli.console.past import Past
from quorate.cli.console.slices import in_slices
from quorate.cli.console.watcher import Reading
from quorate.cli.console.windows import BadWindow, Window, window_of
from quorate.quorum.analytics.page.page_assets import STYLE

LOG = logging.getLogger(__name__)
MAX_VIEWERS = 32
"""The most pages that wait for news at the same time."""
NEWS_S = 20.0
"""The longest wait for news."""
FILES = {
    "main.js": "text/javascript",
    "actions.js": "text/javascript",
    "action_dialog.js": "text/javascript",
    "chaos.js": "text/javascript",
    "virtual_table.js": "text/javascript",
    "requests.js": "text/javascript",
    "details.js": "text/javascript",
    "leader_bar.js": "text/javascript",
    "time_travel.js": "text/javascript",
    "console.css": "text/css",
    "icon.svg": "image/svg+xml",
}
REPORT_STYLE = "report.css"
"""The style sheet of the report, which the console shares."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def asset(name: str) -> bytes:
    """Return the content of a file of the page."""
    return (resources.files("quorate.cli.console") / "static" / name).read_bytes()


class Extra(Protocol):
    """A part of the console that an option adds: its routes, and its script, one of FILES."""

    @property
    def script(self) -> str:
        """Return the name of the script that the page loads."""
        ...

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes. The server checks the sender and the token of their requests."""
        ...


class ConsoleServer:
    """The requests of the page, on one event loop.

    `current` returns the newest reading. `look` is called with the name of each table that a page
    shows."""

    def __init__(
        self,
        current: Callable[[], Reading],
        look: Callable[[str], None],
        listen_host: str,
        token: str,
        past: Past,
        extras: Sequence[Extra] = (),
    ) -> None:
        self._current = current
        self._look = look
        self._past = past
        self._extras = extras
        self._listen_host = listen_host
        self._token = token
        self._news = asyncio.Event()
        self.waiting = 0
        """The number of pages that wait for news."""

    def application(self) -> web.Application:
        """Return the application with its routes."""
        made = web.Application(middlewares=[self._checked], client_max_size=MAX_BODY_BYTES)
        made.router.add_get("/", self._page)
        made.router.add_get("/static/{name}", self._file)
        made.router.add_get("/api/overview", self._overview)
        made.router.add_get("/api/news", self._wait_for_news)
        made.router.add_get("/api/table/{name}", self._table)
        made.router.add_get("/api/explain", self._explain)
        self._past.add_routes(made.router)
        for extra in self._extras:
            extra.add_routes(made.router)
        return made

    def changed(self) -> None:
        """Wake the pages that wait. Call it on the event loop when there is a new version."""
        self._news.set()
        self._news = asyncio.Event()

    @web.middleware
    async def _checked(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            check_sender(request.headers, self._listen_host)
            if request.path.startswith("/api/"):
                check_token(request.headers, self._token)
            response = await handler(request)
        except RequestRefused as refused:
            response = web.Response(status=refused.status, text=str(refused))
        except BadWindow as bad:
            response = web.Response(status=400, text=str(bad))
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=error.reason)
        except Exception as defect:  # a viewer must see it, with the headers of every response
            LOG.exception("%s failed", request.path)
            response = web.Response(status=500, text=f"{request.path} failed: {defect!r}")
        response.headers.update(HEADERS)
        return response

    async def _page(self, request: web.Request) -> web.Response:
        tags = [
            f'<script type="module" src="/static/{each.script}"></script>' for each in self._extras
        ]
        page = asset("index.html").replace(b"</head>", "".join((*tags, "</head>")).encode(), 1)
        return web.Response(body=page, content_type="text/html", charset="utf-8")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name == REPORT_STYLE:
            return web.Response(text=STYLE, content_type="text/css")
        if name not in FILES:
            raise web.HTTPNotFound
        return web.Response(body=asset(name), content_type=FILES[name])

    async def _overview(self, request: web.Request) -> web.Response:
        reading = self._current()
        values = {**reading.tables.overview, "version": reading.version, "error": reading.error}
        return web.json_response(values)

    async def _wait_for_news(self, request: web.Request) -> web.Response:
        if self.waiting >= MAX_VIEWERS:
            raise RequestRefused(503, f"{MAX_VIEWERS} pages wait already; close one of them")
        self._look(request.query.get("table", ""))
        news = self._news
        if str(self._current().version) == request.query.get("seen"):
            self.waiting += 1
            try:
                async with asyncio.timeout(NEWS_S):
                    await news.wait()
            except TimeoutError:
                pass
            finally:
                self.waiting -= 1
        return web.json_response({"version": self._current().version})

    async def _table(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self._look(name)
        reading = self._current()
        table = reading.tables.tables.get(name)
        if table is None:
            raise web.HTTPNotFound
        window = await in_slices(window_of(table, Window.of(request.query)))
        return web.json_response({**window, "version": reading.version})

    async def _explain(self, request: web.Request) -> web.Response:
        subject = request.query.get("subject", "")
        if not subject or len(subject) > MAX_SUBJECT_CHARS:
            raise RequestRefused(400, f"subject: it must have 1 to {MAX_SUBJECT_CHARS} characters")
        for name in ("timeline", "changes"):
            self._look(name)
        return web.json_response(explanation(self._current().tables, subject))
