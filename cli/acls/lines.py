"""Kafka's texts of resources and ACLs, as kafka-acls prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from quorate.quorum.metadata.acls import Acl, Pattern
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    name_of,
)


def resource_text(pattern: Pattern) -> str:
    """Return the text of a resource, such as `ResourcePattern(resourceType=TOPIC, name=t, ...)`."""
    return (
        f"ResourcePattern(resourceType={name_of(ResourceType, pattern.resource_type)}, "
        f"name={pattern.resource_name}, patternType={name_of(PatternType, pattern.pattern_type)})"
    )


def acl_text(acl: Acl) -> str:
    """Return the text of an ACL without its resource."""
    return (
        f"(principal={acl.principal}, host={acl.host}, operation="
        f"{name_of(Operation, acl.operation)}, "
        f"permissionType={name_of(PermissionType, acl.permission_type)})"
    )


def entry_lines(acls: Iterable[Acl]) -> list[str]:
    """Return the indented lines of ACLs."""
    return [f"\t{acl_text(each)}" for each in acls]


def adding_lines(pattern: Pattern, acls: Sequence[Acl]) -> Iterator[str]:
    """Yield the lines that announce new ACLs. Kafka's tool prints a blank before the first."""
    yield f"Adding ACLs for resource `{resource_text(pattern)}`: "
    first, *rest = entry_lines(acls)
    yield f" {first}"
    yield from rest
    yield ""


def listing_lines(found: Mapping[Pattern, Sequence[Acl]]) -> Iterator[str]:
    """Yield the lines of the present ACLs, by resource."""
    for pattern, acls in found.items():
        yield f"Current ACLs for resource `{resource_text(pattern)}`:"
        yield from entry_lines(acls)
        yield ""


def removal_question(pattern: Pattern, acls: Sequence[Acl]) -> str:
    """Return the question before a removal."""
    if not acls:
        return (
            "Are you sure you want to delete all ACLs for resource filter "
            f"`{resource_text(pattern)}`? (y/n)"
        )
    lines = "\n".join(entry_lines(acls))
    return (
        f"Are you sure you want to remove ACLs: \n {lines} \n from resource filter "
        f"`{resource_text(pattern)}`? (y/n)"
    )
