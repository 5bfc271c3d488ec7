"""The kinds of resources that have configs, and the checks of each kind.

The table is keyed by Kafka's resource type. A key that is not known is refused. A broker's key must
be one that nodes can change at run time (`config/dynamic_keys.py`). The broker that a client asks
first also compares the values with its own settings (`broker/kafka/admin/alter_configs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from quorate.config.dynamic_broker_keys import BROKER_KEYS
from quorate.config.dynamic_keys import parse_value, settable_key, why_not_settable
from quorate.config.key import ConfigError, Key, is_number
from quorate.config.topic_keys import TOPIC_KEYS, valid_topic_configs
from quorate.quorum.clipped import clipped
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.result import RequestRefused
from quorate.quorum.controller.topics.topic_configs import check_topic_configs
from quorate.quorum.controller.topics.topic_names import what_is_wrong
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.protocol.errors import ErrorCode

GROUP_RESOURCE = 32
"""Kafka's resource type of groups."""
NO_GROUP_CONFIGS = (
    "There are no group configs: those of Kafka concern groups of the new protocols (KIP-848, "
    "share and streams groups), and only groups of the classic protocol exist here. Set "
    "session.timeout.ms and heartbeat.interval.ms on the consumer"
)
Values = dict[str, str | None]
"""The new value of each key. None deletes the key."""


def invalid_request(message: str) -> RequestRefused:
    """Return a RequestRefused with INVALID_REQUEST."""
    return RequestRefused(ErrorCode.INVALID_REQUEST, message)


def check_topic(context: Context, name: str, *, only_deletes: bool) -> None:
    """Raise RequestRefused unless `name` is an existing topic."""
    if not name:
        raise invalid_request("Default topic resources are not allowed.")
    problem = what_is_wrong(name)
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name not in context.image.topic_ids:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )


def check_node(context: Context, name: str, *, only_deletes: bool) -> None:
    """Raise RequestRefused unless `name` is empty or the id of a registered broker or controller.
    The empty name is the default of all brokers. The stored configs of a node that is not
    registered any more can still be deleted."""
    if not name or (only_deletes and (BROKER_RESOURCE, name) in context.image.configs):
        return
    if not is_number(name):
        raise invalid_request(f"Node id must be an integer, but it is: {clipped(name)}")
    if name != str(int(name)):
        raise invalid_request(
            f"Node id must have no leading zeros, but it is: {name}. Node {int(name)} would not "
            "obey these configs"
        )
    if int(name) not in context.image.brokers and int(name) not in context.image.controllers:
        raise RequestRefused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def check_topic_values(name: str, current: Mapping[str, str], values: Values) -> None:
    """Raise RequestRefused if the resulting configs of the topic are not valid. They are checked
    together, because some keys limit others.

    A stored config that is not valid has no effect, so it does not prevent changes of others."""
    after = {**valid_topic_configs(current), **values}
    check_topic_configs({key: value for key, value in after.items() if value is not None})


def check_node_values(name: str, current: Mapping[str, str], values: Values) -> None:
    """Raise RequestRefused if a key that is set cannot be set at run time, or gets a value that is
    not valid.

    Any config can be deleted, also one that is not known: the log may hold it from an earlier
    version."""
    set_values = {key: value for key, value in values.items() if value is not None}
    reason = why_not_settable(set_values, one_broker=bool(name))
    if reason is not None:
        raise invalid_request(reason)
    for key_name, value in set_values.items():
        key = settable_key(key_name)
        assert key is not None, f"{key_name} can be set"
        try:
            parse_value(key, value)
        except ConfigError as error:
            raise invalid_request(f"Invalid value for a broker config: {error}") from None


class CheckName(Protocol):
    """Checks the name of a resource."""

    def __call__(self, context: Context, name: str, *, only_deletes: bool) -> None:
        """Raise RequestRefused if no such resource may be changed. `only_deletes` is True if the
        change sets no config."""


@dataclass(frozen=True, slots=True)
class ConfigResourceKind:
    """The checks of one resource type. `check_values` gets the name of the resource, its current
    configs and the new values.

    `always_written` is True if a record is written even when no value changes, because brokers
    reload the value when they replay the record (KAFKA-14136).
    """

    check_name: CheckName
    check_values: Callable[[str, Mapping[str, str], Values], None]
    keys: Mapping[str, Key]
    always_written: bool


KINDS: dict[int, ConfigResourceKind] = {
    TOPIC_RESOURCE: ConfigResourceKind(check_topic, check_topic_values, TOPIC_KEYS, False),
    BROKER_RESOURCE: ConfigResourceKind(check_node, check_node_values, BROKER_KEYS, True),
}
"""The checks by Kafka's resource type."""


def kind_of(resource_type: int) -> ConfigResourceKind:
    """Return the kind for Kafka's resource type. Raise RequestRefused if configs of that type do
    not exist."""
    kind = KINDS.get(resource_type)
    if kind is None:
        raise invalid_request(
            NO_GROUP_CONFIGS
            if resource_type == GROUP_RESOURCE
            else f"Unknown resource type {resource_type}"
        )
    return kind
