"""A Transport whose connections begin with a TLS handshake: that of a node or a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.quorum.seams import (
    ANONYMOUS_PEER,
    Accept,
    Address,
    DialTls,
    Link,
    Listener,
    PeerIdentity,
    Tls,
    Transport,
    Wire,
)

if TYPE_CHECKING:
    import asyncio
    import ssl


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The TLS of a client. Implements `DialTls` of `quorum/seams.py`."""

    dial_context: ssl.SSLContext

    def dialed_identity(self, transport: asyncio.BaseTransport) -> PeerIdentity:
        """Return no identity, because only the host name of a server counts for a client."""
        return ANONYMOUS_PEER


class DialingTransport:
    """Listens as the inner transport does, and connects with `dial`."""

    def __init__(self, inner: Transport, dial: DialTls) -> None:
        self._inner = inner
        self._dial = dial

    async def listen(
        self,
        address: Address,
        accept: Mapping[Wire, Accept],
        *,
        max_frame_bytes: int,
        tls: Tls | None = None,
    ) -> Listener:
        """Listen on the inner transport."""
        return await self._inner.listen(address, accept, max_frame_bytes=max_frame_bytes, tls=tls)

    async def connect(
        self,
        address: Address,
        wire: Wire,
        accept: Accept,
        *,
        max_frame_bytes: int,
        timeout_ms: int,
        tls: DialTls | None = None,
    ) -> Link:
        """Connect on the inner transport, with `tls` or else with the TLS of this node."""
        return await self._inner.connect(
            address,
            wire,
            accept,
            max_frame_bytes=max_frame_bytes,
            timeout_ms=timeout_ms,
            tls=tls or self._dial,
        )
