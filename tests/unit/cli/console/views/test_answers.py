"""Requests to several brokers: one that does not answer is noted, and asked once per reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from quorate.cli.client.admin import Admin
from quorate.cli.client.connection import ConnectionLost, Unsupported
from quorate.cli.client.errors import Refused
from quorate.cli.console.views.answers import Notes, answers_of
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest, ListGroupsResponse

ANSWER = ListGroupsResponse(error_code=0, groups=())
REQUESTS = {1: ListGroupsRequest(), 2: ListGroupsRequest()}


class Brokers:
    """Broker 1 answers, and broker 2 hangs."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def ask_nodes(self, requests: Mapping[int, Any], response: type) -> dict[int, Any]:
        self.asked += requests
        return {each: ANSWER if each == 1 else ConnectionLost("it hangs") for each in requests}


def test_a_broker_that_hangs_costs_one_request_per_reading() -> None:
    brokers, notes = Brokers(), Notes()
    admin = cast(Admin, brokers)
    for _ in range(3):
        assert answers_of(admin, REQUESTS, ListGroupsResponse, notes) == {1: ANSWER}
    assert brokers.asked == [1, 2, 1, 1]
    assert str(notes) == "broker 2 does not answer"
    answers_of(admin, REQUESTS, ListGroupsResponse, Notes())
    assert brokers.asked[-1] == 2, "the next reading asks again"


def test_a_broker_without_the_api_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Unsupported("it serves no ListGroups")

    brokers = Brokers()
    monkeypatch.setattr(brokers, "ask_nodes", refuse)
    with pytest.raises(Refused, match="no ListGroups"):
        answers_of(cast(Admin, brokers), REQUESTS, ListGroupsResponse, Notes())
