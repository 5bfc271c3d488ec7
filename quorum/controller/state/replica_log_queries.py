"""Questions to live replicas about their logs, before an unclean election (KIP-966, part 2).

An unclean election loses the records that the new leader lacks. So the active controller asks every
active replica of the partition for its last leader epoch and log end offset, and elects the one
with the longest log: the largest epoch, then the largest offset. It waits for all answers, but at
most QUERY_TIMEOUT_MS. A replica that does not answer is not considered. If none answers, the last
known leader leads if it is active, otherwise the first active replica in assignment order, as in
Kafka 4.1.

A replica that becomes active while the query of its partition is open is asked, too. It does not
extend the time of the query.

The queries are soft state. A new active controller asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from quorate.quorum.controller.state.messages import ReplicaLog
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.result import AskReplicaLogs
from quorate.quorum.controller.state.sessions import NEVER_MS
from quorate.quorum.metadata.image import Broker

Logs = Mapping[int, ReplicaLog]
"""The answers to one query, by broker id."""

QUERY_TIMEOUT_MS = 2000
"""The time that a query waits for answers, in ms. Afterwards the election uses those that came."""
KNOWN_MS = 5000
"""The time for which the answers to an administrator's request are kept, in ms."""
MAX_QUERIES = 1000
"""The maximum number of partitions with an open query, and of those with kept answers."""
MAX_WANTED = 10_000
"""The maximum number of partitions that wait for a query. The periodic search for leaderless
partitions finds those that were left out."""


@dataclass(slots=True)
class Query:
    """The open query of one partition. An administrator's query ends without an election.

    `asked` are the epochs of the brokers that were asked, by broker id. `waiting` are those of them
    that have not answered, and `logs` the answers."""

    deadline_ms: int
    asked_by_administrator: bool
    asked: dict[int, int] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    logs: dict[int, ReplicaLog] = field(default_factory=dict)

    def ask(self, broker: Broker) -> bool:
        """Note that the broker is asked. Return False if this incarnation was asked before. The
        answer of an earlier incarnation does not count any more."""
        if self.asked.get(broker.id) == broker.epoch:
            return False
        self.asked[broker.id] = broker.epoch
        self.waiting.add(broker.id)
        self.logs.pop(broker.id, None)
        return True


@dataclass(frozen=True, slots=True)
class Longest:
    """The result of a query. `leader` is the replica with the longest log, or None if no replica
    answered. `end_offset` is the end of its log. `old_end_offset` is the largest offset that any
    replica has reported."""

    leader: int | None = None
    end_offset: int | None = None
    old_end_offset: int | None = None


def longest(logs: Logs, candidates: Sequence[int]) -> Longest:
    """Return the replica among `candidates`, in order of preference, with the longest log."""
    answered = [each for each in candidates if each in logs]
    if not answered:
        return Longest()
    best = max(answered, key=lambda each: (logs[each].last_epoch, logs[each].end_offset))
    reported = (max(each.end_offset, each.high_watermark) for each in logs.values())
    return Longest(best, logs[best].end_offset, max(reported))


class ReplicaLogQueries:
    """The queries of one active controller."""

    def __init__(self) -> None:
        self._wanted: dict[PartitionKey, None] = {}
        self._open: dict[PartitionKey, Query] = {}
        self._known: dict[PartitionKey, tuple[int, dict[int, ReplicaLog]]] = {}

    def want(self, key: PartitionKey) -> None:
        """Note that the partition needs an unclean election. `take_wanted` returns it, also if its
        query is open, because replicas may have become active since."""
        if len(self._wanted) < MAX_WANTED:
            self._wanted[key] = None

    def take_wanted(self) -> list[PartitionKey]:
        """Return wanted partitions for which queries may be opened, and remove them."""
        room = max(0, MAX_QUERIES - len(self._open))
        keys = list(self._wanted)[:room]
        for key in keys:
            del self._wanted[key]
        return keys

    def open(
        self,
        candidates: Mapping[PartitionKey, Sequence[Broker]],
        now_ms: int,
        *,
        administrator: bool = False,
    ) -> list[AskReplicaLogs]:
        """Open a query for each partition. `candidates` are the active brokers with a replica.

        Return the questions, one for each broker. A partition that has an open query keeps it with
        its deadline, and asks the brokers that were not asked yet. If no answer is missing, it is
        overdue now.
        """
        asked: dict[Broker, list[PartitionKey]] = {}
        for key, brokers in candidates.items():
            query = self._open.get(key)
            if query is None:
                if len(self._open) >= MAX_QUERIES:
                    continue
                query = self._open[key] = Query(now_ms + QUERY_TIMEOUT_MS, administrator)
            for broker in brokers:
                if query.ask(broker):
                    asked.setdefault(broker, []).append(key)
            if not query.waiting:
                query.deadline_ms = now_ms
        return [
            AskReplicaLogs(
                broker_id=broker.id,
                broker_epoch=broker.epoch,
                partitions=tuple(keys),
                timeout_ms=QUERY_TIMEOUT_MS,
            )
            for broker, keys in asked.items()
        ]

    def answered(self, asked: AskReplicaLogs, logs: Iterable[ReplicaLog]) -> list[PartitionKey]:
        """Store the answers of one broker. Return the partitions whose query is complete. A query
        that `open` gets again is not, because it may have to ask another broker."""
        answers = {(log.topic_id, log.partition_id): log for log in logs}
        complete = []
        for key in asked.partitions:
            query = self._open.get(key)
            if query is None or query.asked.get(asked.broker_id) != asked.broker_epoch:
                continue
            if asked.broker_id not in query.waiting:
                continue
            query.waiting.discard(asked.broker_id)
            if key in answers:
                query.logs[asked.broker_id] = answers[key]
            if not query.waiting and key not in self._wanted:
                complete.append(key)
        return complete

    def overdue(self, now_ms: int) -> list[PartitionKey]:
        """Return the partitions whose query has waited for QUERY_TIMEOUT_MS."""
        return [key for key, query in self._open.items() if query.deadline_ms <= now_ms]

    def deadline_ms(self, now_ms: int) -> int:
        """Return the time at which a query is overdue or a wanted one may be opened, or
        NEVER_MS."""
        if self._wanted and len(self._open) < MAX_QUERIES:
            return now_ms
        return min((query.deadline_ms for query in self._open.values()), default=NEVER_MS)

    def is_open(self, key: PartitionKey) -> bool:
        """Return True if the partition has an open query."""
        return key in self._open

    def close(self, key: PartitionKey, now_ms: int) -> dict[int, ReplicaLog] | None:
        """Close the query of a partition and return its answers by broker id. Return None if an
        administrator's request needs them; `known` then returns them for KNOWN_MS."""
        query = self._open.pop(key)
        if not query.asked_by_administrator:
            return query.logs
        for old in [each for each, (until_ms, _) in self._known.items() if until_ms <= now_ms]:
            del self._known[old]
        if len(self._known) < MAX_QUERIES:
            self._known[key] = now_ms + KNOWN_MS, query.logs
        return None

    def known(self, key: PartitionKey, now_ms: int) -> Logs:
        """Return the kept answers of an administrator's query, by broker id. They may be empty."""
        until_ms, logs = self._known.get(key, (0, {}))
        return logs if now_ms < until_ms else {}
