"""The key `quorate.node.tls`: how nodes connect to each other while a cluster switches to TLS.

| value | this node accepts | this node connects with |
|---|---|---|
| require | TLS | TLS |
| dial | TLS, and links without it | TLS |
| accept | TLS, and links without it | no TLS |

Each step from the last row to the first one is a rolling restart, so that all nodes can connect to
each other at any time (docs/security.md). The key applies to listeners of nodes with the protocol
SSL. A node whose listeners for nodes are PLAINTEXT refuses the other values.
"""

from __future__ import annotations

from quorate.config.key import ConfigError, Key, Kind, one_of
from quorate.config.node_config import NodeConfig

NODE_TLS_KEY = "quorate.node.tls"
REQUIRE, DIAL, ACCEPT = "require", "dial", "accept"
NODE_TLS = (
    Key(
        NODE_TLS_KEY,
        Kind.STRING,
        REQUIRE,
        "How nodes with TLS connect to each other: require (TLS only), or dial and accept, which "
        "also accept links without TLS while a running cluster switches to TLS.",
        one_of(REQUIRE, DIAL, ACCEPT),
    ),
)


def demands_tls(config: NodeConfig) -> bool:
    """Return True if this node accepts no link of a node without TLS."""
    return config.node_listeners_do_tls and config[NODE_TLS_KEY] == REQUIRE


def dials_tls(config: NodeConfig) -> bool:
    """Return True if this node connects to other nodes with TLS."""
    return config.node_listeners_do_tls and config[NODE_TLS_KEY] != ACCEPT


def check_node_tls(config: NodeConfig) -> None:
    """Raise ConfigError if the key is set and the listeners for nodes have no TLS."""
    if config[NODE_TLS_KEY] != REQUIRE and not config.node_listeners_do_tls:
        raise ConfigError(
            f"{config.origin(NODE_TLS_KEY)}: {NODE_TLS_KEY}: value {config[NODE_TLS_KEY]!r} needs "
            "listeners for nodes with the protocol SSL in listener.security.protocol.map"
        )
