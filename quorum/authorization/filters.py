"""The filters with which DescribeAcls and DeleteAcls select ACLs (KIP-290).

Every field of a filter is a value, or leaves the field open. The pattern type has two open values:
ANY selects ACLs with this very name under both pattern types. MATCH selects the ACLs that bear on a
resource of this name: those of its name, of `*`, and of its prefixes.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.quorum.metadata.acls import Acl
from quorate.quorum.protocol.acl_codes import (
    WILDCARD,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)


class AclFilter(NamedTuple):
    """A filter. A name, principal or host of None leaves the field open, as ANY does for codes."""

    resource_type: int
    pattern_type: int
    resource_name: str | None
    principal: str | None
    host: str | None
    operation: int
    permission_type: int


def matches(wanted: AclFilter, acl: Acl) -> bool:
    """Return True if the filter selects the ACL."""
    return (
        wanted.resource_type in (ResourceType.ANY, acl.resource_type)
        and wanted.principal in (None, acl.principal)
        and wanted.host in (None, acl.host)
        and wanted.operation in (Operation.ANY, acl.operation)
        and wanted.permission_type in (PermissionType.ANY, acl.permission_type)
        and matches_name(wanted, acl)
    )


def matches_name(wanted: AclFilter, acl: Acl) -> bool:
    """Return True if the filter's name and pattern type select those of the ACL."""
    pattern, name = wanted.pattern_type, wanted.resource_name
    if pattern not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
        return False
    if name is None or name == acl.resource_name:
        return True
    if pattern != PatternType.MATCH:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name == WILDCARD
