"""One read of a key set, from an https endpoint or a file.

The endpoint has FETCH_TIMEOUT_S for its whole answer. Redirections are not followed, because they
could lead to an address without TLS.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

import aiohttp

from quorate.quorum.sasl.key_set import MAX_JWKS_BYTES

FETCH_TIMEOUT_S = 10.0
OK = 200
HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
"""Without an encoding, the size of the text is that of the answer."""


class SourceFailed(Exception):
    """The key set could not be read."""


class Source(Protocol):
    """A place that has the key set."""

    async def read(self) -> bytes:
        """Return the key set, with at most one byte more than MAX_JWKS_BYTES. Raise
        SourceFailed."""


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file with the key set."""

    path: str

    def read_now(self) -> bytes:
        """Do the same as `read`. Blocks."""
        try:
            with Path(self.path).open("rb") as file:
                return file.read(MAX_JWKS_BYTES + 1)
        except (OSError, ValueError) as error:
            raise SourceFailed(str(error)) from None

    async def read(self) -> bytes:
        """Read the file in another thread."""
        return await asyncio.to_thread(self.read_now)


@dataclass(frozen=True, slots=True)
class KeyEndpoint:
    """An https endpoint that answers with the key set. `context` verifies its certificate."""

    url: str
    context: ssl.SSLContext

    async def read(self) -> bytes:
        """Ask the endpoint over a new connection."""
        timeout = aiohttp.ClientTimeout(total=FETCH_TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
                session.get(
                    self.url, ssl=self.context, headers=HEADERS, allow_redirects=False
                ) as answer,
            ):
                if answer.status != OK:
                    raise SourceFailed(f"the endpoint answers with status {answer.status}")
                return await first_bytes(answer.content, MAX_JWKS_BYTES + 1)
        except TimeoutError:
            raise SourceFailed(f"no whole answer within {FETCH_TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SourceFailed(f"{type(error).__name__}: {error}") from None


async def first_bytes(stream: aiohttp.StreamReader, max_bytes: int) -> bytes:
    """Return the bytes of `stream`, at most `max_bytes`."""
    found = b""
    while len(found) < max_bytes:
        more = await stream.read(max_bytes - len(found))
        if not more:
            break
        found += more
    return found


def source_of(url: str, context: ssl.SSLContext) -> KeyFile | KeyEndpoint:
    """Return the source at a URL that `config/oauthbearer_keys.py` accepts."""
    parts = urlsplit(url)
    return KeyFile(unquote(parts.path)) if parts.scheme == "file" else KeyEndpoint(url, context)
