"""The effective value of a topic config, as a controller sees it.

The first of these that has a value counts: the topic, the dynamic config of this controller's node,
the dynamic config of all brokers, the node's file, Kafka's default. The configs of nodes have other
names than those of topics: log.retention.ms is the default of retention.ms. A dynamic config that
nodes ignore (`config/dynamic_keys.py`) does not count here either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from quorate.config.dynamic_keys import is_in_force
from quorate.config.key import Key, Value
from quorate.config.topic_keys import TOPIC_KEYS

# The sources of a value, with Kafka's codes (DescribeConfigs).
TOPIC_CONFIG = 1
"""Source of a value that is set for the topic."""
DYNAMIC_BROKER_CONFIG = 2
"""Source of a value that is set for the active controller's node in the metadata."""
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
"""Source of a value that is set for all brokers in the metadata."""
STATIC_BROKER_CONFIG = 4
"""Source of a value that comes from the configuration file of the active controller."""
DEFAULT_CONFIG = 5
"""Source of a value that is Kafka's default."""

Effective = tuple[str | None, int]
"""A value as text, or None for null, and its source."""


def effective(
    key: Key,
    topic: Mapping[str, str],
    node: Mapping[str, str],
    all_brokers: Mapping[str, str],
    static: Mapping[str, Value],
) -> Effective:
    """Return the effective value of the topic key.

    The mappings hold the configs of the topic, of this node and of all brokers, and the defaults of
    topic keys that this node's file gives. A default that equals Kafka's has the source
    DEFAULT_CONFIG."""
    own = topic.get(key.name)
    if own is not None:
        return own, TOPIC_CONFIG
    if node or all_brokers:
        for configs, source in (
            (node, DYNAMIC_BROKER_CONFIG),
            (all_brokers, DYNAMIC_DEFAULT_BROKER_CONFIG),
        ):
            for text in _synonyms(key, configs):
                return text, source
    default = static.get(key.name, key.default)
    source = DEFAULT_CONFIG if default == key.default else STATIC_BROKER_CONFIG
    return formatted(key.name, default), source


def _synonyms(key: Key, configs: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of the synonyms of a topic key that nodes apply. Dynamic keys have the unit
    of the topic key."""
    for name, factor in key.synonyms:
        text = configs.get(name)
        if text is not None and factor == 1 and is_in_force(name, text):
            yield text


@lru_cache(maxsize=1024)
def formatted(name: str, value: Value) -> str | None:
    """Return the typed value of the config `name` as text in Kafka's format, or None for null."""
    return TOPIC_KEYS[name].format(value)
