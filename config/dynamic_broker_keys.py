"""The configs of brokers that exist only in the metadata log, not in a node's file.

`quorate reassign-partitions --throttle` and Kafka's tool set the throttles on the brokers that move
replicas, and remove them afterwards. In Kafka, DynamicConfig declares these keys. `dynamic_keys.py`
lists them beside the keys of files that can change at run time.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.config.key import CLUSTER_WIDE, MAX_LONG, Key, Kind, Value, at_least, table
from quorate.config.node_keys import NODE_KEYS

LEADER_THROTTLED_RATE = "leader.replication.throttled.rate"
FOLLOWER_THROTTLED_RATE = "follower.replication.throttled.rate"
MOVE_THROTTLED_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SCRAM_SECRET = "quorate.sasl.scram.secret"
MIN_SECRET_CHARS = 32


def long_secret(value: Value) -> str | None:
    """Check for a text of at least MIN_SECRET_CHARS characters."""
    long = isinstance(value, str) and len(value) >= MIN_SECRET_CHARS
    return None if long else f"at least {MIN_SECRET_CHARS} characters long"


DYNAMIC_BROKER_KEYS = table(
    Key(
        LEADER_THROTTLED_RATE,
        Kind.LONG,
        MAX_LONG,
        "The bytes per second that followers outside of the ISR may read from the listed replicas "
        "of this broker.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        FOLLOWER_THROTTLED_RATE,
        Kind.LONG,
        MAX_LONG,
        "The bytes per second that the listed replicas of this broker may fetch while they are "
        "outside of the ISR.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        MOVE_THROTTLED_RATE,
        Kind.LONG,
        MAX_LONG,
        "The bytes per second that this broker copies while it moves replicas between its log "
        "directories.",
        at_least(0),
        CLUSTER_WIDE,
    ),
    Key(
        SCRAM_SECRET,
        Kind.PASSWORD,
        None,
        "The secret from which brokers derive the salts of users without SCRAM credentials. The "
        "controller sets it together with the first credential.",
        long_secret,
        CLUSTER_WIDE,
    ),
)
"""The keys by name."""
BROKER_KEYS: Mapping[str, Key] = {**NODE_KEYS, **DYNAMIC_BROKER_KEYS}
"""All keys that a broker resource may have."""
