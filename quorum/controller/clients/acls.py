"""CreateAcls and DeleteAcls: an administrator adds and removes ACLs.

An error of one ACL or filter fails none of the others. All records are one atomic batch. An ACL
that exists, or that a request names twice, is created without a record. An ACL that several filters
select is removed once, and each filter reports it.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.quorum.authorization.filters import AclFilter, matches
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import DecisionSteps
from quorate.quorum.controller.state.result import (
    MAX_RECORDS_PER_USER_OP,
    RequestRefused,
    Result,
    TooManyRecords,
    check_room,
)
from quorate.quorum.ids import Uuid, random_uuid
from quorate.quorum.metadata.acl_records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.quorum.metadata.acls import EMPTY, Acl, AclSet, Pattern
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.metadata.snapshot import acl_record
from quorate.quorum.protocol.acl_codes import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

MAX_ACLS = 20_000
"""Maximum number of ACLs. Kafka has no bound. Every node holds all of them in memory, and a filter
without a name scans them."""
MAX_COMPARED = 2_000_000
"""Maximum number of ACLs that the filters of one request are compared with, together. That takes
about two seconds, in which the controller decides nothing else."""
CREATED = AclCreationResult(error_code=ErrorCode.NONE)
CREATION_ENTRIES = 10
"""The weight of a creation, in entries of a step (`Pace`)."""


def create_acls(context: Context, request: CreateAclsRequest) -> DecisionSteps:
    """Add ACLs in steps.

    An ACL that is not valid fails with INVALID_REQUEST, and one beyond MAX_ACLS with
    POLICY_VIOLATION. A request that would write more than MAX_RECORDS_PER_USER_OP records fails as
    a whole."""
    acls, pace = context.image.acls, Pace()
    new: dict[Acl, AccessControlEntryRecord] = {}
    results: list[AclCreationResult] = []
    try:
        for asked in request.creations:
            if pace.is_time(CREATION_ENTRIES):
                yield None
            acl = acl_of(asked)
            try:
                check(acl)
                if acl not in new and not acls.contains(acl):
                    check_count(len(acls) + len(new) + 1)
                    new[acl] = acl_record(new_id(context, acls), acl)
                    check_room(len(new))
            except RequestRefused as error:
                results.append(
                    AclCreationResult(error_code=error.error, error_message=error.message)
                )
            else:
                results.append(CREATED)
    except TooManyRecords as error:
        failed = AclCreationResult(error_code=error.error, error_message=error.message)
        return Result(response=CreateAclsResponse(results=(failed,) * len(request.creations)))
    return Result(tuple(new.values()), CreateAclsResponse(results=tuple(results)))


def acl_of(asked: AclCreation) -> Acl:
    """Return the ACL that a request describes."""
    return Acl(
        asked.resource_type,
        asked.resource_pattern_type,
        asked.resource_name,
        asked.principal,
        asked.host,
        asked.operation,
        asked.permission_type,
    )


def new_id(context: Context, acls: AclSet) -> Uuid:
    """Return an id that no ACL has."""
    while True:
        acl_id = random_uuid(context.random)
        if acl_id not in acls.by_id:
            return acl_id


def check(acl: Acl) -> None:
    """Raise RequestRefused if the ACL has no meaning."""
    codes = (
        ("resource type", acl.resource_type, set(ResourceType) - {ResourceType.ANY}),
        ("pattern type", acl.pattern_type, {PatternType.LITERAL, PatternType.PREFIXED}),
        ("operation", acl.operation, set(Operation) - {Operation.ANY}),
        ("permission type", acl.permission_type, {PermissionType.DENY, PermissionType.ALLOW}),
    )
    for what, code, known in codes:
        if code not in known:
            raise refused(f"Invalid {what} {code}")
    if not acl.resource_name:
        raise refused("Resource name should not be empty")
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise refused(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if ":" not in acl.principal:
        raise refused(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )


def check_count(acls: int) -> None:
    """Raise RequestRefused if `acls`, the number of ACLs after a change, is too large."""
    if acls > MAX_ACLS:
        raise RequestRefused(
            ErrorCode.POLICY_VIOLATION,
            f"At most {MAX_ACLS} ACLs may exist. Remove others first, or use prefixes.",
        )


def delete_acls(context: Context, request: DeleteAclsRequest) -> DecisionSteps:
    """Remove the ACLs that the filters select, in steps.

    A filter that is not valid fails with INVALID_REQUEST. A request fails with INVALID_REQUEST as a
    whole if its filters select more than MAX_RECORDS_PER_USER_OP ACLs together, or would be
    compared with more than MAX_COMPARED."""
    acls, pace = context.image.acls, Pace()
    compared = selected = 0
    removed: dict[Uuid, None] = {}
    results: list[DeleteAclsFilterResult] = []
    for asked in request.filters:
        try:
            wanted = filter_of(asked)
        except RequestRefused as error:
            results.append(
                DeleteAclsFilterResult(error_code=error.error, error_message=error.message)
            )
            continue
        some = candidates(acls, wanted)
        compared += len(some)
        if compared > MAX_COMPARED:
            return Result(response=too_many(request, TOO_MANY_COMPARED))
        found: list[DeleteAclsMatchingAcl] = []
        for acl_id, acl in some.items():
            if pace.is_time():
                yield None
            if matches(wanted, acl):
                removed[acl_id] = None
                found.append(DeleteAclsMatchingAcl(error_code=ErrorCode.NONE, **acl._asdict()))
        results.append(
            DeleteAclsFilterResult(error_code=ErrorCode.NONE, matching_acls=tuple(sorted_by(found)))
        )
        selected += len(found)
        if selected > MAX_RECORDS_PER_USER_OP:
            return Result(response=too_many(request, TOO_MANY_REMOVED))
    records = tuple(RemoveAccessControlEntryRecord(id=each) for each in removed)
    return Result(records, DeleteAclsResponse(filter_results=tuple(results)))


TOO_MANY_REMOVED = (
    f"Cannot remove more than {MAX_RECORDS_PER_USER_OP} acls in a single delete operation."
)
"""Kafka's message."""
TOO_MANY_COMPARED = (
    f"The filters would be compared with more than {MAX_COMPARED} ACLs together. Divide them into "
    "several requests."
)


def too_many(request: DeleteAclsRequest, reason: str) -> DeleteAclsResponse:
    """Return the response to a request that fails as a whole for this reason."""
    failed = DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=reason)
    return DeleteAclsResponse(filter_results=(failed,) * len(request.filters))


def sorted_by(found: list[DeleteAclsMatchingAcl]) -> list[DeleteAclsMatchingAcl]:
    """Return the ACLs in the order of their fields."""
    return sorted(
        found,
        key=lambda each: (
            each.resource_type,
            each.resource_name,
            each.pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        ),
    )


def candidates(acls: AclSet, wanted: AclFilter) -> Mapping[Uuid, Acl]:
    """Return the ACLs that the filter may select, by id: none if no ACL has the one pattern that
    the filter names, else all of them."""
    pattern = Pattern(wanted.resource_type, wanted.pattern_type, wanted.resource_name or "")
    names_one = wanted.resource_name is not None and wanted.resource_type != ResourceType.ANY
    exact = wanted.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
    if names_one and exact and pattern not in acls.by_pattern:
        return EMPTY.by_id
    return acls.by_id


def filter_of(asked: DeleteAclsFilter) -> AclFilter:
    """Return the filter of a request. Raise RequestRefused if one of its codes has no meaning."""
    codes = (
        ("resource type", asked.resource_type_filter, ResourceType),
        ("pattern type", asked.pattern_type_filter, PatternType),
        ("operation", asked.operation, Operation),
        ("permission type", asked.permission_type, PermissionType),
    )
    for what, code, known in codes:
        if code not in set(known):
            raise refused(f"Invalid {what} {code}")
    return AclFilter(
        asked.resource_type_filter,
        asked.pattern_type_filter,
        asked.resource_name_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def refused(message: str) -> RequestRefused:
    """Return the error INVALID_REQUEST with a message."""
    return RequestRefused(ErrorCode.INVALID_REQUEST, message)
