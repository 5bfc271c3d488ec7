"""The resources and ACLs that the options of `quorate acls` name, as in kafka-acls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import click

from quorate.quorum.metadata.acls import Acl, Pattern
from quorate.quorum.protocol.acl_codes import (
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from quorate.quorum.protocol.authorized_operations import SUPPORTED

PRODUCER_TOPIC = (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE)
PRODUCER_ID = (Operation.WRITE, Operation.DESCRIBE)
CONSUMER_TOPIC = (Operation.READ, Operation.DESCRIBE)
CONSUMER_GROUP = (Operation.READ,)
Wanted = dict[Pattern, list[Acl]]
"""The ACLs of each resource. Without any, a removal means all ACLs of the resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The resources of a command line. `pattern_type` is that of all of them but the cluster."""

    pattern_type: PatternType
    topics: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    delegation_tokens: Sequence[str] = ()
    users: Sequence[str] = ()
    cluster: bool = False

    def patterns(self) -> list[Pattern]:
        """Return all resources."""
        named = (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.DELEGATION_TOKEN, self.delegation_tokens),
            (ResourceType.USER, self.users),
        )
        found = [Pattern(kind, self.pattern_type, each) for kind, names in named for each in names]
        return found + ([CLUSTER] if self.cluster else [])


CLUSTER = Pattern(ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The principals, hosts and operations of a command line, without the resources."""

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    allow_hosts: Sequence[str] = ()
    deny_hosts: Sequence[str] = ()
    operations: Sequence[Operation] = field(default=(Operation.ALL,))

    def acls(self, pattern: Pattern, operations: Collection[Operation]) -> list[Acl]:
        """Return the ACLs of one resource. Without a host, all hosts are meant."""
        sides = (
            (PermissionType.ALLOW, self.allow, self.allow_hosts),
            (PermissionType.DENY, self.deny, self.deny_hosts),
        )
        return sorted(
            {
                Acl(*pattern, principal, host, operation, permission)
                for permission, principals, hosts in sides
                for principal in principals
                for host in (hosts or (WILDCARD,))
                for operation in operations
            }
        )


def plain(resources: Resources, rights: Rights) -> Wanted:
    """Return the ACLs of the named operations on each resource. Raise UsageError if a resource does
    not support an operation, as Kafka's tool."""
    wanted: Wanted = {}
    for pattern in resources.patterns():
        kind = ResourceType(pattern.resource_type)
        supported = (*SUPPORTED[kind], Operation.ALL)
        if not set(rights.operations) <= set(supported):
            names = ", ".join(each.name for each in supported)
            raise click.UsageError(f"ResourceType {kind.name} only supports operations [{names}]")
        wanted[pattern] = rights.acls(pattern, rights.operations)
    return wanted


def of_producer(resources: Resources, rights: Rights, *, idempotent: bool) -> Wanted:
    """Return the ACLs of a producer: WRITE, DESCRIBE and CREATE on its topics, and WRITE and
    DESCRIBE on its transactional ids."""
    wanted: Wanted = {}
    for name in resources.topics:
        pattern = Pattern(ResourceType.TOPIC, resources.pattern_type, name)
        wanted[pattern] = rights.acls(pattern, PRODUCER_TOPIC)
    for name in resources.transactional_ids:
        pattern = Pattern(ResourceType.TRANSACTIONAL_ID, resources.pattern_type, name)
        wanted[pattern] = rights.acls(pattern, PRODUCER_ID)
    if idempotent:
        wanted[CLUSTER] = rights.acls(CLUSTER, (Operation.IDEMPOTENT_WRITE,))
    return wanted


def of_consumer(resources: Resources, rights: Rights) -> Wanted:
    """Return the ACLs of a consumer: READ and DESCRIBE on its topics, and READ on its groups."""
    wanted: Wanted = {}
    for name in resources.topics:
        pattern = Pattern(ResourceType.TOPIC, resources.pattern_type, name)
        wanted[pattern] = rights.acls(pattern, CONSUMER_TOPIC)
    for name in resources.groups:
        pattern = Pattern(ResourceType.GROUP, resources.pattern_type, name)
        wanted[pattern] = rights.acls(pattern, CONSUMER_GROUP)
    return wanted


def merged(*parts: Wanted) -> Wanted:
    """Return the ACLs of several parts of a command line."""
    wanted: Wanted = {}
    for part in parts:
        for pattern, acls in part.items():
            wanted[pattern] = sorted({*wanted.get(pattern, ()), *acls})
    return wanted
