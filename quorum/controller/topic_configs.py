"""Topic configs of new topics: validation, records, and the effective values for the response."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from quorate.config.key import ConfigError, Value
from quorate.config.topic_keys import TOPIC_KEYS, validate_topic_configs
from quorate.quorum.controller.context import CLUSTER_DEFAULT, NO_CONFIGS, Context
from quorate.quorum.controller.result import RequestRefused
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import CreatableTopicConfigs

# The sources of a value, with Kafka's codes (DescribeConfigs).
TOPIC_CONFIG = 1
"""Source of a value that is set for the topic."""
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
"""Source of a value that is set for all brokers in the metadata."""
STATIC_BROKER_CONFIG = 4
"""Source of a value that comes from the configuration file of the active controller."""
DEFAULT_CONFIG = 5
"""Source of a value that is Kafka's default."""


def check_topic_configs(configs: Mapping[str, str]) -> None:
    """Raise RequestRefused with INVALID_CONFIG if a key is unknown or a value is not valid."""
    try:
        validate_topic_configs(configs)
    except ConfigError as error:
        raise RequestRefused(ErrorCode.INVALID_CONFIG, str(error)) from None


def topic_config_record(topic_name: str, key: str, value: str | None) -> ConfigRecord:
    """Return the record that sets the config `key` of a topic, or deletes it if `value` is None."""
    return ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name=topic_name, name=key, value=value
    )


def described_configs(
    context: Context, overrides: Mapping[str, str]
) -> tuple[CreatableTopicConfigs, ...]:
    """Return every config of a topic with these overrides: its value and the value's source.
    Internal configs, which are only for tests, are left out.

    The first of these sources that has the config counts: the overrides, the metadata's defaults of
    all brokers, the configuration of this controller. A value in the configuration that equals
    Kafka's default has the source DEFAULT_CONFIG."""
    cluster = context.image.configs.get(CLUSTER_DEFAULT, NO_CONFIGS)
    static = context.settings.topic_defaults
    described = []
    for name, key in TOPIC_KEYS.items():
        if key.internal:
            continue
        value: str | None
        if name in overrides:
            value, source = overrides[name], TOPIC_CONFIG
        elif name in cluster:
            value, source = cluster[name], DYNAMIC_DEFAULT_BROKER_CONFIG
        else:
            default = static.get(name, key.default)
            source = DEFAULT_CONFIG if default == key.default else STATIC_BROKER_CONFIG
            value = formatted(name, default)
        described.append(described_config(name, value, source))
    return tuple(described)


@lru_cache(maxsize=1024)
def formatted(name: str, value: Value) -> str | None:
    """Return the typed value of the config `name` as text in Kafka's format, or None for null."""
    return TOPIC_KEYS[name].format(value)


@lru_cache(maxsize=1024)
def described_config(name: str, value: str | None, source: int) -> CreatableTopicConfigs:
    """Return one config as the response describes it. The result is cached, because most topics
    have the same values."""
    return CreatableTopicConfigs(name=name, value=value, config_source=source)
