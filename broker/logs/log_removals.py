"""The removals of renamed files and directories in one log directory, after a delay.

A renamed file or directory has no meaning any more, so that its name is free. Its removal may wait.
If the broker stops before, the next start removes it. The thread of long work removes it, because a
file system may take a tenth of a second for a large file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.quorum.log.log import Log
from quorate.quorum.log.segments.file_removal import remove_files, rename_for_deletion
from quorate.quorum.seams import Clock, Disk

logger = logging.getLogger("quorate.broker.replication")


class LogRemovals:
    """The delayed removals of one log directory. The event loop owns it; the disk's thread removes
    the files."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        stopped: Callable[[], bool],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """Remove nothing while `stopped` returns True. `on_failure` gets the error of a removed
        file."""
        self._clock = clock
        self._disk = disk
        self._stopped = stopped
        self._on_failure = on_failure

    def remove_log(self, log: Log, unique: str, delay_ms: int, done: Callable[[], None]) -> None:
        """Rename the directory of a deleted log in the disk's thread, close its files, and remove
        them after the delay. `unique` is a random text.

        Call `done` when the name is free. If the rename fails, `on_failure` gets the error before
        `done` is called."""
        directory = log.directory
        log.mark_deleted()

        def renamed(path: str | None, error: BaseException | None) -> None:
            if error is not None:
                self._on_failure(error)
            log.discard()
            if path is not None:
                self.remove_directory(path, delay_ms)
            done()

        self._disk.submit(lambda: rename_for_deletion(self._disk, directory, unique), renamed)

    def remove_expired(self, log: Log, high_watermark: int, wall_ms: int) -> bool:
        """Remove the segments that retention no longer keeps. Return True if there were any. The
        log start has moved then, unless it was already above them.

        The names are freed immediately, because a log that restarts may need them. The disk's
        thread removes the files after the log's `file_delete_delay_ms`. If the broker stops
        before, the next start removes them."""
        expired = log.take_expired(high_watermark=high_watermark, wall_ms=wall_ms)
        paths = [segment.rename_deleted() for segment in expired]
        if paths:
            self.remove_files(paths, log.settings.file_delete_delay_ms)
        return bool(paths)

    def remove_files(self, paths: list[str], delay_ms: int) -> None:
        """Remove renamed files after the delay."""

        def removed(_: None, error: BaseException | None) -> None:
            if error is not None:
                self._on_failure(error)

        def remove() -> None:
            if not self._stopped():
                self._disk.submit_long(lambda: remove_files(self._disk, paths), removed)

        self._clock.call_later(delay_ms, remove)

    def remove_directory(self, path: str, delay_ms: int) -> None:
        """Remove a renamed directory after the delay. An error is only logged."""

        def removed(_: None, error: BaseException | None) -> None:
            if error is not None:
                logger.warning(
                    "cannot remove the deleted directory %s: %s. The next start tries again",
                    path,
                    error,
                )

        def remove() -> None:
            if not self._stopped():
                self._disk.submit_long(lambda: self._disk.remove_tree(path), removed)

        self._clock.call_later(delay_ms, remove)
