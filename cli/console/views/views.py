"""The views that pages look at, and the tables that they have.

A view costs requests to many brokers. It is therefore read only while a page shows one of its
tables, once for all pages. A view that no page has shown for LOOKED_S loses its tables and its
state, so that they use no memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import click

from quorate.cli.client.admin import Admin
from quorate.cli.console.views.changes import ChangesView
from quorate.cli.console.views.configs import ConfigsView
from quorate.cli.console.views.groups import GroupsView
from quorate.cli.console.views.reassignments import ReassignmentsView
from quorate.cli.console.views.replicas import ReplicasView
from quorate.cli.console.views.table import Table
from quorate.cli.console.views.timeline import TimelineView
from quorate.cli.status.cluster_status import Status
from quorate.cli.topics.topic_view import TopicView

LOOKED_S = 30.0
"""The time for which a view is read after the last request for one of its tables."""
READING = "reading the cluster"
"""The note of a table that has not been read yet."""


class View(Protocol):
    """A view, which the thread of the watcher owns. It may keep state between two readings."""

    def read(
        self, admin: Admin, status: Status, topics: Sequence[TopicView]
    ) -> Mapping[str, Table]:
        """Return the tables of the view, of a cluster with this status and these topics.

        Raise ClickException if the cluster does not answer."""


VIEWS: Mapping[Callable[[], View], Mapping[str, tuple[str, ...]]] = {
    GroupsView: GroupsView.COLUMNS,
    ReplicasView: ReplicasView.COLUMNS,
    ReassignmentsView: ReassignmentsView.COLUMNS,
    ConfigsView: ConfigsView.COLUMNS,
    TimelineView: TimelineView.COLUMNS,
    ChangesView: ChangesView.COLUMNS,
}
"""Each view with its tables, and the columns of each table."""
VIEW_OF = {name: view for view, tables in VIEWS.items() for name in tables}


class Views:
    """The views that pages look at. `look` may be called by any thread, `read` and `drop` only by
    that of the watcher. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._looked_s: dict[Callable[[], View], float] = {}
        self._open: dict[Callable[[], View], View] = {}
        self._tables: dict[Callable[[], View], Mapping[str, Table]] = {}

    def look(self, name: str) -> bool:
        """Note that a page shows the table. Return True if no page has shown its view lately, so
        that it must be read soon. A table of no view is ignored."""
        view = VIEW_OF.get(name)
        if view is None:
            return False
        with self._lock:
            is_new = not self._is_shown(view)
            self._looked_s[view] = self._now_s()
        return is_new

    def read(self, admin: Admin, status: Status, topics: Sequence[TopicView]) -> dict[str, Table]:
        """Read the views that pages show, and return the tables of all views.

        If a view cannot be read, its tables keep their rows, and the reason is their note."""
        with self._lock:
            shown = [view for view in VIEWS if self._is_shown(view)]
        self._open = {view: self._open.get(view) or view() for view in shown}
        self._tables = {view: self._tables.get(view, unread(view)) for view in shown}
        for view, opened in self._open.items():
            try:
                self._tables[view] = opened.read(admin, status, topics)
            except click.ClickException as failed:
                self._tables[view] = noted(self._tables[view], failed.format_message())
            except Exception as failed:  # a defect of one view must not hide the others
                self._tables[view] = noted(self._tables[view], f"the reading failed: {failed!r}")
        return self.tables()

    def drop(self) -> None:
        """Drop the tables and the state of all views, which belong to another cluster."""
        self._open, self._tables = {}, {}

    def tables(self) -> dict[str, Table]:
        """Return the tables of all views. Those of a view that no page shows have no rows."""
        return {
            name: table
            for view in VIEWS
            for name, table in self._tables.get(view, unread(view)).items()
        }

    def _is_shown(self, view: Callable[[], View]) -> bool:
        looked_s = self._looked_s.get(view)
        return looked_s is not None and self._now_s() - looked_s < LOOKED_S


def unread(view: Callable[[], View]) -> dict[str, Table]:
    """Return the tables of a view before its first reading."""
    return {name: Table(columns, (), READING) for name, columns in VIEWS[view].items()}


def noted(tables: Mapping[str, Table], note: str) -> dict[str, Table]:
    """Return the tables with another note."""
    return {name: Table(table.columns, table.rows, note) for name, table in tables.items()}
