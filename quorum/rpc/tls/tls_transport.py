"""The transport that a connection's protocol sees above TLS. It encrypts.

Plaintext is encrypted in pieces of at most PIECE_BYTES, when the socket takes the pieces before it.
A response of 50 MB therefore holds neither the event loop nor a second copy of itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol, cast

from quorate.quorum.rpc.frame_link import IDENTITY
from quorate.quorum.seams import Buffer, PeerIdentity

PIECE_BYTES = 256 * 1024
STEP_BYTES = 1024 * 1024
"""The plaintext that one call encrypts. The rest follows in the next iteration of the event
loop."""


class TlsPeer(Protocol):
    """The receiving half of the connection (`tls_protocol.py`)."""

    def get_plain(self) -> asyncio.BaseProtocol:
        """Return the protocol above TLS."""

    def set_plain(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol above TLS."""

    def pause(self) -> None:
        """Deliver nothing more until `resume`."""

    def resume(self) -> None:
        """Deliver again, from the next iteration of the event loop on."""


class TlsTransport(asyncio.Transport):
    """The sending half of one connection. The event loop owns it.

    `session` and its two buffers exist from the beginning of the handshake on. Invariant: nothing
    is encrypted before the handshake is complete (`secured`), and after `close` nothing is
    accepted."""

    def __init__(self, lower: asyncio.Transport, peer: TlsPeer) -> None:
        """Create the transport above `lower`, that of the socket."""
        super().__init__()
        self._lower = lower
        self._peer: TlsPeer | None = peer
        self._session: ssl.SSLObject | None = None
        self._outgoing: ssl.MemoryBIO
        self._backlog: deque[memoryview] = deque()
        self._backlog_bytes = 0
        self._lower_full = False
        self._plain_paused = False
        self._continues = False
        self._closing = False
        self._reading = True
        self._identity: PeerIdentity | None = None

    # --- for the receiving half

    def secured(
        self, session: ssl.SSLObject, outgoing: ssl.MemoryBIO, identity: PeerIdentity
    ) -> None:
        """Encrypt from now on. The handshake is complete, and the peer is `identity`."""
        self._session, self._outgoing, self._identity = session, outgoing, identity
        self._encrypt()

    def lower_paused(self, paused: bool) -> None:
        """Record that the socket takes nothing more, or takes more again."""
        self._lower_full = paused
        self._encrypt()
        self._report()

    def lost(self) -> None:
        """Discard everything. The connection is lost."""
        self._closing = True
        self._backlog.clear()
        self._backlog_bytes = 0
        self._session = self._peer = None

    # --- asyncio.Transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the identity of the peer, the SSLObject, or what the socket's transport says."""
        if name == IDENTITY:
            return default if self._identity is None else self._identity
        if name == "ssl_object":
            return self._session
        return self._lower.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Deliver to `protocol` from now on."""
        if self._peer is not None:
            self._peer.set_plain(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol above TLS."""
        assert self._peer is not None, "the connection is lost"
        return self._peer.get_plain()

    def is_closing(self) -> bool:
        """Return True after `close` or `abort`, or if the connection is lost."""
        return self._closing or self._lower.is_closing()

    def is_reading(self) -> bool:
        """Return True unless reading is paused or the transport is closing."""
        return self._reading and not self.is_closing()

    def pause_reading(self) -> None:
        """Deliver nothing more until `resume_reading`."""
        if self._reading and self._peer is not None:
            self._reading = False
            self._peer.pause()

    def resume_reading(self) -> None:
        """Deliver again."""
        if not self._reading and self._peer is not None:
            self._reading = True
            self._peer.resume()

    def get_write_buffer_size(self) -> int:
        """Return the bytes that wait for encryption or for the socket."""
        return self._backlog_bytes + self._lower.get_write_buffer_size()

    def write(self, data: Buffer) -> None:
        """Encrypt and send `data`. The caller must not change it while it is pending."""
        if self._closing or not data:
            return
        self._backlog.append(memoryview(data).cast("B"))
        self._backlog_bytes += len(data)
        self._encrypt()
        self._report()

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        """Write each of `list_of_data`."""
        for data in list_of_data:
            self.write(data)

    def can_write_eof(self) -> bool:
        """Return False: TLS ends both directions together here."""
        return False

    def close(self) -> None:
        """Send what is pending and the end of TLS, then close. Without a complete handshake, close
        immediately."""
        if self._closing:
            return
        self._closing = True
        if self._session is None:
            self._lower.close()
        elif not self._backlog:
            self._end()

    def abort(self) -> None:
        """Close immediately. Pending bytes are lost."""
        self._closing = True
        self._lower.abort()

    # --- encryption

    def _encrypt(self) -> None:
        """Encrypt pending bytes while the socket takes them, at most STEP_BYTES."""
        session, room = self._session, STEP_BYTES
        if session is None or self._continues:
            return
        while self._backlog and not self._lower_full and not self._lower.is_closing():
            if room <= 0:
                self._continues = True
                asyncio.get_running_loop().call_soon(self._continue)
                return
            whole = self._backlog[0]
            try:
                taken = session.write(cast(bytes, whole[:PIECE_BYTES]))
            except ssl.SSLError:  # the peer has broken the session
                self.abort()
                return
            room -= taken
            self._backlog_bytes -= taken
            if taken == len(whole):
                self._backlog.popleft()
            else:
                self._backlog[0] = whole[taken:]
            self._lower.write(self._outgoing.read())  # may set _lower_full
        if self._closing and not self._backlog:
            self._end()

    def _continue(self) -> None:
        self._continues = False
        self._encrypt()
        self._report()

    def _end(self) -> None:
        """Send the end of TLS (close_notify) and close the socket. Do not wait for the peer's."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(ssl.SSLError):  # the peer's end has not arrived, or the session is broken
                session.unwrap()
            self._lower.write(self._outgoing.read())
        self._lower.close()

    def _report(self) -> None:
        """Ask the protocol to pause writing while the socket is full or plaintext waits."""
        full = self._lower_full or bool(self._backlog)
        if self._peer is not None and full != self._plain_paused:
            self._plain_paused = full
            plain = cast(asyncio.Protocol, self._peer.get_plain())
            if full:
                plain.pause_writing()
            else:
                plain.resume_writing()
