"""A blocking consumer without a group: partitions of one topic, from given offsets on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.batches import whole_batches
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import Refused
from quorate.cli.client.partitions import Partitions
from quorate.quorum.log.batches.batch import BatchHeader, records_of
from quorate.quorum.log.batches.record import Record
from quorate.quorum.log.files.errors import CorruptBatch
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import fetch, list_offsets

EARLIEST, LATEST = -2, -1
MAX_WAIT_MS = 500
PARTITION_MAX_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class Consumed:
    """A record with its partition, the leader epoch of its batch and the type of its timestamp.

    `append_time` is True if the timestamp is the time of the append (LogAppendTime)."""

    partition: int
    epoch: int
    append_time: bool
    record: Record


class Consumer:
    """A consumer of one topic, owned by one thread, without fetch sessions.

    `numbers` are the partitions that it reads. The caller sets the position of each of them with
    `seek` or `assign` before the first `poll`, which otherwise raises KeyError. The consumer skips
    control records, but reads the records of open and aborted transactions."""

    def __init__(self, admin: Admin, topic: str, partitions: Sequence[int] = ()) -> None:
        """Look up the partitions of the topic; if `partitions` is empty, all of them are read.

        Raise Refused if the topic or a partition does not exist, and NotReachable if no node
        answers."""
        self._admin = admin
        self._partitions = Partitions(admin, topic)
        self.numbers = list(partitions) or self._partitions.numbers
        for number in self.numbers:
            if number not in self._partitions.numbers:
                check(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, f"partition {number}")
        self._positions: dict[int, int] = {}
        self.when_out_of_range: Callable[[int], int] | None = None
        """Returns the next position of a partition whose position is outside of the log, because
        retention or an unclean election has removed its records. None refuses to go on."""

    def seek(self, offset: int) -> None:
        """Set the position of every partition to EARLIEST, LATEST or an offset.

        EARLIEST and LATEST are looked up immediately. Raise as `offset_of` does."""
        for number in self.numbers:
            self._positions[number] = offset if offset >= 0 else self.offset_of(number, offset)

    def assign(self, partitions: Sequence[int], offset: int) -> None:
        """Read exactly these partitions, all of them from `offset` on, which is that of `seek`."""
        self.numbers = list(partitions)
        self._positions = {}
        self.seek(offset)

    def seek_to(self, positions: Mapping[int, int]) -> None:
        """Set the positions of some partitions."""
        self._positions.update(positions)

    @property
    def positions(self) -> dict[int, int]:
        """Return the next offset to read of every partition that has a position.

        It is the offset after the last record that `poll` has yielded, or a later one."""
        return dict(self._positions)

    def offset_of(self, partition: int, timestamp: int) -> int:
        """Return the offset for EARLIEST, LATEST or a timestamp in ms.

        For a timestamp it is the first offset whose record has this timestamp or a later one, and
        -1 if there is no such record. After a transient error the call looks up the leader and
        tries again, at most once per MAX_WAIT_MS of the Admin's timeout. Raise Refused on the last
        transient error or on any other, NotReachable if no node returns the metadata."""
        asked = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        topic = list_offsets.ListOffsetsTopic(name=self._partitions.topic, partitions=(asked,))
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, topics=(topic,), timeout_ms=self._admin.timeout_ms
        )
        attempts = max(1, self._admin.timeout_ms // MAX_WAIT_MS)
        for attempt in range(attempts):
            leader = self._partitions.leader(partition)
            try:
                answer = self._admin.ask_node(leader, request, list_offsets.ListOffsetsResponse)
            except ConnectionLost:
                self._admin.wait(MAX_WAIT_MS / 1000)
                self._partitions.refresh()
                continue
            (found,) = answer.topics[0].partitions
            if not ErrorCode.of(found.error_code).retriable or attempt == attempts - 1:
                check(found.error_code, None, f"partition {partition}")
                return found.offset
            self._admin.wait(MAX_WAIT_MS / 1000)
            self._partitions.refresh()
        check(ErrorCode.LEADER_NOT_AVAILABLE, None, f"partition {partition}")
        return -1

    def poll(self) -> Iterator[Consumed]:
        """Yield the records that the leaders return to one Fetch each.

        Each Fetch waits for at least one byte. The waits of all leaders add up to MAX_WAIT_MS at
        most. On a transient error the leaders are looked up again and the partition is left for the
        next poll. A lost connection costs MAX_WAIT_MS more, as does a topic without any leader.
        Raise Refused on any other error, also if the position is outside of the log, unless there
        is `when_out_of_range`."""
        groups = self._partitions.by_leader(self.numbers)
        if not groups:
            self._admin.wait(MAX_WAIT_MS / 1000)
            self._partitions.refresh()
        for leader, numbers in groups.items():
            request = self._request(numbers, MAX_WAIT_MS // len(groups))
            try:
                answer = self._admin.ask_node(leader, request, fetch.FetchResponse)
            except ConnectionLost:
                self._admin.wait(MAX_WAIT_MS / 1000)
                self._partitions.refresh()
                continue
            for topic in answer.responses:
                for partition in topic.partitions:
                    yield from self._taken(partition)

    def _request(self, numbers: Sequence[int], max_wait_ms: int) -> fetch.FetchRequest:
        topic = fetch.FetchTopic(
            topic=self._partitions.topic,
            topic_id=self._partitions.topic_id,
            partitions=tuple(
                fetch.FetchPartition(
                    partition=number,
                    fetch_offset=self._positions[number],
                    partition_max_bytes=PARTITION_MAX_BYTES,
                )
                for number in numbers
            ),
        )
        return fetch.FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=(topic,))

    def _taken(self, partition: fetch.PartitionData) -> Iterator[Consumed]:
        number = partition.partition_index
        if partition.error_code:
            out_of_range = partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            if out_of_range and self.when_out_of_range is not None:
                self._positions[number] = self.when_out_of_range(number)
                return
            if not ErrorCode.of(partition.error_code).retriable:
                check(partition.error_code, None, f"partition {number}")
            self._partitions.refresh()
            return
        content = memoryview(partition.records or b"")
        for position, header in whole_batches(content):
            if not header.is_control:
                for record in self._records(number, content, position, header):
                    if record.offset >= self._positions[number]:
                        self._positions[number] = record.offset + 1
                        yield Consumed(
                            number, header.leader_epoch, header.is_log_append_time, record
                        )
            self._positions[number] = max(self._positions[number], header.next_offset)

    def _records(
        self, number: int, content: memoryview, position: int, header: BatchHeader
    ) -> Iterator[Record]:
        """Yield the records of a batch. Raise Refused if they cannot be decoded."""
        try:
            yield from records_of(content, position, header)
        except CorruptBatch as error:
            raise Refused(
                f"{self._partitions.topic}-{number}: the leader sent a batch at offset "
                f"{header.base_offset} that cannot be decoded: {error}"
            ) from None
