"""DeleteAcls: a few bytes of filters cannot demand much memory or time of the controller."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.clients import acls as rules
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from tests.unit.controller.harness import Driver

ANY = 1


def with_acls(count: int) -> Driver:
    driver = Driver()
    creations = tuple(
        AclCreation(
            resource_type=2,
            resource_name=f"t{number}",
            resource_pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        )
        for number in range(count)
    )
    driver.handle(CreateAclsRequest(creations=creations))
    assert len(driver.image.acls) == count
    return driver


def deleted(driver: Driver, principals: list[str | None]) -> list[tuple[int, int]]:
    """Delete the ACLs of these principals. Return the error and the number of ACLs of each."""
    filters = tuple(
        DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=each,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        for each in principals
    )
    results = driver.handle(DeleteAclsRequest(filters=filters)).filter_results
    return [(each.error_code, len(each.matching_acls)) for each in results]


def test_filters_that_select_the_same_acls_are_bounded_together() -> None:
    driver = with_acls(50)
    assert deleted(driver, [None] * 201) == [(ErrorCode.INVALID_REQUEST, 0)] * 201
    assert len(driver.image.acls) == 50
    assert deleted(driver, [None] * 200) == [(ErrorCode.NONE, 50)] * 200
    assert not len(driver.image.acls)


def test_filters_that_select_nothing_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = with_acls(50)
    monkeypatch.setattr(rules, "MAX_COMPARED", 1000)
    assert deleted(driver, ["User:x"] * 21) == [(ErrorCode.INVALID_REQUEST, 0)] * 21
    assert deleted(driver, ["User:x"] * 20) == [(ErrorCode.NONE, 0)] * 20
    assert len(driver.image.acls) == 50
