"""Builds a shard from the log of its partition.

The loading reads the log from its start to its end, one slice per iteration of the event loop. It
then waits until that end is committed, and reports success. The coordinator then starts the
members' sessions.

Compaction does not change the result, because only the last record of a key counts. Records of
other group types (consumer, share and streams) are skipped.

If a record cannot be decoded, the loading ends with an error, and the shard stays failed until the
partition has another leader epoch, as in Kafka. Without that record, a group would silently return
to an older offset. No client can write such a record, because only coordinators write to the topic.
Another program may have written the log.

A disk call that fails takes the log directory offline, as in Kafka, so that another replica leads
the partition and loads the shard. The node stops if it cannot do without this directory.

Other errors of the loading fail the shard. The node continues to run, with two exceptions.
StateInDoubt stops it. Damaged bytes (CorruptLog) stop it if other replicas are in the ISR, because
one of them can lead (`broker/replication/partitions/damage.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.broker.groups.records import decode_record
from quorate.broker.groups.shard import Shard
from quorate.broker.replication.partitions.damage import unreadable
from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.files.errors import CorruptLog, OutOfFiles
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock
from quorate.quorum.state_in_doubt import StateInDoubt

SLICE_BYTES = 256 * 1024
"""Maximum size of one read from the log, in bytes. A larger batch is read alone."""
RETRY_MS = 100
"""The pause before a read is repeated for which the process had no file descriptor."""

Done = Callable[[Exception | None], None]
"""Receives None after a success, or the error that ended the loading."""


class Loading:
    """One attempt to load a shard. It runs on the broker's event loop.

    It is a ProduceWaiter, because it waits for the high watermark like an acks=all append. The
    partition calls `acknowledged` and `waits`, whose `index` has no meaning here."""

    def __init__(
        self,
        clock: Clock,
        hosted: HostedPartition,
        shard: Shard,
        done: Done,
        survives: Callable[[BaseException], bool],
    ) -> None:
        """`survives` takes a log directory offline after an error of its disk. It returns False if
        the node must stop because of the error.

        `done` is called at most once. It is not called after `cancel` or an error that stops the
        node, and not if leadership is lost while the loading waits for the commit."""
        self._clock = clock
        self._hosted = hosted
        self._shard = shard
        self._done: Done | None = done
        self._survives = survives
        self._offset = hosted.log.start_offset

    def start(self) -> None:
        """Read the first slice in the next iteration of the event loop."""
        self._clock.call_soon(self._step)

    def cancel(self) -> None:
        """Stop the loading. `done` will not be called."""
        self._done = None

    def _step(self) -> None:
        """Read and replay one slice, and schedule the next one."""
        if self._done is None:
            return
        try:
            data = self._hosted.log.read(self._offset, SLICE_BYTES)
            self._replay(memoryview(data))
        except CorruptLog as damage:
            unreadable(self._hosted, damage)
            self._finish(damage)
            return
        except StateInDoubt:
            raise
        except OutOfFiles:  # nothing was read
            self._clock.call_later(RETRY_MS, self._step)
            return
        except OSError as error:
            if not self._survives(error):
                raise
            self._finish(error)
            return
        except Exception as error:
            self._finish(error)
            return
        if data:
            self._clock.call_soon(self._step)
        else:
            self._await_commit()

    def _replay(self, data: memoryview) -> None:
        for position, header in batches(data):
            self._offset = header.next_offset
            if header.is_control:
                continue
            for record in records_of(data, position, header):
                if record.key is not None:
                    decoded = decode_record(record.key, record.value)
                    if decoded is not None:
                        self._shard.replay(decoded)

    def _await_commit(self) -> None:
        """Wait until everything that was read is committed."""
        error = self._hosted.partition.acks_all_error(self._offset)
        if error is None:
            self._hosted.await_acks(self._offset, self, 0)
        else:
            self.acknowledged(0, error)

    def acknowledged(self, index: int, error: int) -> None:
        """Finish the loading if `error` says that the end of the log is committed.

        NONE and NOT_ENOUGH_REPLICAS_AFTER_APPEND say so, because the high watermark has passed the
        end in both cases. Any other error means that this broker no longer leads the partition, and
        has no effect here. The coordinator cancels the loading when the metadata image shows the
        new leader.
        """
        if error in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            self._finish(None)

    def waits(self, index: int) -> bool:
        """Return True if the loading has neither ended nor been cancelled."""
        return self._done is not None

    def _finish(self, error: Exception | None) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(error)
