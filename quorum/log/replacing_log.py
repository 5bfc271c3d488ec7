"""The half of a log that puts other files in the place of its own: it replaces sealed segments by
cleaned ones, for the log cleaner, and it follows a rename of its directory.
"""

from __future__ import annotations

import errno

from quorate.quorum.log.files.offset_gaps import allow_gaps
from quorate.quorum.log.flush import Unsynced
from quorate.quorum.log.log_reader import LogReader
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.log.segments.segment_swap import SegmentSwap


class RenameFailed(OSError):
    """Only some sources of a replacement are renamed. The log must not be used any more."""

    def __init__(self, directory: str) -> None:
        super().__init__(errno.EIO, "a compacted segment could not be renamed", directory)


class ReplacingLog(LogReader):
    """The methods of a log that replace segments. `Log` inherits them and sets the attributes.

    The thread of the log calls them. `segment_swap.py` states the order of the steps.
    """

    _swap: SegmentSwap | None
    _unsynced: Unsynced

    def moved_to(self, directory: str) -> None:
        """Note that the log's directory was renamed to `directory`. No disk call is made.

        No flush may be in flight. The next flush after an append makes the new name durable."""
        self.directory = directory
        self._segments.moved_to(directory)
        self._unsynced.directories[:] = [directory, directory.rpartition("/")[0]]

    def mark_deleted(self) -> None:
        """Note that the owner deletes the log. Its files may be missing from now on."""
        self.deleted = True
        for segment in self._segments:
            segment.mark_removed()

    @property
    def sealed_segments(self) -> list[Segment]:
        """A copy of the list of all segments but the active one, in offset order."""
        return self._segments.all[:-1]

    @property
    def active_base_offset(self) -> int:
        """The base offset of the active segment."""
        return self._segments.active.base_offset

    def begin_swap(self, sources: list[Segment], cleaned: Segment) -> SegmentSwap | None:
        """Begin to replace consecutive sealed segments by `cleaned`, which is sealed and has the
        suffix `.cleaned`.

        Return None, and do nothing, if the log does not have all sources any more. The caller then
        discards `cleaned`. The caller has written the marker of gaps (`offset_gaps.py`). Block for
        three renames. Raise OSError."""
        self.settle_swap()
        if self.deleted or not self._segments.has(sources):
            return None
        swap = SegmentSwap(self.disk, self.directory, sources, cleaned)
        swap.begin()
        self._swap = swap
        return swap

    def complete_swap(self, swap: SegmentSwap) -> list[str] | None:
        """Take over the cleaned segment after `swap.decide`. Return the paths of the renamed
        sources.

        The caller then runs `swap.finish` in the cleaner's thread, removes the paths, and calls
        `settle_swap`. Return None, and do nothing, if the replacement was cancelled or the log was
        deleted. Block for a few renames for each source.

        Raise RenameFailed if a source cannot be renamed. The node must stop then, and the next
        start completes the replacement."""
        if self._swap is not swap or self.deleted:
            return None
        self.gaps = True
        swap.taken_over = True
        self._segments.replace(swap.sources, swap.cleaned)
        for source in swap.sources:
            self._detach(source)
        try:
            paths = [source.rename_deleted() for source in swap.sources]
        except OSError as error:
            raise RenameFailed(self.directory) from error
        swap.replaced = True
        return paths

    @property
    def swap(self) -> SegmentSwap | None:
        """The replacement that `settle_swap` has not ended yet."""
        return self._swap

    def settle_swap(self) -> None:
        """Finish a replacement whose sources are renamed, and cancel an earlier one. Leave one
        whose renames failed to the next start. Block for some milliseconds if the cleaner has not
        finished it.

        Call it before the files of a segment are removed, or used by name in another thread."""
        swap, self._swap = self._swap, None
        if swap is None or self.deleted:
            return
        if swap.replaced:
            if not swap.finished:
                swap.finish()
            swap.cleaned.note_renamed("")
        elif not swap.taken_over:
            swap.cancel()

    def _allow_gaps(self) -> None:
        if not self.gaps:
            allow_gaps(self.disk, self.directory)
            self.gaps = True

    def _detach(self, segment: Segment) -> None:
        """Take a segment out of the log's books."""
        raise NotImplementedError
