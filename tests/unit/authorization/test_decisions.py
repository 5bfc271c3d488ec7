"""The decisions of the authorizer, against an oracle that scans all ACLs."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorum.authorization import authorizer as module
from quorate.quorum.authorization import hosts
from quorate.quorum.authorization.authorizer import Authorizer, AuthorizerSettings
from quorate.quorum.authorization.decision import Action, Client, Decision, decide
from quorate.quorum.authorization.hosts import canonical_host
from quorate.quorum.authorization.permits import Permits
from quorate.quorum.ids import EpochOffset
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.acls import EMPTY, Acl, AclSet
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.pace import STEP_ENTRIES
from quorate.quorum.principal import ANONYMOUS, USER, Principal
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from tests.unit.authorization.cases import HOSTS, NAMES, Case, acl_set, answers, random_case

READ_A = Action(Operation.READ, ResourceType.TOPIC, "a")
ALICE = Principal(USER, "alice")
OPEN = AuthorizerSettings(allow_everyone=True)
CLOSED = AuthorizerSettings()


def acl(
    permission: PermissionType = PermissionType.ALLOW,
    *,
    operation: Operation = Operation.READ,
    name: str = "a",
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> Acl:
    codes = int(ResourceType.TOPIC), int(pattern)
    return Acl(*codes, name, principal, host, int(operation), int(permission))


def allowed(
    *acls: Acl,
    action: Action = READ_A,
    host: str = "10.0.0.1",
    principal: Principal = ALICE,
    settings: AuthorizerSettings = CLOSED,
) -> bool:
    authorizer = Authorizer(settings)
    return authorizer.decide(acl_set(acls), authorizer.client(principal, host), action).allowed


IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def scanned(case: Case, fields: tuple[object, ...]) -> bool:
    """The rules of KIP-11, one ACL after the other."""
    user, host, code, kind, name = fields
    if f"User:{user}" in case.settings.super_users:
        return True
    on_resource = [
        each
        for each in case.acls
        if each.resource_type == kind
        and (
            str(name).startswith(each.resource_name)
            if each.pattern_type == PatternType.PREFIXED
            else each.resource_name in ("*", name)
        )
    ]
    if not on_resource:
        return case.settings.allow_everyone
    of_user = [
        each
        for each in on_resource
        if each.principal in ("User:*", f"User:{user}") and each.host in ("*", host)
    ]
    named = [each for each in of_user if each.operation in (Operation.ALL, code)]
    if any(each.permission_type == PermissionType.DENY for each in named):
        return False
    implying = IMPLYING.get(Operation(int(str(code))), set())
    return any(
        each.permission_type == PermissionType.ALLOW
        and (each in named or each.operation in implying)
        for each in of_user
    )


@given(st.integers(0, 2**32))
def test_decisions_are_those_of_a_scan(seed: int) -> None:
    case = random_case(Random(seed))
    for question, answer in zip(case.questions, answers(case), strict=True):
        if question.kind == "ask":
            assert (answer == "ALLOWED") == scanned(case, question.fields), (case, question)


def test_without_acls_the_setting_decides() -> None:
    """An ACL of another principal ends the permission of everybody else."""
    assert not allowed()
    assert allowed(settings=OPEN)
    assert not allowed(acl(principal="User:bob"), settings=OPEN)


def test_super_users_are_not_denied() -> None:
    everybody = acl(PermissionType.DENY, name="*", principal="User:*", operation=Operation.ALL)
    super_users = AuthorizerSettings(frozenset({"User:alice"}))
    assert allowed(everybody, settings=super_users)
    assert not allowed(everybody, settings=super_users, principal=ANONYMOUS)


def test_a_deny_beats_every_allow_whatever_its_pattern() -> None:
    for denied in ("a", "*"):
        assert not allowed(acl(), acl(PermissionType.DENY, name=denied))
    assert not allowed(acl(), acl(PermissionType.DENY, pattern=PatternType.PREFIXED))


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "::ffff:10.0.0.1"),
        ("2001:DB8::1", "2001:db8:0:0:0:0:0:1"),
    ],
)
def test_hosts_are_compared_as_addresses(mine: str, theirs: str) -> None:
    """The client's host is `mine`, and the ACL has the other text of the same address."""
    assert allowed(acl(host=theirs), host=mine)
    assert not allowed(acl(), acl(PermissionType.DENY, host=theirs), host=mine)
    assert not allowed(acl(host="10.9.9.9"), host=mine)


def test_a_host_that_is_no_address_is_compared_as_text() -> None:
    assert canonical_host("client-7") == "client-7"
    assert allowed(acl(host="client-7"), host="client-7")


def test_only_hosts_with_several_texts_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def canonical_host(host: str) -> str:
        parsed.append(host)
        return host

    monkeypatch.setattr(hosts, "canonical_host", canonical_host)
    for acl_host in ("10.0.0.2", "10.0.0.1", "*", "a.example", "::1"):
        assert hosts.covers(acl_host, "10.0.0.1") == (acl_host in ("10.0.0.1", "*"))
    assert parsed == ["::1"]


def test_a_decision_is_remembered_until_the_acls_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules run once for each set of ACLs, and a full cache is emptied."""
    asked: list[Action] = []

    def counted(acls: AclSet, client: Client, action: Action, *, allow_everyone: bool) -> Decision:
        asked.append(action)
        return decide(acls, client, action, allow_everyone=allow_everyone)

    monkeypatch.setattr(module, "decide", counted)
    authorizer, acls = Authorizer(CLOSED), acl_set([acl()])
    client = authorizer.client(ALICE, "10.0.0.1")
    assert all(authorizer.decide(acls, client, READ_A).allowed for _ in range(3))
    assert len(asked) == 1
    assert not authorizer.decide(EMPTY, client, READ_A).allowed
    assert authorizer.decide(acls, client, READ_A).allowed
    assert len(asked) == 3
    monkeypatch.setattr(module, "MAX_CACHED", 2)
    for name in NAMES:
        authorizer.decide(acls, client, READ_A._replace(resource_name=name))
        assert len(authorizer._decisions) <= 2


def test_decisions_about_long_names_are_not_remembered() -> None:
    """A client without permissions must not fill the memory of the node with its names."""
    authorizer = Authorizer(CLOSED)
    client = authorizer.client(ALICE, "10.0.0.1")
    names: list[str] = []
    for length in (module.MAX_CACHED_CHARS, module.MAX_CACHED_CHARS + 1, 32_000):
        name = "a" * length
        acls = acl_set([acl(name="aa", pattern=PatternType.PREFIXED)])
        for operation, expected in ((Operation.READ, True), (Operation.WRITE, False)):
            action = READ_A._replace(resource_name=name, operation=operation)
            assert authorizer.decide(acls, client, action).allowed == expected
        names = [each.resource_name for _, each in authorizer._decisions]
        assert all(len(each) <= module.MAX_CACHED_CHARS for each in names)
    assert names, "shorter names are remembered"


DENY, PREFIXED = PermissionType.DENY, PatternType.PREFIXED
MANY = 5_000
DOMINATING = acl(DENY, name="t", pattern=PREFIXED)


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([acl(name=f"t{each}", principal="User:bob") for each in range(MANY)], False),
        ([acl(host=f"10.1.{each // 256}.{each % 256}") for each in range(MANY)], False),
        ([DOMINATING, *(acl(name=f"t{each}") for each in range(MANY))], False),
        ([DOMINATING, *(acl(name=f"t{each}") for each in range(MANY)), acl()], True),
    ],
    ids=["of another principal", "of other hosts", "dominated", "all but one dominated"],
)
def test_a_search_for_any_permission_is_incremental(acls: list[Acl], expected: bool) -> None:
    """20,000 ACLs took 70 ms in one step."""
    authorizer, found = Authorizer(CLOSED), acl_set(acls)
    client = authorizer.client(ALICE, "10.0.0.1")
    asked = found, client, Operation.READ, ResourceType.TOPIC
    steps = authorizer.permits_any(*asked)
    paused = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assert end.value == expected
            break
        paused += 1
    assert paused >= MANY // STEP_ENTRIES
    authorizer.decide(EMPTY, client, READ_A)
    steps = authorizer.permits_any(*asked)
    next(steps)
    authorizer.decide(EMPTY, client, READ_A)  # the ACLs change between the steps
    assert finished(steps) == expected
    assert not authorizer._any, "a decision about former ACLs is not remembered"
    assert finished(authorizer.permits_any(*asked)) == expected
    next_steps = authorizer.permits_any(*asked)
    with pytest.raises(StopIteration):
        next(next_steps)  # the decision is remembered


def test_a_removed_acl_leaves_no_trace() -> None:
    """The index of an emptied set equals that of a new one."""
    acls = [
        acl(name=name, pattern=pattern, principal=user, host=host)
        for name in NAMES
        for pattern in (PatternType.LITERAL, PatternType.PREFIXED)
        for user in ("User:alice", "User:bob")
        for host in HOSTS
    ]
    found = acl_set(acls)
    for acl_id in sorted(found.by_id):
        assert found.contains(found.by_id[acl_id])
        found = found.without(acl_id)
    assert found == EMPTY


class CountedHost(str):
    """A host that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedHost.compared += 1
        return str.__eq__(self, other)

    def __lt__(self, other: str) -> bool:
        CountedHost.compared += 1
        return str.__lt__(self, other)

    __hash__ = str.__hash__


def test_acls_of_one_principal_are_not_compared_with_each_other() -> None:
    """The replay of a batch would take seconds."""
    CountedHost.compared = 0
    acls = [acl(host=CountedHost(f"10.0.{number % 7}.{number}")) for number in range(1000)]
    found = acl_set(acls)
    assert all(map(found.contains, acls))
    for acl_id in sorted(found.by_id):
        found = found.without(acl_id)
    assert found == EMPTY
    assert CountedHost.compared < 100 * len(acls)


def test_before_any_record_only_super_users_are_served() -> None:
    """An empty image has no ACLs, and allow.everyone.if.no.acl.found must not open it."""
    authorizer = Authorizer(AuthorizerSettings(frozenset({"User:root"}), allow_everyone=True))
    loaded = MetadataImage(last=EpochOffset(1, 5))
    for image, user, expected in (
        (MetadataImage(), "alice", False),
        (MetadataImage(), "root", True),
        (loaded, "alice", True),
    ):
        client = authorizer.client(Principal(USER, user), "10.0.0.1")
        permits = Permits(authorizer, image, client, lambda *decision: None)
        assert permits.topic(Operation.READ, "a") == expected
        assert finished(permits.any_topic(Operation.WRITE)) == expected
