"""The TLS of one listener: its context, the counters of its handshakes, and their log lines."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Iterable
from functools import partial

from quorate.config.key import ConfigError
from quorate.config.listeners import Listener
from quorate.config.node_config import NodeConfig
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.tls.context import server_context
from quorate.quorum.rpc.tls.handshake_errors import explained
from quorate.quorum.rpc.tls.handshakes import Handshakes
from quorate.quorum.rpc.tls.identity import identity_of
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.rpc.tls.tls_protocol import READ_BYTES, TlsProtocol
from quorate.quorum.seams import Address, Clock, PeerIdentity

logger = logging.getLogger("quorate.tls")
MAX_REASONS = 64
"""The maximum number of reasons with a counter. Further reasons count as `other`."""


class ListenerTls:
    """The TLS of one listener. The event loop owns it, and it implements `Tls` of
    `quorum/seams.py`.

    `completed` counts handshakes. `failures` counts those that failed, by reason."""

    def __init__(self, listener: str, settings: TlsSettings, clock: Clock) -> None:
        """Read the stores. Blocks. Raise ConfigError if they cannot be used."""
        self.listener = listener
        self.handshakes = Handshakes()
        self.buffer = bytearray(READ_BYTES)
        self.completed = 0
        self.failures: Counter[str] = Counter()
        self._settings = settings
        self._context = server_context(settings)
        self._lines = LogLimit(clock)

    def above(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Return the protocol of a new connection, which does TLS for `protocol`."""
        return TlsProtocol(self, protocol)

    # --- for its connections

    def new_session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Return the server's side of a new session."""
        return self._context.wrap_bio(incoming, outgoing, server_side=True)

    def identity_of(self, session: ssl.SSLObject) -> PeerIdentity:
        """Return the identity in the peer's certificate, by the mapping rules of this listener."""
        return identity_of(session, self._settings.rules)

    def succeeded(self) -> None:
        """Count a complete handshake."""
        self.completed += 1

    def failed(self, peer: Address, reason: str, error: Exception | None) -> None:
        """Count a failed handshake, and write a line. The lines of one reason are limited."""
        known = reason in self.failures or len(self.failures) < MAX_REASONS
        self.failures[reason if known else "other"] += 1
        left_out = self._lines.passes(reason)
        if left_out is not None:
            logger.warning(
                "the TLS handshake of %s with listener %s failed: %s%s",
                peer,
                self.listener,
                explained(reason, error),
                left_out,
            )


def tls_listeners(
    config: NodeConfig, listeners: Iterable[Listener], clock: Clock
) -> dict[str, ListenerTls]:
    """Return the TLS of each of `listeners` that has TLS, by the listener's name.

    Blocks. Raise ConfigError, with the name of the listener, if its settings cannot be used."""
    found = {}
    for each in listeners:
        if each.name in config.listeners.with_tls:
            try:
                settings = TlsSettings.of(partial(config.of_listener, each.name))
                found[each.name] = ListenerTls(each.name, settings, clock)
            except ConfigError as error:
                raise ConfigError(f"listener {each.name}: {error}") from None
    return found
