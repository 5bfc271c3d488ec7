"""The reassignments in progress, and what delays each of them.

The sizes of the replicas are those of DescribeLogDirs: one request for each broker that has or gets
a replica."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import ClassVar

from quorate.cli.client.admin import Admin
from quorate.cli.client.groups import Place
from quorate.cli.console.views.answers import Notes, answers_of
from quorate.cli.console.views.reassignment_rows import (
    REASSIGNMENTS,
    Copied,
    copied_after,
    reassignment_rows,
)
from quorate.cli.console.views.table import Table
from quorate.cli.status.cluster_status import Status
from quorate.cli.topics.topic_view import PartitionView, TopicView
from quorate.quorum.protocol.schemas import log_dirs as schemas

MAX_MOVING = 5_000
"""The most reassignments that the table has."""


class ReassignmentsView:
    """The reassignments of the last reading. The thread of the watcher owns it."""

    COLUMNS: ClassVar = {"reassignments": REASSIGNMENTS}

    def __init__(self) -> None:
        self._copied: dict[Place, Copied] = {}

    def read(
        self, admin: Admin, status: Status, topics: Sequence[TopicView]
    ) -> Mapping[str, Table]:
        """Return the table `reassignments`. Raise Refused if a broker does not serve the
        request."""
        notes = Notes()
        every = [
            ((topic.name, each.partition), each)
            for topic in topics
            for each in topic.partitions
            if each.adding or each.removing
        ]
        moving = dict(islice(every, MAX_MOVING))
        if len(every) > MAX_MOVING:
            notes.add(f"the first {MAX_MOVING} of {len(every)} reassignments are shown")
        sizes = sizes_of(admin, moving, notes)
        now_s = time.monotonic()
        self._copied = copied_after(self._copied, moving, sizes, now_s)
        up = frozenset(each.id for each in status.brokers if each.state == "up")
        rows = reassignment_rows(moving, sizes, self._copied, up, now_s)
        return {"reassignments": Table(REASSIGNMENTS, rows, str(notes))}


def sizes_of(
    admin: Admin, moving: Mapping[Place, PartitionView], notes: Notes
) -> dict[Place, dict[int, int]]:
    """Return the size in bytes of each replica of the partitions, by partition and broker.

    A replica whose broker does not answer is left out. Raise Refused as `answers_of` does."""
    wanted: dict[int, dict[str, list[int]]] = {}
    for (topic, number), partition in moving.items():
        for broker in partition.replicas:
            wanted.setdefault(broker, {}).setdefault(topic, []).append(number)
    requests = {
        broker: schemas.DescribeLogDirsRequest(
            topics=tuple(
                schemas.DescribableLogDirTopic(topic=topic, partitions=tuple(numbers))
                for topic, numbers in topics.items()
            )
        )
        for broker, topics in wanted.items()
    }
    found: dict[Place, dict[int, int]] = {}
    answers = answers_of(admin, requests, schemas.DescribeLogDirsResponse, notes)
    for broker, answer in answers.items():
        for directory in answer.results:
            for held in directory.topics:
                for each in held.partitions:
                    if not each.is_future_key:
                        place = held.name, each.partition_index
                        found.setdefault(place, {})[broker] = each.partition_size
    return found
