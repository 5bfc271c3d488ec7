"""Which resources have configs, and what may be set on each kind: a table by Kafka's resource type.

Topic keys are all known: anything else is refused. A broker's unknown keys are kept, as in Kafka,
where plugins read keys of their own; a known one must be one that brokers take over while they run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quorate.config.key import ConfigError, Key, Update, is_number
from quorate.config.node_keys import NODE_KEYS
from quorate.config.topic_keys import TOPIC_KEYS
from quorate.quorum.clipped import clipped
from quorate.quorum.controller.context import Context
from quorate.quorum.controller.result import RequestRefused
from quorate.quorum.controller.topic_configs import check_topic_configs
from quorate.quorum.controller.topic_names import what_is_wrong
from quorate.quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.quorum.rpc.kafka.errors import ErrorCode

Values = dict[str, str | None]
"""What is to be written by key; None deletes."""


def invalid_request(message: str) -> RequestRefused:
    return RequestRefused(ErrorCode.INVALID_REQUEST, message)


def check_topic(context: Context, name: str) -> None:
    if not name:
        raise invalid_request("Default topic resources are not allowed.")
    problem = what_is_wrong(name)
    if problem is not None:
        raise RequestRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name not in context.image.topic_ids:
        raise RequestRefused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )


def check_node(context: Context, name: str) -> None:
    """The empty name is the default of all brokers; controllers have configs too."""
    if not name:
        return
    if not is_number(name):
        raise invalid_request(f"Node id must be an integer, but it is: {clipped(name)}")
    if int(name) not in context.image.brokers and int(name) not in context.image.controllers:
        raise RequestRefused(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def check_topic_values(name: str, current: Mapping[str, str], values: Values) -> None:
    """All that will be set is checked together: some keys limit each other."""
    after = {**current, **values}
    check_topic_configs({key: value for key, value in after.items() if value is not None})


def check_node_values(name: str, current: Mapping[str, str], values: Values) -> None:
    for key_name, value in values.items():
        key = NODE_KEYS.get(key_name)
        if key is None:
            continue
        if key.update is Update.READ_ONLY:
            raise invalid_request(
                f"Cannot update {key_name} dynamically: set it in the node's properties and "
                "restart the node."
            )
        if key.update is Update.PER_BROKER and not name:
            raise invalid_request(
                f"Cannot update {key_name} for all brokers: set it for each broker by its id."
            )
        if value is not None:
            try:
                key.parse(value)
            except ConfigError as error:
                raise invalid_request(f"Invalid value for a broker config: {error}") from None


@dataclass(frozen=True, slots=True)
class ConfigResourceKind:
    """`always_written`: also when nothing changes; brokers reload on the record (KAFKA-14136)."""

    check_name: Callable[[Context, str], None]
    check_values: Callable[[str, Mapping[str, str], Values], None]
    keys: Mapping[str, Key]
    always_written: bool


KINDS: dict[int, ConfigResourceKind] = {
    TOPIC_RESOURCE: ConfigResourceKind(check_topic, check_topic_values, TOPIC_KEYS, False),
    BROKER_RESOURCE: ConfigResourceKind(check_node, check_node_values, NODE_KEYS, True),
}


def kind_of(resource_type: int) -> ConfigResourceKind:
    kind = KINDS.get(resource_type)
    if kind is None:
        raise invalid_request(f"Unknown resource type {resource_type}")
    return kind
