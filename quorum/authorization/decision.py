"""The decision of Kafka's StandardAuthorizer about one action (KIP-801).

An ACL is about an action if it covers the resource, the principal, the host and the operation. One
such ACL with DENY refuses the action. Otherwise one with ALLOW permits it. Without such an ACL, the
action is refused. Only if no ACL of any principal covers the resource, the setting
allow.everyone.if.no.acl.found decides. Super users are permitted everything; `authorizer.py` asks
for them first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorate.quorum.authorization.hosts import covers
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.acls import Acl, AclSet, ByPrincipal, Pattern
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.acl_codes import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)

IMPLIED_BY = {
    Operation.DESCRIBE: frozenset(
        (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.ALTER_CONFIGS,)),
}
"""The operations that also permit another one. A DENY implies nothing."""
NONE_IMPLIED: frozenset[Operation] = frozenset()


class Action(NamedTuple):
    """An operation on one resource."""

    operation: Operation
    resource_type: ResourceType
    resource_name: str


class Client(NamedTuple):
    """The text of a client's principal, and its host in the form of `canonical_host`."""

    principal: str
    host: str


class Decision(NamedTuple):
    """The outcome, and the ACL or the name of the rule that led to it."""

    allowed: bool
    rule: Acl | str


SUPER_USER = Decision(True, "SuperUser")
DEFAULT_ALLOW = Decision(True, "DefaultAllow")
DEFAULT_DENY = Decision(False, "DefaultDeny")


def decide(acls: AclSet, client: Client, action: Action, *, allow_everyone: bool) -> Decision:
    """Return the decision of the ACLs. `allow_everyone` is allow.everyone.if.no.acl.found."""
    found = False
    allowed: Acl | None = None
    for by_principal in covering(acls, action.resource_type, action.resource_name):
        found = True
        for acl in of_client(by_principal, client):
            if not has_operation(acl, action.operation):
                continue
            if acl.permission_type == PermissionType.DENY:
                return Decision(False, acl)
            if acl.permission_type == PermissionType.ALLOW and allowed is None:
                allowed = acl
    if allowed is not None:
        return Decision(True, allowed)
    return DEFAULT_ALLOW if allow_everyone and not found else DEFAULT_DENY


def covering(acls: AclSet, resource_type: int, name: str) -> Iterator[ByPrincipal]:
    """Yield the ACLs of each pattern that covers the resource: its name, `*`, and its prefixes."""
    patterns = [
        Pattern(resource_type, PatternType.LITERAL, name),
        Pattern(resource_type, PatternType.LITERAL, WILDCARD),
    ]
    patterns += (
        Pattern(resource_type, PatternType.PREFIXED, name[:length])
        for length in acls.prefix_lengths.get(resource_type, ())
        if length <= len(name)
    )
    for pattern in dict.fromkeys(patterns):
        by_principal = acls.by_pattern.get(pattern)
        if by_principal is not None:
            yield by_principal


def of_client(by_principal: ByPrincipal, client: Client) -> Iterator[Acl]:
    """Yield the ACLs that are about the client's principal and host."""
    for acl in of_principal(by_principal, client.principal):
        if covers(acl.host, client.host):
            yield acl


def of_principal(by_principal: ByPrincipal, principal: str) -> Iterator[Acl]:
    """Yield the ACLs that are about the principal, on any host."""
    for each in (principal, WILDCARD_PRINCIPAL):
        yield from by_principal.get(each, ())


def has_operation(acl: Acl, operation: Operation) -> bool:
    """Return True if the ACL is about the operation, itself or by implication."""
    if acl.operation in (operation, Operation.ALL):
        return True
    implied = acl.operation in IMPLIED_BY.get(operation, NONE_IMPLIED)
    return implied and acl.permission_type == PermissionType.ALLOW


def permits_any(
    acls: AclSet, client: Client, operation: Operation, resource_type: ResourceType
) -> IncrementalWork[bool]:
    """Return True if the client may perform `operation` on some resource of the type (KIP-679).

    A DENY of all names refuses it, and otherwise an ALLOW of all names permits it. An ALLOW of one
    name or prefix permits it, unless a DENY covers all that it permits. No operation implies
    another here. The steps read all ACLs, because any of them may permit it."""
    pace = Pace()
    allowed: list[Pattern] = []
    denied: set[Pattern] = set()
    for pattern, by_principal in acls.by_pattern.items():
        if pace.is_time():
            yield
        if pattern.resource_type != resource_type:
            continue
        for acl in of_principal(by_principal, client.principal):
            if pace.is_time():
                yield
            if acl.operation not in (operation, Operation.ALL) or not covers(acl.host, client.host):
                continue
            if acl.permission_type == PermissionType.DENY:
                denied.add(pattern)
            elif acl.permission_type == PermissionType.ALLOW:
                allowed.append(pattern)
    everything = Pattern(resource_type, PatternType.LITERAL, WILDCARD)
    if everything in denied or everything in allowed:
        return everything not in denied
    prefixes = {each.resource_name for each in denied if each.pattern_type == PatternType.PREFIXED}
    lengths = sorted({len(each) for each in prefixes})
    for pattern in allowed:
        if pace.is_time(1 + len(lengths)):
            yield
        name = pattern.resource_name
        if pattern not in denied and not any(name[:length] in prefixes for length in lengths):
            return True
    return False
