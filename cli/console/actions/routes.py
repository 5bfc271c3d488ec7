"""The requests of the page about actions, one action at a time.

    GET  /api/actions           the table of actions as JSON
    POST /api/actions/NAME      take an action; the body has its fields, as a JSON object of texts

The responses are {"done": SENTENCE}, or the reason as text with one of the statuses of
`Actions.take`. Each action that is taken writes one line of log, whatever its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime

import click
from aiohttp import web

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import NotReachable
from quorate.cli.console.access.request_rules import RequestRefused, check_change
from quorate.cli.console.actions.fields import Values, texts_in, values_of
from quorate.cli.console.actions.table import ACTIONS, Action

MAX_BODY_BYTES = 4096
"""The most bytes of the body of an action."""
DONE, REFUSED, DEFECT, UNKNOWN = 200, 409, 500, 504
"""The HTTP statuses of an action that was sent to the cluster."""


class Actions:
    """The actions of the pages, on the event loop of the console's server.

    `settings` returns the present settings of clients, and may be called by any thread. `log`
    writes a line, in any thread."""

    script = "actions.js"

    def __init__(self, settings: Callable[[], AdminSettings], log: Callable[[str], None]) -> None:
        self._settings = settings
        self._log = log
        self._busy = False

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the routes. The server has checked the sender and the token of a request."""
        router.add_get("/api/actions", self._table)
        router.add_post("/api/actions/{name}", self.take)

    async def _table(self, request: web.Request) -> web.Response:
        return web.json_response([each.as_json() for each in ACTIONS.values()])

    async def take(self, request: web.Request) -> web.Response:
        """Take an action, and respond with its result when the cluster has answered.

        The status is DONE, REFUSED by the cluster, UNKNOWN outcome, or DEFECT of this program.
        Raise RequestRefused if the request is not acceptable, or with status 429 if the console
        waits for another action."""
        check_change(request.headers)
        action = ACTIONS.get(request.match_info["name"])
        if action is None:
            raise web.HTTPNotFound
        values = values_of(action.fields, texts_in(await request.read()))
        if self._busy:
            raise RequestRefused(429, "another action is in progress: wait for its end")
        self._busy = True
        try:
            status, text = await asyncio.to_thread(
                self._carried_out, action, values, str(request.remote)
            )
        finally:
            self._busy = False
        if status == DONE:
            return web.json_response({"done": text})
        return web.Response(status=status, text=text)

    def _carried_out(self, action: Action, values: Values, remote: str) -> tuple[int, str]:
        """Send the request of the action, and write the line of log. Runs in a thread of its own.

        Return the HTTP status and the sentence about the result."""
        settings = self._settings()
        admin = Admin(settings)
        try:
            status, text = DONE, action.run(admin, values)
        except NotReachable as error:
            status, text = UNKNOWN, f"{error.format_message()}. Look at the cluster first."
        except click.ClickException as error:
            status, text = REFUSED, error.format_message()
        except Exception as error:  # a defect must be in the log, and must not end the console
            status, text = DEFECT, f"the action failed: {error!r}"
        finally:
            admin.close()
        self._log(log_line(datetime.now(UTC), action, values, user_of(settings), remote, text))
        return status, text


def log_line(
    now: datetime, action: Action, values: Values, user: str, remote: str, result: str
) -> str:
    """Return the line of log of an action: the time, the action, its author and its result."""
    result = " ".join(result.split())
    about = json.dumps(dict(values))
    return f"{now:%Y-%m-%dT%H:%M:%SZ} {action.name} {about} by {user} from {remote}: {result}"


def user_of(settings: AdminSettings) -> str:
    """Return the user as whom the console connects to the cluster."""
    if settings.security.login is not None:
        return settings.security.login.title
    return "User:ANONYMOUS" if settings.security.tls is None else "the user of the TLS settings"
