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
from quorate.config.node_tls import demands_tls
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.node_identity import named_nodes
from quorate.quorum.rpc.tls.handshake_errors import REFUSED_IDENTITY, explained
from quorate.quorum.rpc.tls.handshakes import Handshakes
from quorate.quorum.rpc.tls.identity import IdentityRefused, identity_of
from quorate.quorum.rpc.tls.loaded import (
    Loaded,
    check_replacement,
    check_restart,
    load,
    signature_of,
)
from quorate.quorum.rpc.tls.settings import TlsSettings
from quorate.quorum.rpc.tls.tls_protocol import READ_BYTES, TlsProtocol
from quorate.quorum.seams import ANONYMOUS_PEER, Address, Clock, PeerIdentity

logger = logging.getLogger("quorate.tls")
CLIENT_AUTH = "ssl.client.auth"
MAX_REASONS = 64
"""The maximum number of reasons with a counter. Further reasons count as `other`."""


class ListenerTls:
    """The TLS of one listener. The event loop owns it. It implements `Tls` of `quorum/seams.py`,
    and `DialTls` if the listener is one for nodes.

    `completed` counts handshakes. `failures` counts those that failed, by reason. `reloads` and
    `failed_reloads` count the attempts to read changed stores."""

    def __init__(
        self,
        listener: str,
        settings: TlsSettings,
        clock: Clock,
        *,
        for_nodes: bool = False,
        optional: bool = False,
    ) -> None:
        """Read the stores. Blocks. Raise ConfigError if they cannot be used."""
        self.listener = listener
        self.optional = optional
        self._for_nodes = for_nodes
        self.handshakes = Handshakes()
        self.buffer = bytearray(READ_BYTES)
        self.completed = 0
        self.failures: Counter[str] = Counter()
        self.reloads = 0
        self.failed_reloads = 0
        self._settings = self._of_file = settings
        self._clock = clock
        self._tried = settings, signature_of(settings)
        self._loaded = load(settings, for_nodes=for_nodes)
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

    @property
    def uris(self) -> tuple[str, ...]:
        """Return the URIs in the certificate in use."""
        return self._loaded.uris

    @property
    def dial_context(self) -> ssl.SSLContext:
        """Return the context of a new connection to another node."""
        assert self._loaded.dial_context is not None, f"{self.listener} is no listener for nodes"
        return self._loaded.dial_context

    def configure(self, settings: TlsSettings) -> None:
        """Use `settings` from the next `reload` on."""
        self._settings = settings

    @property
    def settled(self) -> bool:
        """Return True if `reload` has tried the settings of the last `configure`."""
        return self._tried[0] == self._settings

    def check(self, settings: TlsSettings) -> None:
        """Raise ConfigError if `reload` would refuse `settings`, or if the node could not connect
        to the others after a restart. Blocks. Change nothing."""
        wall_ms = self._clock.wall_ms()
        loaded = self._usable(settings, wall_ms)
        if self._for_nodes and settings != self._of_file:
            check_restart(load(self._of_file, for_nodes=True), loaded, wall_ms)

    async def reload(self, *, also_unchanged: bool = False) -> None:
        """Read the stores in another thread if the settings or a file have changed since the last
        attempt, or if `also_unchanged`. New connections use them.

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
        settings = self._settings
        tried = settings, signature_of(settings)
        if tried == self._tried and not also_unchanged:
            return None
        self._tried = tried
        return self._usable(settings, wall_ms)

    def _usable(self, settings: TlsSettings, wall_ms: int) -> Loaded:
        """Return the stores of `settings`. Raise ConfigError if they must not replace those in
        use. Blocks."""
        loaded = load(settings, for_nodes=self._for_nodes)
        check_replacement(self._loaded, loaded, settings, wall_ms)
        if self._for_nodes and named_nodes(loaded.uris) != named_nodes(self._loaded.uris):
            raise ConfigError("it names another node, so that no node would believe this one")
        return loaded

    # --- for its connections

    def new_session(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Return the server's side of a new session."""
        return self._loaded.context.wrap_bio(incoming, outgoing, server_side=True)

    def identity_of(self, session: ssl.SSLObject) -> PeerIdentity:
        """Return the identity in the peer's certificate, by the mapping rules of this listener."""
        return identity_of(session, self._settings.rules)

    def dialed_identity(self, transport: asyncio.BaseTransport) -> PeerIdentity:
        """Return the identity that the peer of a connection that this node opened has proved. A
        certificate that cannot be read, or whose subject no mapping rule accepts, proves nothing,
        and makes a line."""
        try:
            return self.identity_of(transport.get_extra_info("ssl_object"))
        except IdentityRefused as error:
            left_out = self._lines.passes(REFUSED_IDENTITY)
            if left_out is not None:
                peer = transport.get_extra_info("peername")
                logger.warning("cannot identify the node at %s: %s%s", peer, error, left_out)
            return ANONYMOUS_PEER

    def succeeded(self) -> None:
        """Count a complete handshake."""
        self.completed += 1

    def failed(self, peer: Address, reason: str, error: Exception | None) -> None:
        """Count a failed handshake, and write a line. The lines of one reason are limited, those
        about refused certificates by OpenSSL's text."""
        known = reason in self.failures or len(self.failures) < MAX_REASONS
        self.failures[reason if known else "other"] += 1
        left_out = self._lines.passes((reason, getattr(error, "verify_message", "")))
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
            for_nodes = each.name in config.node_listeners
            try:
                found[each.name] = ListenerTls(
                    each.name,
                    listener_settings(config, each.name, for_nodes=for_nodes),
                    clock,
                    for_nodes=for_nodes,
                    optional=for_nodes and not demands_tls(config),
                )
            except ConfigError as error:
                raise ConfigError(f"listener {each.name}: {error}") from None
    return found


def listener_settings(config: NodeConfig, listener: str, *, for_nodes: bool) -> TlsSettings:
    """Return the settings of a listener. Raise ConfigError if they are malformed."""
    settings = TlsSettings.of(partial(config.of_listener, listener))
    if config.listeners.protocol(listener) in SASL_PROTOCOLS:
        return replace(settings, client_auth=own_client_auth(config, listener))
    if for_nodes and settings.client_auth == "none":  # nodes show certificates, and others may
        return replace(settings, client_auth="requested")
    return settings


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
