"""The batches of a leader, from the check before the append to the replay after the commit.

A node decodes a leader's batch before it appends it, because a batch that cannot be replayed would
stop the node. It replays the batch after the commit. This module saves the second decoding, and the
read of the log.

Invariant: a kept batch was appended, and the log was not truncated or reset since. The log
therefore holds that very batch, although a leader may replace batches that are not committed.

The page cache holds the same bytes. Damage on the disk is found when the log is read: for another
node, for a snapshot, or at the next start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.metadata.batches import MetadataBatch, decoded_batch

MAX_KEPT_BYTES = 1 << 20
"""The maximum size of the batches that CheckedBatches keeps. A standby controller replays a commit
after 20 ms at most (`BEHIND_MS`), so a follower needs a fraction of it."""


class CheckedBatches:
    """The batches that were appended and are not replayed yet. The event loop owns it.

    At most MAX_KEPT_BYTES are kept, and the first ones. The replay reads the others from the
    log."""

    def __init__(self, log_generation: Callable[[], int]) -> None:
        """`log_generation` counts the truncations and resets of the log (`Log.generation`)."""
        self._log_generation = log_generation
        self._generation = log_generation()
        self._kept: deque[MetadataBatch] = deque()  # in rising order of their offsets
        self._kept_bytes = 0

    def check(self, buffer: memoryview, position: int, header: BatchHeader) -> MetadataBatch:
        """Return the decoded batch at `position`.

        The CRC is not checked, because the caller has done so. Raise CorruptBatch or MetadataError
        if the batch cannot be decoded. A contradiction to the image is found only by the replay."""
        return decoded_batch(buffer, position, header)

    def appended(self, checked: Sequence[MetadataBatch]) -> None:
        """Keep batches that the log has just appended."""
        self._forget_truncated()
        for batch in checked:
            if self._kept_bytes + batch.size_bytes <= MAX_KEPT_BYTES:
                self._kept.append(batch)
                self._kept_bytes += batch.size_bytes

    def take(self, position: int, end: int, max_bytes: int) -> list[MetadataBatch]:
        """Return the kept batches from offset `position` on that end at `end` at the latest.

        They follow each other without a gap. They have at most `max_bytes`, except that the first
        one is returned at any size. The result is empty if the batch at `position` is not kept. The
        returned batches, and those before `position`, are no longer kept."""
        self._forget_truncated()
        kept, taken_bytes = self._kept, 0
        taken: list[MetadataBatch] = []
        while kept and kept[0].base_offset <= position:
            batch = kept[0]
            if batch.base_offset == position:
                following = batch.last.offset + 1
                if following > end or (taken and taken_bytes + batch.size_bytes > max_bytes):
                    break
                taken.append(batch)
                taken_bytes += batch.size_bytes
                position = following
            kept.popleft()
            self._kept_bytes -= batch.size_bytes
        return taken

    def _forget_truncated(self) -> None:
        generation = self._log_generation()
        if generation != self._generation:
            self._generation = generation
            self._kept.clear()
            self._kept_bytes = 0
