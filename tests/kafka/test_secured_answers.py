"""The same requests to a secured Apache Kafka 4.1.1 and to ours: the same answers to each client.

Every API and version is asked by an anonymous client, by a user with permissions for something
else, by users without one of several permissions, and by the right user. The permissions are those
of the table in `tests/ports/test_authorization.py`, so Kafka checks that table too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from quorate.quorum.protocol.acl_codes import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.schemas import acls
from quorate.quorum.protocol.wire import Message
from tests.golden.nodes import KAFKA, QUORATE
from tests.kafka.comparison import DIFFERENCES as OPEN_DIFFERENCES
from tests.kafka.comparison import SOMETIMES, differing, normal
from tests.kafka.one_node import Connection
from tests.kafka.secured_node import ADMIN, SecuredNode
from tests.kafka.test_answers import SIDES, advertised, answered, prepare
from tests.kafka.tools import missing
from tests.ports.requests import BUILDERS, CONTROLLERS, GROUP, GROWN, MORE, READ, WRITTEN, World
from tests.ports.secured import CLUSTER, GROUPS, TOPIC, Need
from tests.ports.test_authorization import BY_ID, NEEDS, UNBOUNDED, comparable, renamed

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
DIFFERENCES = {
    (
        "SyncGroup",
        ".error_code",
    ): "Kafka checks the protocol's type and name before the permissions",
    ("DescribeQuorum", ".nodes.listeners.name"): "Kafka's nodes log in at a listener of their own",
}
"""(API, path without indexes): the reason for which secured nodes may differ there, beyond the
differences of `comparison.py`."""
ANONYMOUS, WRONG, RIGHT = "anonymous", "wrong", "right"
NAMES = (READ, WRITTEN, GROWN, GROUP, "missing")
ABSENT = {name: f"absent-{number}" for number, name in enumerate(NAMES)}
ACL_VERSION = 3
FEWEST = 100
SETTLE_S = 1.0
"""The time after which a node has replayed its ACLs."""


@dataclass(frozen=True, slots=True)
class Role:
    """A user for the requests of one API. `needs` are the user's permissions."""

    name: str
    needs: tuple[Need, ...]


def roles_of(key: int) -> Iterator[Role]:
    """Yield the users of one API, with some of its permissions or all."""
    needs = NEEDS.get(key, ())
    if len(needs) > 1:
        for number, missing_one in enumerate(needs):
            rest = tuple(each for each in needs if each != missing_one)
            yield Role(f"without-{key}-{number}", rest)
    yield Role(f"{RIGHT}-{key}", needs)


ROLES = {key: tuple(roles_of(key)) for key in APIS}
OTHERS = ((TOPIC, Operation.READ), (GROUPS, Operation.READ), (CLUSTER, Operation.CREATE_TOKENS))
USERS = {WRONG: (), **{role.name: role.needs for roles in ROLES.values() for role in roles}}


def acl(user: str, kind: ResourceType, operation: Operation, name: str) -> acls.AclCreation:
    return acls.AclCreation(
        resource_type=kind,
        resource_name=CLUSTER_NAME if kind == CLUSTER else name,
        resource_pattern_type=PatternType.LITERAL,
        principal=f"User:{user}",
        host="*",
        operation=operation,
        permission_type=PermissionType.ALLOW,
    )


def allow(admin: Connection, *creations: acls.AclCreation) -> None:
    answer: Any = admin.ask(acls.CreateAclsRequest(creations=creations), ACL_VERSION)
    assert {each.error_code for each in answer.results} == {0}, answer
    time.sleep(SETTLE_S)


@dataclass(frozen=True, slots=True)
class Side:
    """A prepared node, and the connection of its super user."""

    node: SecuredNode
    world: World
    admin: Connection


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Side]]:
    root = tmp_path_factory.mktemp("secured")
    with ExitStack() as stack:
        found = {}
        for program in (KAFKA, QUORATE):
            node = SecuredNode(root / program.name, program, list(USERS))
            stack.enter_context(node.running())
            admin = node.log_in(ADMIN)
            stack.callback(admin.close)
            world = prepare(admin, program.name)
            wrong = [acl(WRONG, kind, operation, "other") for kind, operation in OTHERS]
            right = [acl(user, *need, "*") for user, needs in USERS.items() for need in needs]
            allow(admin, *wrong, *right)
            found[program.name] = Side(node, world, admin)
        yield found


@dataclass(frozen=True, slots=True)
class Found:
    """A difference."""

    api: str
    version: int
    role: str
    path: str
    kafka: Any
    ours: Any

    @property
    def place(self) -> tuple[str, str]:
        return self.api, re.sub(r"\[\d+\]", "", self.path)


def requests(key: int, role: str, world: World, version: int) -> Iterator[Message]:
    """Yield the requests of one user. Those without permissions also name what does not exist."""
    for build in (BUILDERS[key], *(each for other, each in MORE if other == key)):
        request = build(world, version)
        yield request
        if not role.startswith(RIGHT):
            yield renamed(request, ABSENT)


def differences(
    sides: dict[str, Side], key: int, role: str, connections: dict[str, Connection], *, port: str
) -> Iterator[Found]:
    api = APIS[key]
    worlds = {side: sides[side].world for side in SIDES}
    if port == "controller":
        worlds = {side: replace(each, endpoint_type=CONTROLLERS) for side, each in worlds.items()}
    ranges = [advertised(connections[side]).get(key, range(0)) for side in SIDES]
    for version in range(api.min_version, api.max_version + 1):
        if not all(version in each for each in ranges):
            continue
        asked = [requests(key, role, worlds[side], version) for side in SIDES]
        for both in zip(*asked, strict=True):
            kafka, ours = (
                normal(answered(connections[side], request, version))
                for side, request in zip(SIDES, both, strict=True)
            )
            for path, theirs, mine in differing(kafka, ours):
                yield Found(api.name, version, f"{port} {role}", path, theirs, mine)


def connected(side: Side, role: str, *, controller: bool = False) -> Connection:
    """Connect as an anonymous client or as a user. All clients of the controller are anonymous."""
    if controller or role == ANONYMOUS:
        return side.node.connect(controller=controller)
    return side.node.log_in(role)


def compared(sides: dict[str, Side], role: str, *keys: int, controller: bool) -> Iterator[Found]:
    connections = {side: connected(sides[side], role, controller=controller) for side in SIDES}
    port = "controller" if controller else "broker"
    for key in keys:
        yield from differences(sides, key, role, connections, port=port)
    for connection in connections.values():
        connection.close()


def everything(sides: dict[str, Side]) -> Iterator[Found]:
    keys = sorted(BUILDERS)
    yield from compared(sides, ANONYMOUS, *keys, controller=False)
    yield from compared(sides, ANONYMOUS, *keys, controller=True)
    yield from compared(sides, WRONG, *keys, controller=False)
    for key in keys:
        for role in ROLES[key]:
            yield from compared(sides, role.name, key, controller=False)
    for side in sides.values():
        allow(
            side.admin,
            *(acl("ANONYMOUS", kind, Operation.ALL, "*") for kind in (TOPIC, GROUPS, CLUSTER)),
        )
    yield from compared(sides, f"{RIGHT} at the controller", *keys, controller=True)


def pairs(sides: dict[str, Side], side: str, role: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the answers about names that exist, and about absent names, with equal names."""
    one = {name: f"name-{number}" for number, name in enumerate(NAMES)}
    two = {ABSENT[name]: one[name] for name in NAMES}
    connection = connected(sides[side], role)
    served = advertised(connection)
    for key in sorted(NEEDS.keys() & served.keys()):
        for version in served[key]:
            if version >= BY_ID.get(key, UNBOUNDED) or not APIS[key].serves(version):
                continue
            request = BUILDERS[key](sides[side].world, version)
            existing = answered(connection, request, version)
            missing_ones = answered(connection, renamed(request, ABSENT), version)
            yield (
                f"{APIS[key].name} v{version}",
                normal(comparable(renamed(existing, one))),
                normal(comparable(renamed(missing_ones, two))),
            )
    connection.close()


@pytest.mark.parametrize("role", [ANONYMOUS, WRONG])
def test_a_forbidden_name_reads_the_same_whether_it_exists_or_not(
    sides: dict[str, Side], role: str
) -> None:
    for side in SIDES:
        found = list(pairs(sides, side, role))
        assert len(found) > FEWEST
        assert [(name, one, two) for name, one, two in found if one != two] == []


def test_the_same_answers_to_each_client(sides: dict[str, Side]) -> None:
    known = {**OPEN_DIFFERENCES, **DIFFERENCES}
    needed, unexpected = set(), []
    for found in everything(sides):
        needed.add(found.place)
        if found.place not in known and found.place not in SOMETIMES:
            unexpected.append(str(found))
    assert not unexpected, "\n".join(unexpected)
    assert DIFFERENCES.keys() <= needed
