"""Kafka requests of any API and version, drawn from the schemas.

A request is mostly sensible, because absurd values in every field would never pass the first check.
The draw's `wildness` is the probability that a field is absurd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS, Api, ApiKey
from quorate.quorum.protocol.codec import EncodeError, encode
from quorate.quorum.protocol.layout import Field, Layout, layout
from quorate.quorum.protocol.wire import Message
from tests.sim.adversary.batches import poison
from tests.sim.adversary.values import MAX_CLASSIC_BYTES, OWN_GROUPS, OWN_ID, Aims, Draw

CHANGING = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ELECT_LEADERS,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""APIs with which an administrator may harm the good workload."""
ONCE, TWICE = (1, 1, 1, 2), (0, 2)

KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), int),
    "string": str,
    "uuid": bytes,
}
"""The Python types of the values in SANE, by wire type. Two schemas may share a name for fields of
different types."""
Sane = Callable[[Draw, Aims, bool], Any]
"""Gets the draw, the aims, and True if only the adversary's own topics may be named."""


def _topic(draw: Draw, aims: Aims, own_only: bool) -> str:
    return aims.topic(draw, own_only=own_only)


def _group(draw: Draw, aims: Aims, own_only: bool) -> str:
    return draw.of(*OWN_GROUPS)


def _config(draw: Draw, aims: Aims, own_only: bool) -> str:
    return draw.of("retention.ms", "segment.bytes", "max.message.bytes", "compression.type", "x")


def _node(draw: Draw, aims: Aims, own_only: bool) -> int:
    return draw.of(*aims.node_ids, OWN_ID)


def _time_ms(draw: Draw, aims: Aims, own_only: bool) -> int:
    return draw.of(0, 1, 100, 1000)


def _offset(draw: Draw, aims: Aims, own_only: bool) -> int:
    return draw.of(0, 1, 10, 100, -1, -2)


SANE: dict[str, Sane] = {
    "topic": _topic,
    "topic_name": _topic,
    "topic_names": _topic,
    "name": _topic,
    "CreatableTopicConfigs.name": _config,
    "AlterableConfig.name": _config,
    "IncrementalAlterableConfig.name": _config,
    "configuration_keys": _config,
    "resource_name": _topic,
    "group_id": _group,
    "groups": _group,
    "groups_names": _group,
    "key": _group,
    "coordinator_keys": _group,
    "topic_id": lambda draw, aims, own_only: aims.topic_id(draw, own_only=own_only),
    "broker_id": _node,
    "broker_ids": _node,
    "replicas": _node,
    "voter_id": _node,
    "timeout_ms": _time_ms,
    "max_wait_ms": _time_ms,
    "fetch_offset": _offset,
    "offset": _offset,
    "timestamp": _offset,
    "committed_offset": _offset,
    "max_bytes": lambda draw, *_: draw.of(1, 1000, 1 << 20),
    "partition_max_bytes": lambda draw, *_: draw.of(1, 1000, 1 << 20),
    "session_timeout_ms": lambda draw, *_: draw.of(6000, 10_000),
    "rebalance_timeout_ms": lambda draw, *_: draw.of(100, 1000),
    "acks": lambda draw, *_: draw.of(-1, 0, 1),
    "replication_factor": lambda draw, *_: draw.of(3, -1),
    "num_partitions": lambda draw, *_: draw.of(1, 2, -1),
    "count": lambda draw, *_: draw.of(1, 2, 3),
    "session_epoch": lambda draw, *_: draw.of(-1, 0, 1),
    "resource_type": lambda draw, *_: draw.of(2, 2, 2, 4),
    "protocol_type": lambda draw, *_: "consumer",
    "transactional_id": lambda *_: None,
    "replica_id": lambda draw, aims, own_only: draw.of(-1, -1, _node(draw, aims, own_only)),
    "isolation_level": lambda draw, *_: draw.of(0, 1),
    "config_operation": lambda draw, *_: draw.of(0, 1, 2, 3),
    "value": lambda draw, *_: draw.of("1000000", "gzip", "-1", None),
    "member_id": lambda draw, *_: draw.of("", "", "x"),
    "generation_id": lambda draw, *_: draw.of(-1, 0, 1),
    "cluster_id": lambda draw, aims, _: aims.cluster.cluster_id,
    "feature": lambda draw, *_: draw.of("metadata.version", "kraft.version", "group.version"),
}


def drawn(api: Api, version: int, aims: Aims, draw: Draw) -> Message:
    """Return a random request. Strings fit the length fields of a classic version. Other limits are
    not kept."""
    flexible = version >= api.flexible_since
    message: Message = _struct(api.request, version, flexible, aims, draw, api.key in CHANGING)
    return message


def frame(message: Message, version: int, draw: Draw) -> bytes | None:
    """Return the request with its header, or None if the schema cannot express the message."""
    api = APIS[message.API_KEY]
    client = draw.text(MAX_CLASSIC_BYTES) if draw.wild() else "evil"
    header_version = api.request_header_version(version)
    try:
        body = encode(message, version)
    except EncodeError:
        return None
    correlation_id = draw.random.getrandbits(31)
    return headers.request_header(api.key, version, correlation_id, client, header_version) + body


def _struct(cls: type, version: int, flexible: bool, aims: Aims, draw: Draw, own_only: bool) -> Any:
    plan = layout(cls, version, flexible)
    values = dict(plan.defaults)
    for field in plan.plain:
        values[field.name] = _field(field, plan, aims, draw, own_only)
    for field in plan.tagged:
        if draw.random.random() < 0.5:
            values[field.name] = _field(field, plan, aims, draw, own_only)
    return cls(**values)


def _field(field: Field, plan: Layout, aims: Aims, draw: Draw, own_only: bool) -> Any:
    if field.nullable and (draw.wild() or draw.random.random() < 0.1):
        return None
    if not field.array:
        return _element(field, plan, aims, draw, own_only)
    sane = ONCE if field.struct else TWICE
    count = draw.count(*sane)
    if count > max(sane):  # one element several times, so that there are duplicates
        return (_element(field, plan, aims, draw, own_only),) * count
    return tuple(_element(field, plan, aims, draw, own_only) for _ in range(count))


def _element(field: Field, plan: Layout, aims: Aims, draw: Draw, own_only: bool) -> Any:
    if field.struct is not None:
        return _struct(field.struct, plan.version, plan.flexible, aims, draw, own_only)
    wild = draw.wild()
    sane = SANE.get(f"{plan.cls.__name__}.{field.name}") or SANE.get(field.name)
    if not wild and sane is not None:
        value = sane(draw, aims, own_only)
        if isinstance(value, KINDS.get(field.kind, ())) or (value is None and field.nullable):
            return value
    return _leaf(field.kind, plan.flexible, draw, wild, aims)


def _leaf(kind: str, flexible: bool, draw: Draw, wild: bool, aims: Aims) -> Any:
    if kind == "bool":
        return draw.of(False, True)
    if kind == "float64":
        return draw.of(0.0, -1.0, 1e308, float("inf"))
    if kind == "uuid":
        return draw.uuid()
    if kind == "string":
        longest = 100_000 if flexible else MAX_CLASSIC_BYTES
        return draw.text(longest) if wild else draw.of("", "x", "range")
    if kind == "records":
        return b"x" if draw.has_large else poison(draw, aims.cluster)
    if kind == "bytes":
        return bytes(draw.of(0, 1, 70_000)) if wild and not draw.has_large else draw.of(b"", b"x")
    return draw.integer(kind) if wild else draw.of(0, 0, 1, 2, -1) if kind[0] != "u" else 0
