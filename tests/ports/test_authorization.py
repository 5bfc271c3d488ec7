"""Every API and version on a cluster with an authorizer: as nobody, as the right user, as a super
user; and the same answers for names that exist and names that do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from quorate.broker.kafka.shared.forwarding import FORWARDED_API_KEYS
from quorate.quorum.protocol.acl_codes import Operation
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from tests.ports.node import BROKER_PORT, CONTROLLERS_PORT
from tests.ports.requests import BUILDERS, CONTROLLERS, GROUP, GROWN, READ, WRITTEN
from tests.ports.secured import (
    ALICE,
    CLUSTER,
    GROUPS,
    NOBODY,
    ROOT,
    TOPIC,
    Need,
    Secured,
    secured_cluster,
)

PORTS = {"broker": BROKER_PORT, "controller": CONTROLLERS_PORT}
DENIALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}
FREE = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
CLUSTER_NEEDS = {
    **dict.fromkeys(
        (
            ApiKey.DESCRIBE_ACLS,
            ApiKey.DESCRIBE_LOG_DIRS,
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.DESCRIBE_QUORUM,
        ),
        Operation.DESCRIBE,
    ),
    **dict.fromkeys(
        (
            ApiKey.CREATE_ACLS,
            ApiKey.DELETE_ACLS,
            ApiKey.ALTER_REPLICA_LOG_DIRS,
            ApiKey.ELECT_LEADERS,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.UPDATE_FEATURES,
            ApiKey.UNREGISTER_BROKER,
            ApiKey.ADD_RAFT_VOTER,
            ApiKey.REMOVE_RAFT_VOTER,
        ),
        Operation.ALTER,
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Operation.DESCRIBE_CONFIGS,
    ApiKey.LIST_CONFIG_RESOURCES: Operation.DESCRIBE_CONFIGS,
    ApiKey.ALTER_CLIENT_QUOTAS: Operation.ALTER_CONFIGS,
}
NEEDS: dict[int, tuple[Need, ...]] = {
    **{key: ((CLUSTER, operation),) for key, operation in CLUSTER_NEEDS.items()},
    ApiKey.PRODUCE: ((TOPIC, Operation.WRITE),),
    ApiKey.FETCH: ((TOPIC, Operation.READ),),
    ApiKey.LIST_OFFSETS: ((TOPIC, Operation.DESCRIBE),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: ((TOPIC, Operation.DESCRIBE),),
    ApiKey.METADATA: ((TOPIC, Operation.DESCRIBE),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ((TOPIC, Operation.DESCRIBE),),
    ApiKey.DESCRIBE_PRODUCERS: ((TOPIC, Operation.READ),),
    ApiKey.DELETE_RECORDS: ((TOPIC, Operation.DELETE),),
    ApiKey.CREATE_TOPICS: ((TOPIC, Operation.CREATE), (TOPIC, Operation.DESCRIBE_CONFIGS)),
    ApiKey.DELETE_TOPICS: ((TOPIC, Operation.DELETE),),
    ApiKey.CREATE_PARTITIONS: ((TOPIC, Operation.ALTER),),
    ApiKey.INIT_PRODUCER_ID: ((TOPIC, Operation.WRITE),),
    ApiKey.FIND_COORDINATOR: ((GROUPS, Operation.DESCRIBE),),
    **dict.fromkeys(
        (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
        ((GROUPS, Operation.READ),),
    ),
    ApiKey.OFFSET_COMMIT: ((GROUPS, Operation.READ), (TOPIC, Operation.READ)),
    ApiKey.OFFSET_DELETE: ((GROUPS, Operation.DELETE), (TOPIC, Operation.READ)),
    ApiKey.OFFSET_FETCH: ((GROUPS, Operation.DESCRIBE), (TOPIC, Operation.DESCRIBE)),
    ApiKey.DESCRIBE_GROUPS: ((GROUPS, Operation.DESCRIBE),),
    ApiKey.DELETE_GROUPS: ((GROUPS, Operation.DELETE),),
    ApiKey.DESCRIBE_CONFIGS: (
        (TOPIC, Operation.DESCRIBE_CONFIGS),
        (CLUSTER, Operation.DESCRIBE_CONFIGS),
    ),
    ApiKey.ALTER_CONFIGS: ((TOPIC, Operation.ALTER_CONFIGS),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: ((TOPIC, Operation.ALTER_CONFIGS),),
}
"""The ACLs that each API needs on all names (the reference's table). Without any one of them, the
request is refused, in whole or in part."""
ON_CONTROLLER = {
    **{
        key: NEEDS[key]
        for key in (*FORWARDED_API_KEYS, ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_CONFIGS)
    },
    ApiKey.DESCRIBE_CLUSTER: ((CLUSTER, Operation.ALTER),),
}
"""The same for the APIs that the port of a controller serves."""
FILTERING = {ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_CLUSTER}
"""The APIs that a broker answers for every client, with what the client may see."""
BY_ID: dict[int, int] = {
    ApiKey.PRODUCE: 13,
    ApiKey.FETCH: 13,
    ApiKey.METADATA: 12,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 10,
}
"""The first version whose request names topics by id."""
UNBOUNDED = 1 << 15
"""No API has such a version."""


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    """A cluster with the group that the requests name. The answer about a missing group would hide
    that of its topics."""
    with secured_cluster() as found:
        key, version = ApiKey.OFFSET_COMMIT, 8
        made = found.ask(ROOT, BUILDERS[key](found.world, version), version, PORTS["broker"])
        assert ErrorCode.NONE in codes(made), "partition 9 does not exist"
        yield found


def codes(value: object) -> set[int]:
    """Return all error codes in a response."""
    if dataclasses.is_dataclass(value):
        found: set[int] = set()
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            found |= {part} if field.name.endswith("error_code") else codes(part)
        return found
    if isinstance(value, tuple):
        return set().union(*(codes(each) for each in value))
    return set()


def renamed(value: Any, names: dict[str, str]) -> Any:
    """Return the message with other names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: renamed(getattr(value, field.name), names)
            for field in dataclasses.fields(value)
        }
        return replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(renamed(each, names) for each in value)
    return names.get(value, value) if isinstance(value, str) else value


CREATION_ASKED_SINCE = 4
"""The first version of Metadata that says whether it may create topics. Earlier ones always may."""


def needs_of(port: str, key: int, version: int) -> tuple[Need, ...]:
    needs = (NEEDS if port == "broker" else ON_CONTROLLER)[key]
    if key == ApiKey.METADATA and version < CREATION_ASKED_SINCE:
        needs += ((TOPIC, Operation.CREATE),)
    return needs


def rows() -> Iterator[tuple[str, int, int]]:
    for name, needs in (("broker", NEEDS), ("controller", ON_CONTROLLER)):
        for key in sorted(needs):
            for version in range(APIS[key].min_version, APIS[key].max_version + 1):
                yield name, key, version


def served(secured: Secured, port: str, key: int) -> bool:
    cluster = secured.node.cluster
    brokers = cluster.brokers[0].process
    assert brokers is not None and brokers.broker is not None
    controller = cluster.controllers[0].process
    assert controller is not None
    server: Any = brokers.broker.client_ports[0]
    if port == "controller":
        server = controller.controller.port._server  # type: ignore[union-attr]
    return key in server.routes


@pytest.mark.parametrize(("port", "key", "version"), list(rows()))
def test_a_request_needs_its_permissions(
    secured: Secured, port: str, key: int, version: int
) -> None:
    assert served(secured, port, key)
    needs = needs_of(port, key, version)
    world = replace(secured.world, endpoint_type=CONTROLLERS) if port == "controller" else None
    request = BUILDERS[key](world or secured.world, version)
    address = PORTS[port]
    refused = codes(secured.ask(NOBODY, request, version, address))
    if (key, version < 3) == (ApiKey.DESCRIBE_LOG_DIRS, True):
        assert not refused & DENIALS  # this version has no error; the list is empty
    else:
        assert refused & DENIALS, refused
    secured.allow(*needs)
    try:
        allowed = codes(secured.ask(ALICE, request, version, address))
    finally:
        secured.forget()
    assert not allowed & DENIALS, allowed
    if len(needs) > 1 and key != ApiKey.CREATE_TOPICS:
        for missing in needs:
            secured.allow(*(each for each in needs if each != missing))
            fresh = renamed(request, {"missing": f"missing-{missing[1].name}-{version}"})
            try:
                found = codes(secured.ask(ALICE, fresh, version, address))
            finally:
                secured.forget()
            assert found & DENIALS, (missing, found)
    assert not codes(secured.ask(ROOT, request, version, address)) & DENIALS


@pytest.mark.parametrize(
    ("port", "key", "version"),
    [row for row in rows() if row[2] < BY_ID.get(row[1], UNBOUNDED)],
)
def test_a_forbidden_name_reads_the_same_whether_it_exists_or_not(
    secured: Secured, port: str, key: int, version: int
) -> None:
    names = (READ, WRITTEN, GROWN, GROUP, "missing")
    absent = {name: f"absent-{number}" for number, name in enumerate(names)}
    one = {name: f"name-{number}" for number, name in enumerate(names)}
    two = {absent[name]: one[name] for name in names}
    world = replace(secured.world, endpoint_type=CONTROLLERS) if port == "controller" else None
    request = BUILDERS[key](world or secured.world, version)
    existing = secured.ask(NOBODY, request, version, PORTS[port])
    missing = secured.ask(NOBODY, renamed(request, absent), version, PORTS[port])
    assert comparable(renamed(existing, one)) == comparable(renamed(missing, two))


def comparable(value: Any) -> Any:
    """Return the message with sorted arrays, because names decide the order of some, and without
    the random id of a fetch session."""
    if hasattr(value, "session_id"):
        value = replace(value, session_id=0)
    return ordered(value)


def ordered(value: Any) -> Any:
    """Return the message with sorted arrays."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: ordered(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(sorted((ordered(each) for each in value), key=repr))
    return value


@pytest.mark.parametrize("port", PORTS)
def test_every_api_has_a_row(secured: Secured, port: str) -> None:
    known = NEEDS if port == "broker" else ON_CONTROLLER
    for key in APIS:
        if served(secured, port, key):
            assert key in known or key in FREE or key in FILTERING, APIS[key].name
