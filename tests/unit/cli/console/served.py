"""A console on a free port, whose reading a test can replace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from quorate.cli.console.past import Past
from quorate.cli.console.server import ConsoleServer, Extra
from quorate.cli.console.watcher import Reading

TOKEN = "secret"


class Served:
    """A console on a free port, whose reading a test can replace."""

    def __init__(self, found: Reading, extras: Sequence[Extra], past: Path | None) -> None:
        self.reading = found
        self.looked_at: list[str] = []
        self.past = Past(past)
        self.server = ConsoleServer(
            lambda: self.reading, self.looked_at.append, "127.0.0.1", TOKEN, self.past, extras
        )
        self.url = ""


@asynccontextmanager
async def served(found: Reading, *extras: Extra, past: Path | None = None) -> AsyncIterator[Served]:
    console = Served(found, extras, past)
    runner = web.AppRunner(console.server.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        console.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield console
    finally:
        await runner.cleanup()
