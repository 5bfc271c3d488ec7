"""DescribeAcls, CreateAcls and DeleteAcls (29 to 31) on ports without an authorizer.

They are answered as by Kafka without an authorizer, with SECURITY_DISABLED. If the APIs were
missing, tools such as MirrorMaker would take the node for one that is too old.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.quorum.incremental_work import IncrementalWork, begun
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from quorate.quorum.protocol.schemas.error_responses import ERROR_RESPONSES
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.server import Handler, RequestContext

ERROR = ErrorCode.SECURITY_DISABLED
NO_AUTHORIZER = (
    "No Authorizer is configured. Set authorizer.class.name on all nodes, and super.users, and "
    "restart them."
)
"""Kafka's message, and the remedy."""


def describe_acls(context: RequestContext, request: DescribeAclsRequest) -> None:
    """Answer SECURITY_DISABLED."""
    context.respond(DescribeAclsResponse(error_code=ERROR, error_message=NO_AUTHORIZER))


def create_acls(
    context: RequestContext, request: CreateAclsRequest
) -> IncrementalWork[None] | None:
    """Answer SECURITY_DISABLED for each ACL, in steps if there are many."""
    result = AclCreationResult(error_code=ERROR, error_message=NO_AUTHORIZER)
    results = (result,) * len(request.creations)
    return begun(context.respond_steps(CreateAclsResponse(results=results)))


def delete_acls(
    context: RequestContext, request: DeleteAclsRequest
) -> IncrementalWork[None] | None:
    """Answer SECURITY_DISABLED for each filter, in steps if there are many."""
    result = DeleteAclsFilterResult(error_code=ERROR, error_message=NO_AUTHORIZER)
    results = (result,) * len(request.filters)
    return begun(context.respond_steps(DeleteAclsResponse(filter_results=results)))


ACL_HANDLERS: Mapping[int, Handler] = {
    ApiKey.DESCRIBE_ACLS: describe_acls,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: delete_acls,
}
"""The handlers by API."""


def without_authorizer(request: Message) -> Message | None:
    """Return SECURITY_DISABLED for a forwarded request that changes ACLs, which a broker with an
    authorizer may send. Return None for other requests."""
    if request.API_KEY not in (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
        return None
    return ERROR_RESPONSES[request.API_KEY](request, ERROR, NO_AUTHORIZER)
