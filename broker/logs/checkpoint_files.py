"""The checkpoints of offsets of one log directory, written from two threads.

Usually in the disk's thread, from a copy. After a truncation the recovery points are written at
once, before anything is appended again; a copy taken before must then not be written over them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from quorate.quorum.log import checkpoints
from quorate.quorum.log.names import PartitionName
from quorate.quorum.seams import Disk


class CheckpointFiles:
    def __init__(self, disk: Disk, log_dir: str) -> None:
        self._disk = disk
        self._log_dir = log_dir
        self._lock = threading.Lock()
        self._taken = 0
        self._newest: dict[str, int] = {}

    def write(self, name: str, offsets: Mapping[PartitionName, int]) -> None:
        """Durable when it returns."""
        self.writing(name, offsets)()

    def writing(self, name: str, offsets: Mapping[PartitionName, int]) -> Callable[[], None]:
        """To be run in any thread; does nothing when later offsets were written meanwhile."""
        self._taken += 1
        taken = self._taken

        def run() -> None:
            with self._lock:
                if taken > self._newest.get(name, 0):
                    self._newest[name] = taken
                    checkpoints.write_offsets(self._disk, self._log_dir, name, offsets)

        return run
