"""The connections of the console, of which there is a bounded number.

A connection needs no token, because its requests have not been read. Without a bound, another user
of the machine could take all file descriptors of the console, which then reaches no node any more.
The oldest connection is therefore closed for a new one. A page whose connection is closed opens
another one, and thus closes one that is idle."""

from __future__ import annotations

import asyncio

from aiohttp import web

MAX_CONNECTIONS = 256
"""The most connections. A browser opens six for a page at most."""


async def listening_on(
    server: web.Server, host: str, port: int, most: int = MAX_CONNECTIONS
) -> asyncio.Server:
    """Listen on the address, and let `server` serve the newest `most` connections. A few more may
    be open while many are opened at the same time. Raise OSError if the address cannot be used."""

    def accepted() -> asyncio.Protocol:
        kept = server.connections
        for old in kept[: max(0, len(kept) - most + 1)]:
            old.force_close()
        return server()

    return await asyncio.get_running_loop().create_server(accepted, host, port)
