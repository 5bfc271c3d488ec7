"""Orders the writes of the checkpoint files, which come from two threads.

Usually the disk's thread writes a copy of the offsets. Before a truncation, the event loop writes
lowered offsets itself. An older copy must not replace them afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.seams import Disk


class CheckpointFiles:
    """The checkpoint files of one log directory.

    Invariant: an older copy of the offsets never replaces a newer one in a file. A lock guards the
    writes."""

    def __init__(self, disk: Disk, log_dir: str) -> None:
        """Write the files of `log_dir`."""
        self._disk = disk
        self._log_dir = log_dir
        self._lock = threading.Lock()
        self._taken = 0
        self._newest: dict[str, int] = {}

    def write(self, name: str, offsets: Mapping[PartitionName, int]) -> None:
        """Write the offsets durably. Blocks."""
        self.writing(name, offsets)()

    def writing(self, name: str, offsets: Mapping[PartitionName, int]) -> Callable[[], None]:
        """Return a function that writes these offsets durably, for any thread. It does nothing if
        the file was written with the offsets of a later call. `offsets` is not copied."""
        self._taken += 1
        taken = self._taken

        def run() -> None:
            with self._lock:
                if taken > self._newest.get(name, 0):
                    self._newest[name] = taken
                    checkpoints.write_offsets(self._disk, self._log_dir, name, offsets)

        return run
