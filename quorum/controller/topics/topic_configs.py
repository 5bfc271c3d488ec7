"""Topic configs of new topics: validation, records, and the effective values for the response."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from quorate.config.key import ConfigError
from quorate.config.topic_keys import TOPIC_KEYS, validate_topic_configs
from quorate.quorum.controller.state.context import CLUSTER_DEFAULT, NO_CONFIGS, Context
from quorate.quorum.controller.state.effective_configs import effective
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.metadata.image import TOPIC_RESOURCE
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.topics import CreatableTopicConfigs


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

    `effective_configs.py` has the order of precedence."""
    node = context.node_configs
    all_brokers = context.image.configs.get(CLUSTER_DEFAULT, NO_CONFIGS)
    static = context.settings.topic_defaults
    return tuple(
        described_config(name, *effective(key, overrides, node, all_brokers, static))
        for name, key in TOPIC_KEYS.items()
        if not key.internal
    )


@lru_cache(maxsize=1024)
def described_config(name: str, value: str | None, source: int) -> CreatableTopicConfigs:
    """Return one config as the response describes it. The result is cached, because most topics
    have the same values."""
    return CreatableTopicConfigs(name=name, value=value, config_source=source)
