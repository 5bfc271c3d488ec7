"""The requests of `quorate acls`: they add, remove and list ACLs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from quorate.cli.acls.entries import Wanted
from quorate.cli.acls.lines import adding_lines, removal_question
from quorate.cli.client.admin import Admin, check
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.metadata.acls import Acl, Pattern
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from quorate.quorum.protocol.schemas import acls as schemas

Found = dict[Pattern, list[Acl]]
"""The present ACLs by resource, sorted."""


def add(admin: Admin, wanted: Wanted) -> None:
    """Add ACLs, and print them. Raise Refused for the first that the cluster refuses."""
    for pattern, entries in wanted.items():
        for line in adding_lines(pattern, entries):
            echo(line)
        request = schemas.CreateAclsRequest(
            creations=tuple(
                schemas.AclCreation(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    resource_pattern_type=each.pattern_type,
                    principal=each.principal,
                    host=each.host,
                    operation=each.operation,
                    permission_type=each.permission_type,
                )
                for each in entries
            )
        )
        answer = admin.change(
            request,
            schemas.CreateAclsResponse,
            lambda answer: [each.error_code for each in answer.results],
            repeatable=True,
        )
        for result in answer.results:
            check(result.error_code, result.error_message)


def remove(admin: Admin, wanted: Wanted, *, force: bool) -> None:
    """Remove ACLs, after a question for each resource unless `force`. Without principals, remove
    all ACLs of the resource."""
    for pattern, entries in wanted.items():
        if not force and input_of(removal_question(pattern, entries)) != "y":
            continue
        filters = [filter_of(pattern, each) for each in entries] or [filter_of(pattern, None)]
        answer = admin.change(
            schemas.DeleteAclsRequest(filters=tuple(filters)),
            schemas.DeleteAclsResponse,
            lambda answer: [each.error_code for each in answer.filter_results],
            repeatable=True,
        )
        for result in answer.filter_results:
            check(result.error_code, result.error_message)


def input_of(question: str) -> str:
    """Print the question and return the answer in lower case, or "" at the end of the input."""
    echo(question)
    return sys.stdin.readline().strip().lower()


def filter_of(pattern: Pattern, acl: Acl | None) -> schemas.DeleteAclsFilter:
    """Return the filter of one ACL, or of all ACLs of the resource."""
    return schemas.DeleteAclsFilter(
        resource_type_filter=pattern.resource_type,
        resource_name_filter=pattern.resource_name,
        pattern_type_filter=pattern.pattern_type,
        principal_filter=None if acl is None else acl.principal,
        host_filter=None if acl is None else acl.host,
        operation=Operation.ANY if acl is None else acl.operation,
        permission_type=PermissionType.ANY if acl is None else acl.permission_type,
    )


def listed(admin: Admin, patterns: Sequence[Pattern]) -> Found:
    """Return the ACLs of the resources, or all ACLs without any resource, sorted."""
    found: Found = {}
    wanted: Sequence[Pattern | None] = patterns or (None,)
    for pattern in wanted:
        request = schemas.DescribeAclsRequest(
            resource_type_filter=ResourceType.ANY if pattern is None else pattern.resource_type,
            resource_name_filter=None if pattern is None else pattern.resource_name,
            pattern_type_filter=PatternType.ANY if pattern is None else pattern.pattern_type,
            principal_filter=None,
            host_filter=None,
            operation=Operation.ANY,
            permission_type=PermissionType.ANY,
        )
        answer = admin.ask(
            request, schemas.DescribeAclsResponse, lambda answer: [answer.error_code]
        )
        check(answer.error_code, answer.error_message)
        for resource in answer.resources:
            key = Pattern(resource.resource_type, resource.pattern_type, resource.resource_name)
            found[key] = sorted(
                Acl(*key, each.principal, each.host, each.operation, each.permission_type)
                for each in resource.acls
            )
    return dict(sorted(found.items()))
