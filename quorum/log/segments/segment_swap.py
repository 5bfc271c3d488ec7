"""The replacement of a log's sealed segments by one cleaned segment, safe against a crash.

| step       | thread    | on disk afterwards                                                   |
|------------|-----------|----------------------------------------------------------------------|
| `seal`     | cleaner's | `.cleaned` files, synced with their names                            |
| `begin`    | the log's | `.swap` files, perhaps not synced                                    |
| `decide`   | cleaner's | the `.swap` names are synced: a start completes the replacement      |
| `replaced` | the log's | the sources are renamed to `.deleted`, and the log has the new one   |
| `finish`   | cleaner's | those renames are synced, then the `.swap` files get their plain     |
|            |           | names, which is synced too                                           |

A start removes `.cleaned` files. It completes a replacement whose `.swap` files it finds
(`leftovers.py`).

Safeguards:

- No source is renamed before `decide`, because a crash would lose its records.
- No `.swap` file gets its plain name before the renames of the sources are durable, because a
  source could come back beside it.
- Before a truncation, a replacement that has begun is cancelled or finished. Otherwise a start
  would complete it, and bring the truncated records back.
"""

from __future__ import annotations

from quorate.quorum.log.files.names import CLEANED_SUFFIX, SWAP_SUFFIX
from quorate.quorum.log.segments.file_removal import remove_files
from quorate.quorum.log.segments.segment import Segment
from quorate.quorum.seams import Disk


def new_cleaned_segment(
    disk: Disk, directory: str, base_offset: int, index_interval_bytes: int
) -> Segment:
    """Return an empty segment whose files end in `.cleaned`, to be written in the cleaner's
    thread.

    The caller has removed older `.cleaned` files (`discard_cleaned`)."""
    segment = Segment(disk, directory, base_offset, index_interval_bytes, suffix=CLEANED_SUFFIX)
    segment.create()
    segment.create_file()
    return segment


def discard_cleaned(disk: Disk, directory: str) -> None:
    """Remove all `.cleaned` files of a log, the remains of an aborted cleaning. Block. Do nothing
    if the directory is missing.

    The disk's other thread may rename the directory meanwhile, because the log was deleted. The
    remaining files are removed with the directory then."""
    try:
        for name in disk.list(directory):
            if name.endswith(CLEANED_SUFFIX):
                disk.remove(f"{directory}/{name}")
    except FileNotFoundError:
        return


def seal(disk: Disk, directory: str, cleaned: Segment) -> None:
    """Write the indexes of a cleaned segment, and make its files durable. Block."""
    cleaned.seal()
    cleaned.sync()
    disk.sync_dir(directory)


class SegmentSwap:
    """One replacement. The log owns it from `begin` to the end of `finish`, at most one at a time.

    `finish` may run in the cleaner's thread and in the log's, even at the same time. `decide` runs
    in the cleaner's thread, and the other methods in the log's.
    """

    def __init__(
        self, disk: Disk, directory: str, sources: list[Segment], cleaned: Segment
    ) -> None:
        """`sources` are the segments that `cleaned` replaces."""
        self.sources = sources
        self.cleaned = cleaned
        self.taken_over = False
        """True once the first source may be renamed. The swap must not be cancelled any more."""
        self.replaced = False
        """True once the log has the cleaned segment, and all sources are renamed."""
        self.finished = False
        """True once `finish` has returned."""
        self._disk = disk
        self._directory = directory
        self._paths: tuple[str, ...] = ()

    def begin(self) -> None:
        """Rename the `.cleaned` files to `.swap`, the data file last. Block; nothing is synced.

        If that raises OSError, no `.swap` file stays. A start would give an index that is left
        alone to the source."""
        plain = [path.removesuffix(CLEANED_SUFFIX) for path in self.cleaned.paths]
        try:
            self.cleaned.rename_files(SWAP_SUFFIX)
        except OSError:
            remove_files(self._disk, [path + SWAP_SUFFIX for path in plain])
            raise
        self._paths = self.cleaned.paths

    def decide(self) -> None:
        """Sync the `.swap` names. Block. Do nothing if the directory was renamed, because the log
        was deleted."""
        try:
            self._disk.sync_dir(self._directory)
        except FileNotFoundError:
            return

    def cancel(self) -> None:
        """Remove the `.swap` files before the log has taken them over. Block for the sync, so that
        no start finds them."""
        assert not self.taken_over
        self.cleaned.discard()
        for path in reversed(self._paths):
            self._disk.remove(path)
        self._disk.sync_dir(self._directory)

    def finish(self) -> None:
        """Give the `.swap` files their plain names, durably. Block.

        Files that the other thread has renamed already are skipped. If the directory is missing,
        because the log was deleted, do nothing."""
        try:
            self._disk.sync_dir(self._directory)
            for path in self._paths:
                try:
                    self._disk.rename(path, path.removesuffix(SWAP_SUFFIX))
                except FileNotFoundError:
                    continue
            self._disk.sync_dir(self._directory)
        except FileNotFoundError:
            return
        self.finished = True
