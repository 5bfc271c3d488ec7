"""The newest changes of partitions with their stages, and the stages of all nodes, as
`quorate status --changes` reads them over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from quorate.cli.client.admin import Admin
from quorate.cli.console.views.change_rows import CHANGES, NODES, change_rows, node_rows
from quorate.cli.console.views.table import Table
from quorate.cli.status.changes import read_changes
from quorate.cli.status.cluster_status import Status
from quorate.cli.topics.topic_view import TopicView


class ChangesView:
    """The changes of one reading. The thread of the watcher owns it. `changes.LIMIT` of
    `cli/status` bounds their number."""

    COLUMNS: ClassVar = {"changes": CHANGES, "nodes": NODES}

    def read(
        self, admin: Admin, status: Status, topics: Sequence[TopicView]
    ) -> Mapping[str, Table]:
        """Return the tables `changes` and `nodes`. Raise Refused if no node serves its stages, as
        those of Apache Kafka do not, and NotReachable if no node answers."""
        report = read_changes(admin, every=True)
        note = "older changes are left out" if report.is_partial else ""
        return {
            "changes": Table(CHANGES, change_rows(report), note),
            "nodes": Table(NODES, node_rows(report)),
        }
