"""IncrementalAlterConfigs (KIP-339) and the older AlterConfigs.

An error of one resource does not fail the others. The records of one request are one atomic batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from quorate.config.dynamic_broker_keys import SCRAM_SECRET
from quorate.config.key import Kind
from quorate.quorum.clipped import clipped
from quorate.quorum.controller.configs.config_resources import (
    ConfigResourceKind,
    Values,
    invalid_request,
    kind_of,
)
from quorate.quorum.controller.configs.min_isr_configs import check_min_isr, clear_elr_records
from quorate.quorum.controller.state.context import CLUSTER_DEFAULT, NO_CONFIGS, Context
from quorate.quorum.controller.state.result import (
    MAX_RECORDS_PER_USER_OP,
    RequestRefused,
    Result,
    TooManyRecords,
    check_room,
)
from quorate.quorum.metadata.records import ConfigRecord, MetadataRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.field_bounds import CONFIG_VALUE, STORED_CONFIGS
from quorate.quorum.protocol.schemas.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

MAX_UTF8_BYTES = 4
"""The maximum size of one character in UTF-8."""

Resource = TypeVar("Resource", AlterConfigsResource, IncrementalAlterConfigsResource)
ValuesOf = Callable[[ConfigResourceKind, Mapping[str, str], Resource], Values]
"""Returns the new values of a resource, from its current configs and the request."""
Outcome = tuple[ErrorCode, str | None]
"""The error of one resource, with its message, or NONE."""

SET, DELETE, APPEND, SUBTRACT = range(4)
"""Kafka's codes for the operations of IncrementalAlterConfigs."""


def incremental_alter_configs(context: Context, request: IncrementalAlterConfigsRequest) -> Result:
    """Set, delete, append to or subtract from configs of the named resources. A request with
    `validate_only` writes nothing."""
    records, outcomes = alter_all(context, request.resources, incremental_values)
    responses = tuple(
        IncrementalAlterConfigsResourceResponse(
            error_code=error,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, (error, message) in zip(request.resources, outcomes, strict=True)
    )
    response = IncrementalAlterConfigsResponse(responses=responses)
    return Result(() if request.validate_only else records, response)


def alter_configs(context: Context, request: AlterConfigsRequest) -> Result:
    """Replace all configs of the named resources. A request with `validate_only` writes nothing."""
    records, outcomes = alter_all(context, request.resources, replacing_values)
    responses = tuple(
        AlterConfigsResourceResponse(
            error_code=error,
            error_message=message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, (error, message) in zip(request.resources, outcomes, strict=True)
    )
    response = AlterConfigsResponse(responses=responses)
    return Result(() if request.validate_only else records, response)


def alter_all(
    context: Context, resources: Sequence[Resource], values_of: ValuesOf[Resource]
) -> tuple[list[MetadataRecord], list[Outcome]]:
    """Return the records and the outcome of each resource, in order. A resource that is named twice
    fails. Too many records fail all resources."""
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    if len(resources) > MAX_RECORDS_PER_USER_OP:
        refused = TooManyRecords()
        return [], [(refused.error, refused.message)] * len(resources)
    named: set[tuple[int, str]] = set()
    repeated: set[tuple[int, str]] = set()
    for resource in resources:
        key = resource.resource_type, resource.resource_name
        (repeated if key in named else named).add(key)
    for resource in resources:
        try:
            if (resource.resource_type, resource.resource_name) in repeated:
                raise invalid_request("Each resource must appear at most once.")
            made = alter_one(context, resource, values_of, len(records))
        except TooManyRecords as refused:
            return [], [(refused.error, refused.message)] * len(resources)
        except RequestRefused as refused:
            outcomes.append((refused.error, refused.message))
            continue
        records += made
        outcomes.append((ErrorCode.NONE, None))
    return records, outcomes


def alter_one(
    context: Context, resource: Resource, values_of: ValuesOf[Resource], before: int
) -> list[MetadataRecord]:
    """Return the records of one resource. `before` is the number of records that the same request
    already writes. Raise RequestRefused or TooManyRecords."""
    resource_type, name = resource.resource_type, resource.resource_name
    check_keys(resource)
    kind = kind_of(resource_type)
    kind.check_name(context, name, only_deletes=sets_nothing(resource))
    current = dict(context.image.configs.get((resource_type, name), NO_CONFIGS).items())
    values = values_of(kind, current, resource)
    check_scram_secret(context, (resource_type, name), values)
    kind.check_values(name, current, values)
    check_min_isr(context, resource_type, name, values)
    check_room(before + len(values))
    check_sizes(current, values)
    written = {
        key: value
        for key, value in values.items()
        if kind.always_written or value != current.get(key)
    }
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        for key, value in written.items()
    ]
    records += clear_elr_records(context, resource_type, name, written)
    check_room(before + len(records))
    return records


def check_scram_secret(context: Context, resource: tuple[int, str], values: Values) -> None:
    """Raise RequestRefused if the request deletes SCRAM_SECRET while there are credentials."""
    deletes = resource == CLUSTER_DEFAULT and values.get(SCRAM_SECRET, "") is None
    if deletes and context.image.scram_credentials:
        raise invalid_request(
            f"Cannot delete {SCRAM_SECRET} while there are SCRAM credentials: each broker would "
            "give unknown users other salts, which tells them apart from users. Set another value."
        )


def sets_nothing(resource: AlterConfigsResource | IncrementalAlterConfigsResource) -> bool:
    """Return True if the request only deletes configs of the resource."""
    if isinstance(resource, AlterConfigsResource):
        return not resource.configs
    return all(config.config_operation == DELETE for config in resource.configs)


def check_sizes(current: Mapping[str, str], values: Values) -> None:
    """Raise RequestRefused if a new value does not fit into a record, or if the resource would have
    too many configs."""
    for key, value in values.items():
        if value is None or MAX_UTF8_BYTES * len(value) <= CONFIG_VALUE.limit:
            continue
        if len(value.encode()) > CONFIG_VALUE.limit:
            raise RequestRefused(
                ErrorCode.INVALID_CONFIG,
                f"The value of {clipped(key)} would have {len(value.encode())} bytes; at most "
                f"{CONFIG_VALUE.limit} are allowed.",
            )
    if len(current) + len(values) <= STORED_CONFIGS.limit:
        return
    added = sum(value is not None and key not in current for key, value in values.items())
    if added and len(current) + added > STORED_CONFIGS.limit:
        raise RequestRefused(
            ErrorCode.POLICY_VIOLATION,
            f"The resource would have {len(current) + added} configs; at most "
            f"{STORED_CONFIGS.limit} are allowed. Delete those that are no longer needed.",
        )


def check_keys(resource: AlterConfigsResource | IncrementalAlterConfigsResource) -> None:
    """Raise RequestRefused if the request names a key of the resource twice."""
    configs = resource.configs
    if len(configs) > 1 and len({config.name for config in configs}) < len(configs):
        raise invalid_request("Error due to duplicate config keys")


def replacing_values(
    kind: ConfigResourceKind, current: Mapping[str, str], resource: AlterConfigsResource
) -> Values:
    """Return the new values for AlterConfigs, which deletes each current config that the request
    does not name. It keeps SCRAM_SECRET, which clients do not know, because the controller sets
    it."""
    values: Values = {}
    for config in resource.configs:
        if config.value is None:
            raise invalid_request(f"Null value not supported for : {clipped(config.name)}")
        values[config.name] = config.value
    values.update(
        (name, None) for name in sorted(current) if name not in values and name != SCRAM_SECRET
    )
    return values


def incremental_values(
    kind: ConfigResourceKind, current: Mapping[str, str], resource: IncrementalAlterConfigsResource
) -> Values:
    """Return the new values for IncrementalAlterConfigs. Raise RequestRefused for an unknown
    operation, a null value, or a list operation on a key that is no list."""
    values: Values = {}
    for config in resource.configs:
        name, code = config.name, config.config_operation
        operation = OPERATIONS.get(code)
        if operation is None:
            raise invalid_request(f"Unknown operation type {code}.")
        if config.value is None and code != DELETE:
            raise invalid_request(f"Null value not supported for : {clipped(name)}")
        values[name] = operation(kind, name, current.get(name), config.value or "")
    return values


Operation = Callable[[ConfigResourceKind, str, str | None, str], str | None]


def append(kind: ConfigResourceKind, name: str, old: str | None, value: str) -> str:
    """Return the current list, followed by those items of `value` that it does not contain."""
    parts = list_parts(kind, name, old, "APPEND")
    present = frozenset(parts)
    added = (part for part in dict.fromkeys(value.split(",")) if part not in present)
    return ",".join([*parts, *added])


def subtract(kind: ConfigResourceKind, name: str, old: str | None, value: str) -> str:
    """Return the current list without the items of `value`."""
    gone = frozenset(value.split(","))
    return ",".join(part for part in list_parts(kind, name, old, "SUBTRACT") if part not in gone)


def list_parts(kind: ConfigResourceKind, name: str, old: str | None, operation: str) -> list[str]:
    """Return the items of the current value, or of the key's default if none is set. Raise
    RequestRefused if the key is no list."""
    key = kind.keys.get(name)
    if key is None or key.kind is not Kind.LIST:
        raise RequestRefused(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation} to key {clipped(name)} because its type is not LIST.",
        )
    text = key.format(key.default) if old is None else old
    return [part for part in (text or "").split(",") if part]


OPERATIONS: dict[int, Operation] = {
    SET: lambda _kind, _name, _old, value: value,
    DELETE: lambda _kind, _name, _old, _value: None,
    APPEND: append,
    SUBTRACT: subtract,
}
"""The new value of a key, by operation. Each function gets the kind of the resource, the name of
the key, its current value or None, and the value in the request."""
