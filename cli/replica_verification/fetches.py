"""Fetches the same partitions from all their replicas, in rounds, and compares the batches.

In each round, every broker gets one Fetch request, and all brokers work at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.cli.client.admin import Admin
from quorate.cli.client.by_leader import TopicPartition
from quorate.cli.client.connection import ConnectionLost, Unsupported
from quorate.cli.client.consumer import EARLIEST, LATEST
from quorate.cli.client.errors import Refused
from quorate.cli.get_offsets import UNKNOWN_OFFSET, offsets_at
from quorate.cli.replica_verification.comparison import Comparison, Difference, ReplicaResponse
from quorate.cli.topics.topic_view import matching
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import fetch

VERIFIER = -2
"""Kafka's id of a debugging consumer. Every replica answers its fetches, up to its log end."""
RESPONSE_MAX_BYTES = 50 << 20
"""The bound of one response for all partitions of a broker."""
Responses = dict[TopicPartition, ReplicaResponse]


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The size and wait limits of one fetch."""

    partition_max_bytes: int
    max_wait_ms: int


class ReplicaFetches:
    """The comparisons of all partitions of some topics (`comparisons`), and the fetches for them.

    Owned by one thread. Every `compare` is one round."""

    def __init__(
        self, admin: Admin, topics_include: str, timestamp: int, settings: FetchSettings
    ) -> None:
        """Look up the partitions, their offsets at `timestamp` and their latest offsets. Block.

        A comparison begins at the first offset whose record is not older than `timestamp` (ms).
        `topics_include` is a regular expression for topic names.

        Raise Refused if no topic matches or an offset cannot be read."""
        self._admin = admin
        self._settings = settings
        topics = {each.name: each for each in admin.metadata(None).topics if each.name is not None}
        names = matching(list(topics), topics_include, exclude_internal=False)
        replicas = {
            (name, each.partition_index): tuple(each.replica_nodes)
            for name in names
            for each in topics[name].partitions
        }
        if not replicas:
            raise Refused(
                "No topics found. --topics-include if specified, is either filtering out all "
                "topics or there is no topic."
            )
        self._ids = {name: topics[name].topic_id for name in names}
        keys = sorted(replicas)
        starts, ends = (known_offsets(admin, keys, each) for each in (timestamp, LATEST))
        self.comparisons = [
            Comparison(
                topic=key[0],
                partition=key[1],
                replicas=replicas[key],
                offset=starts[key],
                end=ends[key],
            )
            for key in keys
        ]
        self._queue = list(self.comparisons)

    def compare(self) -> tuple[bool, list[tuple[Comparison, Difference]]]:
        """Fetch once from every broker, and compare. Block.

        The first result is True if the offset of at least one comparison advanced. The second one
        lists the new differences between replicas. A lost connection is neither a difference nor
        raised. It is noted in the `problems` of the comparisons, which then do not advance. Raise
        Refused if a broker does not support the request, NotReachable if no broker answers a
        request for metadata."""
        before = {each.key: each.offset for each in self._queue}
        responses = self._fetched()
        faults = [
            (each, fault)
            for each in self._queue
            for fault in each.compare(
                {broker: responses[broker][each.key] for broker in each.replicas}
            )
        ]
        self._pass_over_deleted()
        still = [each for each in self._queue if each.offset == before[each.key]]
        moved = [each for each in self._queue if each.offset != before[each.key]]
        # A response is bounded in size. Partitions without progress are first in the next requests.
        self._queue = [*still, *moved]
        return bool(moved), faults

    def only(self, wanted: Sequence[Comparison]) -> None:
        """Continue with these comparisons only. Others cannot be continued later."""
        keys = {each.key for each in wanted}
        self._queue = [each for each in self._queue if each.key in keys]

    def _fetched(self) -> dict[int, Responses]:
        wanted: dict[int, list[Comparison]] = {}
        for each in self._queue:
            for broker in each.replicas:
                wanted.setdefault(broker, []).append(each)
        requests = {broker: self._request(wanted[broker]) for broker in sorted(wanted)}
        try:
            answers = self._admin.ask_nodes(requests, fetch.FetchResponse)
        except Unsupported as error:
            raise Refused(str(error)) from None
        return {broker: self._responses_of(wanted[broker], answers[broker]) for broker in wanted}

    def _request(self, comparisons: Sequence[Comparison]) -> fetch.FetchRequest:
        topics: dict[str, list[fetch.FetchPartition]] = {}
        for each in comparisons:
            topics.setdefault(each.topic, []).append(
                fetch.FetchPartition(
                    partition=each.partition,
                    fetch_offset=each.offset,
                    partition_max_bytes=self._settings.partition_max_bytes,
                )
            )
        return fetch.FetchRequest(
            replica_id=VERIFIER,
            replica_state=fetch.ReplicaState(replica_id=VERIFIER),
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=1,
            max_bytes=RESPONSE_MAX_BYTES,
            topics=tuple(
                fetch.FetchTopic(topic=name, topic_id=self._ids[name], partitions=tuple(each))
                for name, each in topics.items()
            ),
        )

    def _responses_of(
        self, wanted: Sequence[Comparison], answer: fetch.FetchResponse | ConnectionLost
    ) -> Responses:
        if isinstance(answer, ConnectionLost):
            return {each.key: ReplicaResponse(problem=str(answer)) for each in wanted}
        nothing = ReplicaResponse(
            problem=ErrorCode.of(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR).name
        )
        names = {self._ids[each.topic]: each.topic for each in wanted}
        responses = {each.key: nothing for each in wanted}
        for topic in answer.responses:
            name = topic.topic or names[topic.topic_id]
            for each in topic.partitions:
                responses[name, each.partition_index] = response_of(each)
        return responses

    def _pass_over_deleted(self) -> None:
        """Continue at the new log start offset of partitions whose records were deleted."""
        late = [each.key for each in self._queue if OUT_OF_RANGE in each.problems.values()]
        for key, (error, earliest) in offsets_at(self._admin, late, EARLIEST).items():
            for each in self._queue:
                if each.key == key and not error:
                    each.offset = max(each.offset, earliest)


OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE.name


def response_of(partition: fetch.PartitionData) -> ReplicaResponse:
    """Return a replica's response for one partition."""
    if partition.error_code:
        return ReplicaResponse(problem=ErrorCode.of(partition.error_code).name)
    return ReplicaResponse(partition.high_watermark, memoryview(partition.records or b""))


def known_offsets(
    admin: Admin, keys: list[TopicPartition], timestamp: int
) -> dict[TopicPartition, int]:
    """Return the offset of each partition at a timestamp in ms. It is the log end of a partition
    whose records are all older.

    Raise Refused if a partition has an error."""
    found = offsets_at(admin, keys, timestamp)
    late = [key for key, (error, offset) in found.items() if not error and offset == UNKNOWN_OFFSET]
    if late and timestamp != LATEST:
        found |= offsets_at(admin, late, LATEST)
    for (name, partition), (error, _) in found.items():
        if error:
            raise Refused(f"{name}-{partition}: {ErrorCode.of(error).name}")
    return {key: offset for key, (_, offset) in found.items()}
