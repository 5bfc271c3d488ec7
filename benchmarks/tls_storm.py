"""A process with many clients that connect over TLS simultaneously.

`python -m benchmarks.tls_storm HOST:PORT CA` prints the seconds until all handshakes are complete.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
import sys
import time

STORM = 1000
"""The number of clients."""


async def storm(address: str, ca: str) -> float:
    """Return the seconds until all clients have completed their handshakes. Raise OSError if one
    of them fails."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=ca)
    begin_s = time.monotonic()
    opened = await asyncio.gather(
        *(asyncio.open_connection(host, int(port), ssl=context) for _ in range(STORM))
    )
    took_s = time.monotonic() - begin_s
    for _, writer in opened:
        writer.transport.abort()
    return took_s


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * STORM), hard))
    print(asyncio.run(storm(sys.argv[1], sys.argv[2])))
