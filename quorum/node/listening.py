"""The log lines of an open port."""

from __future__ import annotations

import logging

from quorate.config.listeners import Listener, is_loopback
from quorate.config.node_config import NodeConfig
from quorate.config.node_tls import NODE_TLS_KEY, REQUIRE, demands_tls
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


def warn_if_exposed(listener: Listener, config: NodeConfig) -> None:
    """Write a warning if other machines can reach the port of nodes without TLS."""
    if demands_tls(config) or is_loopback(listener.host):
        return
    if config.node_listeners_do_tls:
        logger.warning(
            "%s=%s: %s still accepts nodes without TLS, and every caller of this port can act as a "
            "node. Set it to %s when all nodes connect with TLS",
            NODE_TLS_KEY,
            config[NODE_TLS_KEY],
            listener,
            REQUIRE,
        )
    else:
        logger.warning(
            "%s is a listener for nodes without TLS that other machines can reach: every caller of "
            "this port can act as a node. Let only the nodes of the cluster reach it, or give it "
            "the protocol SSL",
            listener,
        )


CHOSEN = (
    ". The system chose this free port, and chooses another one at the next start. Give this "
    "listener a port in listeners if a firewall must let it pass"
)
