"""The configuration keys of a node: Kafka's, and Quorate's own, which begin with `quorate.`,
apart from `log.level`, `log.format` and `metrics.per.partition`.

Names, types, defaults and units are Kafka's. A default that differs from Kafka's has a
`kafka_default` (docs/differences.md). Other keys of Kafka are kept and reported, without effect.
"""

from __future__ import annotations

from quorate.config.authorizer_keys import AUTHORIZER
from quorate.config.cleaner_keys import CLEANER
from quorate.config.http_token import HTTP_TOKEN
from quorate.config.key import table
from quorate.config.log_keys import LOG
from quorate.config.network_keys import IDENTITY, NETWORK
from quorate.config.node_tls import NODE_TLS
from quorate.config.quorum_keys import QUORUM
from quorate.config.replication_keys import GROUPS, OURS, REPLICATION
from quorate.config.sasl_keys import SASL
from quorate.config.tls_keys import TLS

NODE_KEYS = table(
    *(*IDENTITY, *NETWORK, *TLS, *NODE_TLS, *HTTP_TOKEN, *SASL, *QUORUM),
    *(*LOG, *CLEANER, *REPLICATION, *GROUPS, *AUTHORIZER, *OURS),
)
"""All keys of a node by name."""
ALIASES = {"broker.id": "node.id"}
"""Other names under which the loader accepts a key."""
