"""The SASL of one client listener, as its configuration and the metadata image demand."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from quorate.broker.kafka.services import Services
from quorate.config.listeners import SASL_PLAINTEXT, is_loopback
from quorate.config.node_config import NodeConfig
from quorate.config.oauthbearer_keys import OAUTHBEARER
from quorate.config.sasl_keys import FAILURE_DELAY, PLAIN
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.rpc.kafka.sasl_connection import SaslConnection
from quorate.quorum.rpc.kafka.sasl_gate import SaslGate, SaslSettings
from quorate.quorum.rpc.kafka.server import KafkaServer
from quorate.quorum.sasl.mechanisms import Mechanisms
from quorate.quorum.seams import Clock

if TYPE_CHECKING:
    from quorate.broker.kafka.token_listener import TokenListener

SENT_IN_CLEAR = {PLAIN: "passwords", OAUTHBEARER: "tokens"}
"""The secrets that clients send, by mechanism."""

logger = logging.getLogger("quorate.kafka")


def require_authentication(server: KafkaServer, services: Services, listener: str) -> None:
    """Let each connection of `server` authenticate, if the listener has SASL."""
    settings = services.config.sasl.get(listener)
    if settings is None:
        return
    mechanisms = Mechanisms(
        settings.mechanisms,
        plain_users=settings.plain_users,
        credentials=lambda: services.image().scram_credentials,
        unknown_users=services.unknown_users,
        random=services.random,
        verify=services.verify.get(listener),
    )
    gate = SaslGate(
        mechanisms,
        SaslSettings(
            max_receive_bytes=settings.max_receive_bytes,
            failure_delay_ms=services.config[FAILURE_DELAY.name],
            max_reauth_ms=settings.max_reauth_ms,
        ),
        services.clock,
        listener,
    )
    server.new_connection = partial(SaslConnection, gate)
    services.gates.append(gate)
    warn_of_clear_passwords(services, listener)


def close_without_credential(gates: Iterable[SaslGate], delta: ImageDelta) -> None:
    """Close the connections whose SCRAM credential the delta removes."""
    removed = [key for key, change in delta.scram_credentials.items() if change.new is None]
    if removed:
        for gate in gates:
            gate.credentials_removed(removed)


def token_listeners(config: NodeConfig, clock: Clock) -> dict[str, TokenListener]:
    """Return the tokens of each listener with OAUTHBEARER. Blocks. Raise ConfigError if the keys
    of a token provider cannot be used."""
    of = {name: each.oauthbearer for name, each in config.sasl.items() if each.oauthbearer}
    if not of:
        return {}
    # PyJWT and aiohttp are imported only by brokers that have such a listener.
    from quorate.broker.kafka.token_listener import TokenListener

    return {name: TokenListener(name, settings, clock) for name, settings in of.items()}


def warn_of_clear_passwords(services: Services, listener: str) -> None:
    """Log a WARN line if clients send passwords or tokens through the network without
    encryption."""
    listeners = services.config.listeners
    (bound,) = (each for each in listeners.client if each.name == listener)
    if listeners.protocol(listener) != SASL_PLAINTEXT or is_loopback(bound.host):
        return
    for mechanism, sent in SENT_IN_CLEAR.items():
        if mechanism in services.config.sasl[listener].mechanisms:
            logger.warning(
                "clients of listener %s send their %s without encryption: it has the mechanism %s "
                "and no TLS. Use SCRAM or TLS, or bind the listener to a loopback address.",
                listener,
                sent,
                mechanism,
            )
