"""One connection of a TLS port: its handshake, and the decryption of what it receives.

The socket's transport calls this protocol. It passes plaintext to another protocol, which sees a
`TlsTransport` and exists from accept on.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol, cast

from quorate.quorum.rpc.tls.handshake_errors import (
    CLOSED,
    NOT_TLS,
    REFUSED_IDENTITY,
    TIMED_OUT,
    UNEXPECTED,
    reason_of,
)
from quorate.quorum.rpc.tls.handshakes import Handshakes
from quorate.quorum.rpc.tls.identity import IdentityRefused
from quorate.quorum.rpc.tls.tls_transport import TlsTransport
from quorate.quorum.rpc.transport import HANDSHAKE_RECORD
from quorate.quorum.seams import Address, PeerIdentity

HANDSHAKE_TIMEOUT_S = 10.0
"""The time from accept until the handshake is complete."""
READ_BYTES = 256 * 1024
MAX_RECORDS = 500
"""TLS records that are decrypted before the event loop runs again. A record may hold a single byte,
and takes a microsecond all the same."""
MAX_ANSWER_BYTES = 16 * 1024
"""The bytes that OpenSSL itself may answer on one connection after the handshake. A client of TLS
1.2 that asks for a renegotiation gets an alert of 31 bytes each time."""


class TlsSide(Protocol):
    """The TLS of a listener, as its connections use it."""

    handshakes: Handshakes
    buffer: bytearray
    """READ_BYTES for the plaintext of one delivery, shared by all connections of the listener."""

    def new_session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Return the server's side of a new session."""

    def identity_of(self, session: ssl.SSLObject) -> PeerIdentity:
        """Return the identity in the peer's certificate. Raise IdentityRefused if it has none that
        this listener accepts."""

    def succeeded(self) -> None:
        """Count a complete handshake."""

    def failed(self, peer: Address, reason: str, error: Exception | None) -> None:
        """Count and log a failed handshake."""


class TlsProtocol(asyncio.Protocol):
    """The receiving half of one connection. The event loop owns it.

    A protocol above TLS may have a method `identified(identity)`. It is called when the handshake
    is complete, before the first plaintext. Invariant: the socket is not read while a step of the
    handshake is due, while the protocol above has paused reading, or while this protocol rests."""

    def __init__(self, side: TlsSide, plain: asyncio.Protocol) -> None:
        """Create the protocol of a new connection, with `plain` above TLS."""
        self._side = side
        self._plain: asyncio.Protocol | None = plain
        self._lower: asyncio.Transport
        self._upper: TlsTransport
        self._session: ssl.SSLObject | None = None
        self._incoming: ssl.MemoryBIO
        self._outgoing: ssl.MemoryBIO
        self._timer: asyncio.TimerHandle | None = None
        self._secured = False
        self._stepping = False  # a step of the handshake is due
        self._paused = False  # by the protocol above
        self._resting = False  # until the next iteration of the event loop
        self._ended = False  # the peer sends nothing more
        self._half_open = False  # and the protocol above still sends
        self._answered_bytes = 0  # by OpenSSL itself, after the handshake

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass the connection on, and start the timeout of the handshake."""
        assert self._plain is not None
        self._lower = cast(asyncio.Transport, transport)  # uvloop's transports are no subclass
        self._upper = TlsTransport(self._lower, self)
        self._timer = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT_S, self._timed_out)
        self._plain.connection_made(self._upper)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the end to the protocol above. Break the cycles of objects, as in `FrameLink`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if self._session is not None and not self._ended:
                self._report_failure(CLOSED, None)
        self._upper.lost()
        plain, self._plain, self._session = self._plain, None, None
        if plain is not None:
            plain.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Continue the handshake, or decrypt."""
        if self._secured:
            self._incoming.write(data)
            self._decrypt()
        elif self._timer is not None:
            if self._session is None:
                if data[0] != HANDSHAKE_RECORD:
                    self._fail(NOT_TLS, None)
                    return
                self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                self._session = self._side.new_session(self._incoming, self._outgoing)
            self._incoming.write(data)
            self._lower.pause_reading()
            self._stepping = True
            self._side.handshakes.add(self._step)

    def eof_received(self) -> bool | None:
        """Handle the end of the peer's bytes without an end of TLS. Kafka's frames have sizes, so
        that a missing end of TLS cannot cut one unnoticed."""
        return (self._peer_ended() or self._half_open) if self._secured else None

    def pause_writing(self) -> None:
        """Stop encrypting until the socket takes more."""
        self._upper.lower_paused(True)

    def resume_writing(self) -> None:
        """Encrypt again."""
        self._upper.lower_paused(False)

    # --- TlsPeer

    def get_plain(self) -> asyncio.BaseProtocol:
        """Return the protocol above TLS."""
        assert self._plain is not None, "the connection is lost"
        return self._plain

    def set_plain(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol above TLS."""
        self._plain = cast(asyncio.Protocol, protocol)

    def pause(self) -> None:
        """Do not read the socket, and deliver nothing."""
        self._paused = True
        if not self._stepping:
            self._lower.pause_reading()

    def resume(self) -> None:
        """Read the socket again, and deliver what is decrypted already."""
        self._paused = False
        if not self._stepping and not self._resting and not self._lower.is_closing():
            self._lower.resume_reading()
            if self._secured:
                asyncio.get_running_loop().call_soon(self._decrypt)

    # --- the handshake

    def _step(self) -> None:
        """Continue the handshake with the bytes that have arrived."""
        self._stepping = False
        session = self._session
        if session is None or self._timer is None or self._lower.is_closing():
            return
        try:
            session.do_handshake()
            identity = self._side.identity_of(session)
        except ssl.SSLWantReadError:
            self._lower.write(self._outgoing.read())
        except ssl.SSLError as error:
            self._lower.write(self._outgoing.read())  # the alert
            self._fail(reason_of(error), error)
            return
        except IdentityRefused as error:
            self._fail(REFUSED_IDENTITY, error)
            return
        except Exception as error:  # what a client sends must not stop the node
            self._fail(UNEXPECTED, error)
            return
        else:
            self._timer.cancel()
            self._timer = None
            self._secure(session, identity)
        if not (self._paused or self._resting or self._lower.is_closing()):
            self._lower.resume_reading()

    def _secure(self, session: ssl.SSLObject, identity: PeerIdentity) -> None:
        self._lower.write(self._outgoing.read())
        self._side.succeeded()
        self._secured = True
        self._upper.secured(session, self._outgoing, identity)
        identified = getattr(self._plain, "identified", None)
        if identified is not None:
            identified(identity)
        self._decrypt()  # requests may have followed the handshake in the same packet

    def _timed_out(self) -> None:
        self._fail(TIMED_OUT, None)

    def _fail(self, reason: str, error: Exception | None) -> None:
        """Report the failure and close the connection. An alert that is written is still sent."""
        self._report_failure(reason, error)
        if reason in (TIMED_OUT, NOT_TLS):
            self._lower.abort()
        else:
            self._lower.close()

    def _report_failure(self, reason: str, error: Exception | None) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        name = self._lower.get_extra_info("peername") or ("", 0)
        self._side.failed(Address(name[0], name[1]), reason, error)

    # --- decryption

    def _decrypt(self) -> None:
        """Deliver all plaintext that has arrived, unless the protocol above pauses reading."""
        buffer = self._side.buffer
        while not (self._paused or self._resting or self._ended or self._upper.is_closing()):
            session, plain = self._session, self._plain
            if session is None or plain is None:
                return
            size, over, more = _read(session, buffer)
            if self._outgoing.pending and not self._send_answers():
                return
            if size:
                plain.data_received(bytes(memoryview(buffer)[:size]))
            if over is True and not self._peer_ended():
                self._upper.close()
            elif over is None:
                self._upper.abort()
            if more:
                self._rest()
            elif size < len(buffer):
                return

    def _rest(self) -> None:
        """Decrypt the rest in the next iteration of the event loop."""
        if not self._upper.is_closing():
            self._resting = True
            self._lower.pause_reading()
            asyncio.get_running_loop().call_soon(self._rested)

    def _rested(self) -> None:
        self._resting = False
        if not self._paused and not self._lower.is_closing():
            self._lower.resume_reading()
            self._decrypt()

    def _send_answers(self) -> bool:
        """Send the answers that OpenSSL has made while it decrypted. If there were too many on this
        connection, close it and return False. Otherwise they would fill the memory."""
        answers = self._outgoing.read()
        self._answered_bytes += len(answers)
        if self._answered_bytes > MAX_ANSWER_BYTES:
            self._upper.abort()
            return False
        self._lower.write(answers)
        return True

    def _peer_ended(self) -> bool:
        """Tell the protocol above once that the peer sends nothing more. Return True if it wants to
        go on sending."""
        if self._ended or self._plain is None:
            return False
        self._ended = True
        self._half_open = bool(self._plain.eof_received())
        return self._half_open


def _read(session: ssl.SSLObject, buffer: bytearray) -> tuple[int, bool | None, bool]:
    """Decrypt into `buffer` until it is full, all records that have arrived are read, or
    MAX_RECORDS are.

    Return the number of bytes; True if the peer has ended TLS, False if more may follow, None if
    the peer has violated the protocol; and True if MAX_RECORDS ended the call."""
    view, size = memoryview(buffer), 0
    for _ in range(MAX_RECORDS):
        try:
            count = cast(int, session.read(len(buffer) - size, cast(bytearray, view[size:])))
        except ssl.SSLWantReadError:
            return size, False, False
        except ssl.SSLZeroReturnError:
            return size, True, False
        except ssl.SSLError:
            return size, None, False
        if not count:
            return size, True, False
        size += count
        if size == len(buffer):
            return size, False, False
    return size, False, True
