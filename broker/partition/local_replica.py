"""One replica's log, epochs, high watermark and producer states, and its work as a follower.

`partition.py` adds the work of a leader. A replica is a follower or a leader in one leader epoch at
a time.

Invariants:

- Log start offset <= high watermark <= log end offset.
- The high watermark falls only by a truncation, or when the log begins again elsewhere.
- The leader epoch and the partition epoch never fall.
- A follower appends only batches that continue its log, and none of a leader epoch above the one
  that it follows (KAFKA-18723).
"""

from __future__ import annotations

from quorate.broker.partition.leadership import Leadership
from quorate.broker.partition.partition_log import PartitionLog
from quorate.broker.partition.partition_producers import PartitionProducers
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.partition.truncation import truncation_offset
from quorate.quorum.ids import NO_NODE, EpochOffset, Uuid, uuid_to_text
from quorate.quorum.log.append_check import require_continuation
from quorate.quorum.log.batches.batch import batches, read_header
from quorate.quorum.log.files.errors import BrokenChain, CorruptBatch
from quorate.quorum.metadata import image
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.seams import Buffer
from quorate.quorum.state_in_doubt import changing


class LocalReplica:
    """One replica on this broker, with the operations of a follower.

    The event loop owns it. All appends, truncations and moves of the high watermark of the log go
    through the replica. An append blocks for the write to the page cache, not for a flush. A
    truncation or a new beginning blocks longer: checkpointed offsets above the new log end are
    first lowered durably (`broker/logs/offset_checkpoints.py`), and then files are removed."""

    def __init__(
        self,
        topic_id: Uuid,
        partition_id: int,
        log: PartitionLog,
        producers: ProducerStates | None,
        high_watermark: int,
    ) -> None:
        """Begin without a role. `producers` are the states as of the log end, or None if they must
        be loaded. `high_watermark` may be an old one; a value outside of the log is moved to the
        log's nearest end."""
        self.topic_id = topic_id
        self.partition_id = partition_id
        self.log = log
        self.leader_id = NO_NODE
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.leadership: Leadership | None = None
        """The state of this replica as the leader, or None if it follows."""
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        self.producers = PartitionProducers(producers)
        self._name = f"partition {partition_id} of topic {uuid_to_text(topic_id)}"

    def make_follower(self, value: image.Partition) -> bool:
        """Follow the leader that the metadata names, or no leader if it names none. Return True
        if a new leader epoch begins: the fetcher must begin again.

        An older state than the present one is ignored, and the result is False. Nothing is
        truncated here. The first fetch finds out if the log diverges (KIP-101)."""
        if self._is_old(value):
            return False
        new_epoch = value.leader_epoch > self.leader_epoch
        self.leadership = None
        self._take_epochs(value)
        return new_epoch

    def _is_old(self, value: image.Partition) -> bool:
        return (
            value.leader_epoch < self.leader_epoch or value.partition_epoch < self.partition_epoch
        )

    def _take_epochs(self, value: image.Partition) -> None:
        assert value.leader_epoch >= self.leader_epoch, "a leader epoch never falls"
        assert value.partition_epoch >= self.partition_epoch, "a partition epoch never falls"
        self.leader_id = value.leader
        self.leader_epoch = value.leader_epoch
        self.partition_epoch = value.partition_epoch

    def append_as_follower(self, data: Buffer, *, wall_ms: int) -> None:
        """Append the batches that the leader sent for this log's end offset. On return they are in
        the page cache.

        The batches from the first one with a later leader epoch than the one followed are left out,
        so the log end may stay where it was. Offsets may be missing before a batch, because the
        leader may have compacted its log. Only headers and CRCs are checked: if a follower
        rejected a batch that its leader has accepted, replication would stop. Raise CorruptBatch if
        the data is damaged, or BrokenChain if it does not continue the log; the log is unchanged
        then. Raise OSError if the write fails, and KafkaError if this replica leads."""
        if self.leadership is not None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, "this replica leads and appends no fetched data"
            )
        accepted = 0
        idempotent = []
        for position, header in batches(data, verify=False):  # the log checks the CRCs
            if header.leader_epoch > self.leader_epoch:
                break
            accepted = position + header.size_bytes
            if header.producer_id >= 0:
                idempotent.append(header)
        if not accepted:
            return
        view = memoryview(data)
        taken = view if accepted == len(view) else view[:accepted]
        start_offset = self.log.start_offset
        if self.log.end_offset == start_offset and read_header(taken).base_offset < start_offset:
            self._begin_below(taken)
        with changing(self._name, CorruptBatch, BrokenChain, OSError):
            self.log.append(taken, wall_ms=wall_ms, gaps=True)
            self.log.advance_start(start_offset)
            for header in idempotent:
                self.producers.append(header)
            assert self.high_watermark <= self.log.end_offset

    def _begin_below(self, taken: Buffer) -> None:
        """Let the empty log begin at the first batch, which holds the leader's log start offset.

        DeleteRecords may move the log start into a batch. The leader sends the whole batch."""
        placed = list(batches(taken))  # checks the CRCs of all batches
        first = placed[0][1]
        if self.log.start_offset < first.next_offset:
            # An append that fails after the reset would leave the log end below the high watermark.
            require_continuation(
                self._name, first.base_offset, first.leader_epoch, placed, gaps=True
            )
            self.log.reset_to(first.base_offset)

    def leader_high_watermark(self, high_watermark: int) -> None:
        """Take the high watermark from the leader's answer, as far as this log reaches.

        It does not fall: a new leader may know an older high watermark for a while, but a committed
        record stays committed."""
        self.high_watermark = max(self.high_watermark, min(high_watermark, self.log.end_offset))

    def truncate(self, diverging: EpochOffset) -> None:
        """Truncate by the diverging epoch of the leader's answer (KIP-595, KIP-279). The log may
        still diverge afterwards; the next fetch shows it."""
        self.truncate_to(truncation_offset(diverging, self.log.epochs, self.log.end_offset))

    def truncate_to(self, offset: int) -> None:
        """Remove the records at and above `offset`, and the whole batch that holds `offset`.

        If `offset` is below the log start, the log is emptied and begins at `offset`. The caller
        then removes the producer snapshots above the new log end (`LogManager.truncated`)."""
        if offset < self.log.start_offset:  # the leader has none of this log's records
            self.restart_at(offset)
            return
        end_offset = self.log.end_offset
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        if self.log.end_offset < end_offset:  # else only an epoch without records was removed
            self.producers.truncate_to(offset)

    def restart_at(self, offset: int) -> None:
        """Remove all records, and begin again at `offset`, which is also the new high watermark.

        Call it if the leader's log begins above this log's end, or ends below this log's start."""
        self.log.reset_to(offset)
        self.high_watermark = offset
        self.producers.reset()
