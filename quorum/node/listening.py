"""The log line of an open port."""

from __future__ import annotations

import logging

from quorate.config.listeners import Listener
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


CHOSEN = (
    ". The system chose this free port, and chooses another one at the next start. Give this "
    "listener a port in listeners if a firewall must let it pass"
)
