"""The log lines of an open port."""

from __future__ import annotations

import logging
from ipaddress import ip_address

from quorate.config.listeners import Listener, Listeners
from quorate.quorum.seams import Address

logger = logging.getLogger("quorate.node")


def log_listening(listener: Listener, bound: Address, serves: str) -> None:
    """Write the address to which `listener` is bound. `serves` names the peers."""
    chosen = "" if listener.port else CHOSEN
    logger.info(
        "listening on %s://%s for %s%s",
        listener.name,
        bound,
        serves,
        chosen,
        extra={"event": "listening"},
    )


def warn_if_exposed(listener: Listener, listeners: Listeners) -> None:
    """Write a warning if clients need TLS, and the port of nodes can be reached without it from
    other machines."""
    if listeners.with_tls and listener.name not in listeners.with_tls and not loopback(listener):
        logger.warning(
            "%s is a listener for nodes without TLS that other machines can reach: every caller of "
            "this port can act as a node. Let only the nodes of the cluster reach it",
            listener,
        )


def loopback(listener: Listener) -> bool:
    """Return True if only this machine can reach the listener."""
    try:
        return ip_address(listener.host).is_loopback
    except ValueError:
        return listener.host == "localhost"


CHOSEN = (
    ". The system chose this free port, and chooses another one at the next start. Give this "
    "listener a port in listeners if a firewall must let it pass"
)
