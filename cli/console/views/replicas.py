"""The lag of each replica behind its leader.

All brokers return the log end offsets of their own replicas. They are asked at the same time, each
with one request. A reading covers the partitions with a problem and the next ones, up to
PARTITIONS_PER_READING, so that its cost has a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import ClassVar

from quorate.cli.client.admin import Admin
from quorate.cli.client.groups import Place
from quorate.cli.console.views.answers import Notes
from quorate.cli.console.views.log_ends import ends_of
from quorate.cli.console.views.replica_rows import REPLICAS, Partitions, next_places, replica_rows
from quorate.cli.console.views.table import Table
from quorate.cli.status.cluster_status import Status
from quorate.cli.topics.topic_view import TopicView

TOOL = -2
"""The replica id of a tool. Every replica answers it with its own log end (Kafka's
DEBUGGING_REPLICA_ID)."""
PARTITIONS_PER_READING = 2_000
"""The most partitions whose log ends one reading asks for."""
MAX_PARTITIONS = 20_000
"""The most partitions that the table has."""


class ReplicasView:
    """The log ends of the last readings. The thread of the watcher owns it."""

    COLUMNS: ClassVar = {"replicas": REPLICAS}

    def __init__(self) -> None:
        self._ends: dict[Place, dict[int, int]] = {}
        self._last: Place | None = None

    def read(
        self, admin: Admin, status: Status, topics: Sequence[TopicView]
    ) -> Mapping[str, Table]:
        """Return the table `replicas`. Raise Refused if a broker does not serve the requests."""
        notes = Notes()
        partitions = dict(islice(partitions_of(topics).items(), MAX_PARTITIONS))
        if status.partitions > MAX_PARTITIONS:
            notes.add(f"the first {MAX_PARTITIONS} of {status.partitions} partitions are shown")
        bad = [(each.topic, each.partition) for each in status.problems]
        urgent = [each for each in bad if each in partitions][: PARTITIONS_PER_READING // 2]
        wanted = next_places(partitions, urgent, self._last, PARTITIONS_PER_READING)
        self._last = wanted[-1] if wanted else None
        self._ends = {place: ends for place, ends in self._ends.items() if place in partitions}
        self._ends.update(replica_ends(admin, partitions, wanted, notes))
        waiting = len(partitions) - len(self._ends)
        if waiting:
            notes.add(f"{waiting} partitions are not read yet")
        return {"replicas": Table(REPLICAS, replica_rows(partitions, self._ends), str(notes))}


def partitions_of(topics: Sequence[TopicView]) -> Partitions:
    """Return all partitions of the topics."""
    return {(topic.name, each.partition): each for topic in topics for each in topic.partitions}


def replica_ends(
    admin: Admin, partitions: Partitions, wanted: Sequence[Place], notes: Notes
) -> dict[Place, dict[int, int]]:
    """Return the log end offset of each replica of the wanted partitions, by partition and broker.

    A replica whose broker does not answer is left out. Raise as `ends_of` does."""
    replicas = [(broker, place) for place in wanted for broker in partitions[place].replicas]
    found: dict[Place, dict[int, int]] = {place: {} for place in wanted}
    for (broker, place), end in ends_of(admin, replicas, notes, TOOL).items():
        found[place][broker] = end
    return found
