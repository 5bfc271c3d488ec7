"""DescribeAcls on a node with an authorizer: the ACLs of the image that a filter selects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.authorization.filters import AclFilter, matches
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.acls import Acl, Pattern, pattern_of
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.acl_codes import Operation, PatternType, PermissionType, ResourceType
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from quorate.quorum.rpc.kafka.context import RequestContext

CODES = (
    ("resource type", "resource_type_filter", ResourceType),
    ("pattern type", "pattern_type_filter", PatternType),
    ("operation", "operation", Operation),
    ("permission type", "permission_type", PermissionType),
)
"""The fields of a request that hold codes."""


@dataclass(frozen=True, slots=True)
class DescribeAclsHandler:
    """Handles DescribeAcls on one port. `image` returns the committed image of the node."""

    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: DescribeAclsRequest
    ) -> IncrementalWork[None]:
        """Respond with the selected ACLs, sorted and by resource. A filter with a code that has no
        meaning gets INVALID_REQUEST."""
        for what, field, codes in CODES:
            code = getattr(request, field)
            if code not in set(codes):
                context.fail(ErrorCode.INVALID_REQUEST, f"Invalid {what} {code}")
                return
        wanted = AclFilter(
            request.resource_type_filter,
            request.pattern_type_filter,
            request.resource_name_filter,
            request.principal_filter,
            request.host_filter,
            request.operation,
            request.permission_type,
        )
        pace = Pace()
        found: dict[Pattern, list[Acl]] = {}
        for acl in self.image().acls.by_id.values():
            if pace.is_time():
                yield
            if matches(wanted, acl):
                found.setdefault(pattern_of(acl), []).append(acl)
        context.count_elements(2 * sum(map(len, found.values())))
        resources = []
        for pattern in sorted(found):
            yield
            resources.append(described(pattern, found[pattern]))
        response = DescribeAclsResponse(error_code=ErrorCode.NONE, resources=tuple(resources))
        yield from context.respond_steps(response)


def described(pattern: Pattern, acls: list[Acl]) -> DescribeAclsResource:
    """Return the ACLs of one resource pattern."""
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.resource_name,
        pattern_type=pattern.pattern_type,
        acls=tuple(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in sorted(acls)
        ),
    )
