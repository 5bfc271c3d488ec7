"""The chaos run on the page: the progress that `quorate chaos run` writes into a file.

    GET /api/chaos              the progress as JSON, {} without a file, or {"error": REASON}

The run may be on this machine only, because the console reads its file. The page asks again every
two seconds."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from quorate.cli.chaos.results.progress import progress_of

MAX_FILE_BYTES = 256 << 10
"""The most bytes of the file. A run writes less."""


class ChaosRuns:
    """The progress of the runs that write into one file."""

    script = "chaos.js"

    def __init__(self, path: Path) -> None:
        self._path = path

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the route. The server has checked the sender and the token of a request."""
        router.add_get("/api/chaos", self._progress)

    async def _progress(self, request: web.Request) -> web.Response:
        now_ms = time.time_ns() // 1_000_000
        return web.json_response(await asyncio.to_thread(progress_in, self._path, now_ms))


def progress_in(path: Path, now_ms: int) -> dict[str, Any]:
    """Return the progress in the file at the wall time `now_ms`, or {} if there is no file.

    Return {"error": REASON} if the file cannot be read, or holds something else. The call blocks
    for the disk only."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ValueError(f"it has more than {MAX_FILE_BYTES} bytes")
        return progress_of(content.decode()).now(now_ms)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # a UnicodeDecodeError is a ValueError
        return {"error": f"{path}: {error}"}


def without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a pipe, which another user may have put there.
    An opener for `open`."""
    return os.open(path, flags | os.O_NONBLOCK)
