"""A view is read while a page shows it, and only then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.console.views import views as views_module
from quorate.cli.console.views.table import Table
from quorate.cli.console.views.views import LOOKED_S, READING, Views
from quorate.cli.status.cluster_status import Status

NO_ADMIN, NO_STATUS = cast(Admin, None), cast(Status, None)


class Counted:
    """A view that counts its readings. It is refused in the second one, and fails in the third."""

    def __init__(self) -> None:
        self.readings = 0

    def read(self, admin: Admin, status: Any, topics: Any) -> Mapping[str, Table]:
        self.readings += 1
        if self.readings == 2:
            raise Refused("the broker is gone")
        if self.readings == 3:
            raise KeyError("a defect")
        return {"counted": Table(("number",), [(self.readings,)])}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.setattr(views_module, "VIEWS", {Counted: {"counted": ("number",)}})
    monkeypatch.setattr(views_module, "VIEW_OF", {"counted": Counted})
    return [0.0]


def test_a_view_is_read_only_while_a_page_shows_it(clock: list[float]) -> None:
    views = Views(lambda: clock[0])
    assert views.read(NO_ADMIN, NO_STATUS, ()) == {"counted": Table(("number",), (), READING)}
    assert views.look("counted"), "it must be read soon"
    assert not views.look("counted"), "another page shows it already"
    assert views.read(NO_ADMIN, NO_STATUS, ())["counted"].rows == [(1,)]
    clock[0] += LOOKED_S
    assert views.read(NO_ADMIN, NO_STATUS, ())["counted"] == Table(("number",), (), READING)
    assert views.look("counted")
    assert views.read(NO_ADMIN, NO_STATUS, ())["counted"].rows == [(1,)], "its state was dropped"


def test_a_view_that_cannot_be_read_keeps_its_rows_with_the_reason(clock: list[float]) -> None:
    views = Views(lambda: clock[0])
    views.look("counted")
    views.read(NO_ADMIN, NO_STATUS, ())
    assert views.read(NO_ADMIN, NO_STATUS, ())["counted"] == Table(
        ("number",), [(1,)], "the broker is gone"
    )
    assert "a defect" in views.read(NO_ADMIN, NO_STATUS, ())["counted"].note
    assert views.read(NO_ADMIN, NO_STATUS, ())["counted"] == Table(("number",), [(4,)])


def test_other_tables_are_no_views(clock: list[float]) -> None:
    views = Views(lambda: clock[0])
    assert not views.look("partitions")
    assert views.tables().keys() == {"counted"}
