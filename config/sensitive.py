"""Decides which configs are secret, as Kafka's brokers do.

A config is secret if its kind is PASSWORD, or if this version does not know its key: a key of a
newer version or of a plug-in may be a password.
"""

from __future__ import annotations

from quorate.config.dynamic_broker_keys import BROKER_KEYS
from quorate.config.key import Kind
from quorate.config.listener_keys import listener_key
from quorate.config.topic_keys import TOPIC_KEYS

HIDDEN = "[hidden]"
"""Kafka's text in place of a secret."""
WITHOUT_SECRETS = (16, 32)
"""Kafka's resource types of client metrics and groups, which have no secret configs."""


def is_secret(resource_type: int, name: str) -> bool:
    """Return True if the value of the config `name` must not be shown. `resource_type` is Kafka's
    code, such as 2 for a topic and 4 for a broker."""
    if resource_type in WITHOUT_SECRETS:
        return False
    key = TOPIC_KEYS.get(name) or BROKER_KEYS.get(name) or listener_key(name)
    return key is None or key.kind is Kind.PASSWORD
