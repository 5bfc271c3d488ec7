"""The keys of nodes that can change at run time: those of Kafka's DynamicBrokerConfig that are in
effect here.

Such a value is in the metadata log, for one broker or for all. It takes precedence over the node's
file. A value of a single broker takes precedence over the value of all brokers. Every broker and
controller applies the value when it replays the record. No other key can be set: a value without an
effect would deceive the operator. A value that an earlier version stored under another
key is ignored, and can be deleted.

`DYNAMIC_KEYS` has one row for each key. tests/ports/test_dynamic_keys.py sets each of them on a
running node, and fails for a row without an effect. The keys of TLS can be set for one broker and
with the prefix of a listener only, so `dynamic_tls_keys.py` has them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quorate.config.dynamic_broker_keys import (
    BROKER_KEYS,
    FOLLOWER_THROTTLED_RATE,
    LEADER_THROTTLED_RATE,
    MOVE_THROTTLED_RATE,
    SCRAM_SECRET,
)
from quorate.config.dynamic_tls_keys import DYNAMIC_TLS_KEYS, dynamic_tls_key
from quorate.config.key import CLUSTER_WIDE, MIB, ConfigError, Key, Update, Value
from quorate.config.listener_keys import listener_key
from quorate.config.node_keys import NODE_KEYS
from quorate.config.not_in_effect import UNKNOWN, unknown, why_not_in_effect
from quorate.config.refused_keys import may_be_refused


class AppliedBy(enum.Enum):
    """The part of a node that applies a key. The value says where and to what."""

    TOPIC_SETTINGS = (
        "broker/topic_settings.py: the default of a topic key; on controllers, "
        "quorum/controller/state/effective_configs.py"
    )
    CONNECTIONS = (
        "quorum/rpc/kafka/connection_quotas.py: limits of the connections to a broker's listeners, "
        "and to a controller's"
    )
    CLEANER = "broker/logs/log_cleaner.py: the log cleaner"
    THROTTLES = (
        "broker/replication/partitions/replication_throttle.py: the throttles of replication"
    )
    SASL = "quorum/sasl/unknown_users.py: the salts of users without SCRAM credentials"
    TLS = "quorum/node/peers/node_tls.py: the keys of config/dynamic_tls_keys.py"
    FETCHERS = (
        "broker/replication/follower/replica_fetcher_manager.py: the connections to source brokers"
    )


@dataclass(frozen=True, slots=True)
class DynamicKey:
    """One row: a key, the level at which it can be set, and the part that applies it."""

    name: str
    update: Update
    applied_by: AppliedBy


def rows(applied_by: AppliedBy, *names: str) -> list[DynamicKey]:
    """Return the rows of keys that can be set for one broker or for all."""
    return [DynamicKey(name, CLUSTER_WIDE, applied_by) for name in names]


DYNAMIC_KEYS: Mapping[str, DynamicKey] = {
    row.name: row
    for row in (
        *rows(
            AppliedBy.TOPIC_SETTINGS,
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.type",
            "compression.zstd.level",
            "log.cleaner.delete.retention.ms",
            "log.cleaner.max.compaction.lag.ms",
            "log.cleaner.min.cleanable.ratio",
            "log.cleaner.min.compaction.lag.ms",
            "log.cleanup.policy",
            "log.flush.interval.messages",
            "log.flush.interval.ms",
            "log.index.interval.bytes",
            "log.index.size.max.bytes",
            "log.message.timestamp.after.max.ms",
            "log.message.timestamp.before.max.ms",
            "log.message.timestamp.type",
            "log.preallocate",
            "log.retention.bytes",
            "log.retention.ms",
            "log.roll.jitter.ms",
            "log.roll.ms",
            "log.segment.bytes",
            "log.segment.delete.delay.ms",
            "message.max.bytes",
            "min.insync.replicas",
            "producer.id.expiration.ms",
            "unclean.leader.election.enable",
            "unclean.recovery.strategy",
        ),
        *rows(
            AppliedBy.CONNECTIONS,
            "max.connection.creation.rate",
            "max.connections",
            "max.connections.per.ip",
            "max.connections.per.ip.overrides",
        ),
        *rows(
            AppliedBy.CLEANER,
            "log.cleaner.backoff.ms",
            "log.cleaner.dedupe.buffer.size",
            "log.cleaner.io.buffer.load.factor",
            "log.cleaner.io.buffer.size",
            "log.cleaner.io.max.bytes.per.second",
            "log.cleaner.threads",
        ),
        *rows(AppliedBy.SASL, SCRAM_SECRET),
        *rows(AppliedBy.FETCHERS, "num.replica.fetchers"),
        *rows(
            AppliedBy.THROTTLES, LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE, MOVE_THROTTLED_RATE
        ),
    )
}
"""The rows by name. A key that `not_in_effect.py` lists cannot be set yet."""
THREADS = ("num.replica.fetchers", "log.cleaner.threads")
"""The keys whose value may at most double, and at most halve, in one change. Kafka limits the
changes of all thread pools like that."""
POSITIVE = ("max.connections", "max.connection.creation.rate")
"""The keys that a file may set to 0, but no dynamic config, because such a broker could not be
reached any more to correct it."""
MAX_NAME = 100
"""The number of characters of an unknown name that an error text repeats."""
DEDUPE_BUFFER = "log.cleaner.dedupe.buffer.size"
PER_ADDRESS = ("max.connections.per.ip", "max.connections.per.ip.overrides")
COMPARED = frozenset((*THREADS, DEDUPE_BUFFER, *PER_ADDRESS))
"""The keys whose change `check_change` compares with the settings of the node."""


def why_not_settable(names: Iterable[str], *, one_broker: bool = True) -> str | None:
    """Return the reason for which one of these keys cannot be set in the metadata, or None if all
    of them can be set. `one_broker` is False for the configs of all brokers."""
    names = tuple(name for name in names if not (one_broker and dynamic_tls_key(name)))
    of_tls = [name for name in names if name in DYNAMIC_TLS_KEYS]
    if of_tls:
        return (
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix, such as listener.name.external.{of_tls[0]}: {', '.join(of_tls)}"
        )
    of_one = [name for name in names if dynamic_tls_key(name)]
    if of_one:
        return (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"{', '.join(of_one)}"
        )
    fixed = [name for name in names if is_fixed(name)]
    if fixed:
        return (
            f"Cannot update these configs dynamically: {', '.join(fixed)}. Set them in the node's "
            "properties and restart the node."
        )
    for name in names:
        reason = why_not_in_effect(name)
        if reason is None and may_be_refused(name):
            reason = "it is a config of a security or plug-in feature that does not exist here"
        if reason is None and name not in DYNAMIC_KEYS:
            reason = unknown(name, {*DYNAMIC_KEYS, *NODE_KEYS})
        if reason is not None:
            end = "" if reason.endswith("?") else "."
            return f"Cannot set {name[:MAX_NAME]}, because it would have no effect: {reason}{end}"
    return None


def is_fixed(name: str) -> bool:
    """Return True if only the node's file can set this key."""
    return (name in NODE_KEYS and name not in DYNAMIC_KEYS) or listener_key(name) is not None


SETTABLE: Mapping[str, Key] = {
    name: BROKER_KEYS[name] for name in DYNAMIC_KEYS if why_not_in_effect(name) is None
}
"""The keys that can be set for one broker or for all, by name."""


def settable_key(name: str) -> Key | None:
    """Return the key that can be set under this name, or None."""
    return SETTABLE.get(name) or dynamic_tls_key(name)


def parse_value(key: Key, text: str) -> Value:
    """Return the typed value. Raise ConfigError if the key may not get it at run time."""
    value = key.parse(text)
    if key.name in POSITIVE and value == 0:
        raise key.refused(text, "at least 1 in a dynamic config")
    return value


def check_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise ConfigError if a node must not change from the settings `before` to `after`.

    - The keys in THREADS may at most double and at most halve.
    - The cleaner's buffer must exceed 1 MiB for each of its threads.
    - max.connections.per.ip may be 0 only if max.connections.per.ip.overrides names addresses.

    Only keys that change are checked."""
    changed = {name for name in COMPARED if before[name] != after[name]}
    for name in changed.intersection(THREADS):
        old, new = before[name], after[name]
        if not max(1, old // 2) <= new <= 2 * old:
            raise ConfigError(
                f"{name}: value '{new}' must be at least 1, at least half and at most double the "
                f"current value {old}"
            )
    threads, size = after["log.cleaner.threads"], after[DEDUPE_BUFFER]
    if changed & {"log.cleaner.threads", DEDUPE_BUFFER} and size <= threads * MIB:
        raise ConfigError(
            f"{DEDUPE_BUFFER}: value '{size}' must exceed {MIB} for each of log.cleaner.threads "
            f"({threads})"
        )
    if changed.intersection(PER_ADDRESS) and not any(after[name] for name in PER_ADDRESS):
        raise ConfigError(
            "max.connections.per.ip: value '0' must be at least 1 unless "
            "max.connections.per.ip.overrides names addresses"
        )


def settings_with(
    file: Mapping[str, Any], of_all: Mapping[str, str], own: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the typed settings of a node, and the dynamic configs that it ignores with the reason
    of each.

    `file` holds the settings of the node's file, `of_all` the dynamic configs of all brokers, and
    `own` those of this node, which take precedence. Configs of other keys and invalid values are
    ignored: the log may hold them from an earlier version."""
    settings: dict[str, Any] = dict(file)
    ignored: dict[str, str] = {}
    for texts in (of_all, own):
        for name, text in texts.items():
            reason = why_not_settable((name,), one_broker=texts is own)
            key = settable_key(name)
            if reason is not None or key is None:
                ignored[name] = reason or UNKNOWN
                continue
            try:
                settings[name] = parse_value(key, text)
            except ConfigError as error:
                ignored[name] = str(error)
    return settings, ignored


def is_in_force(name: str, text: str) -> bool:
    """Return True if nodes apply this dynamic config."""
    key = settable_key(name)
    if key is None:
        return False
    try:
        parse_value(key, text)
    except ConfigError:
        return False
    return True
