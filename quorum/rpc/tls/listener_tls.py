"""The TLS of one listener: its certificate, which may be replaced, and the counters and log lines
of its handshakes."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from quorate.config.key import DAY_MS, ConfigError
from quorate.config.listener_keys import prefixed
from quorate.config.listeners import SASL_PROTOCOLS, Listener
from quorate.config.node_config import NodeConfig
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.tls.handshake_errors import explained
from quorate.quorum.rpc.tls.handshakes import Handshakes
from quorate.quorum.rpc.tls.identity import identity_of
from quorate.quorum.rpc.tls.loaded import Loaded, check_replacement, load, signature_of
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.rpc.tls.tls_protocol import READ_BYTES, TlsProtocol
from quorate.quorum.seams import Address, Clock, PeerIdentity

logger = logging.getLogger("quorate.tls")
CLIENT_AUTH = "ssl.client.auth"
MAX_REASONS = 64
"""The maximum number of reasons with a counter. Further reasons count as `other`."""


class ListenerTls:
    """The TLS of one listener. The event loop owns it, and it implements `Tls` of
    `quorum/seams.py`.

    `completed` counts handshakes. `failures` counts those that failed, by reason. `reloads` and
    `failed_reloads` count the attempts to read changed stores."""

    def __init__(self, listener: str, settings: TlsSettings, clock: Clock) -> None:
        """Read the stores. Blocks. Raise ConfigError if they cannot be used."""
        self.listener = listener
        self.handshakes = Handshakes()
        self.buffer = bytearray(READ_BYTES)
        self.completed = 0
        self.failures: Counter[str] = Counter()
        self.reloads = 0
        self.failed_reloads = 0
        self._settings = settings
        self._clock = clock
        self._tried = signature_of(settings)
        self._loaded = load(settings)
        self._lines = LogLimit(clock)
        if self._loaded.not_after_ms <= clock.wall_ms():
            logger.error("the certificate of listener %s has expired", listener)

    def above(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        """Return the protocol of a new connection, which does TLS for `protocol`."""
        return TlsProtocol(self, protocol)

    @property
    def not_after_ms(self) -> int:
        """Return the end of validity of the certificate in use, in ms since 1970 UTC."""
        return self._loaded.not_after_ms

    async def reload(self, *, also_unchanged: bool = False) -> None:
        """Read the stores in another thread if a file has changed since the last attempt, or if
        `also_unchanged`. New connections use them.

        If they cannot be used, keep those in use, and write an error. Open connections remain. Only
        one call may run at a time."""
        wall_ms = self._clock.wall_ms()
        try:
            loaded = await asyncio.to_thread(self._changed, wall_ms, also_unchanged)
        except Exception as error:  # a file that no library expects must not stop the node
            self.failed_reloads += 1
            logger.error(
                "listener %s keeps its certificate, because the new one cannot be used: %s",
                self.listener,
                error,
            )
            return
        if loaded is not None:
            self._loaded = loaded
            self.reloads += 1
            logger.info(
                "listener %s uses the certificate of %r, which is valid for %d days",
                self.listener,
                loaded.subject,
                (loaded.not_after_ms - wall_ms) // DAY_MS,
            )

    def _changed(self, wall_ms: int, also_unchanged: bool) -> Loaded | None:
        """Return the stores if they must be read again, else None. Raise ConfigError if they
        cannot be used. Runs in another thread."""
        signature = signature_of(self._settings)
        if signature == self._tried and not also_unchanged:
            return None
        self._tried = signature
        loaded = load(self._settings)
        check_replacement(self._loaded, loaded, self._settings, wall_ms)
        return loaded

    # --- for its connections

    def new_session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Return the server's side of a new session."""
        return self._loaded.context.wrap_bio(incoming, outgoing, server_side=True)

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
                if config.listeners.protocol(each.name) in SASL_PROTOCOLS:
                    settings = replace(settings, client_auth=own_client_auth(config, each.name))
                found[each.name] = ListenerTls(each.name, settings, clock)
            except ConfigError as error:
                raise ConfigError(f"listener {each.name}: {error}") from None
    return found


def own_client_auth(config: NodeConfig, listener: str) -> str:
    """Return ssl.client.auth of a listener with SASL, which obeys only the key with its prefix
    (KIP-684): users of SASL need no certificate. Warn if the key without the prefix is set."""
    own = config.settings.get(prefixed(listener, CLIENT_AUTH))
    if own is not None:
        return str(own.value)
    if config[CLIENT_AUTH] != "none":
        logger.warning(
            "%s=%s does not apply to listener %s, whose clients use SASL. Set %s if they need "
            "certificates too",
            CLIENT_AUTH,
            config[CLIENT_AUTH],
            listener,
            prefixed(listener, CLIENT_AUTH),
        )
    return "none"
