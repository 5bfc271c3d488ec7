"""What the core needs of the log; `quorum/log`'s `Log` has it.

The core appends, reads and truncates directly, since these are cheap and never wait; only
making the log durable is an effect. A failed write raises and stops the node.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.ids import EpochOffset
from quorate.quorum.seams import Buffer


class Epochs(Protocol):
    def end_offset_for(self, epoch: int) -> EpochOffset | None:
        """The greatest epoch in the log that is not above `epoch`, and where it ends. None when
        `epoch` is above all; (`epoch`, log start) when it is below all."""


class RaftLog(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """Of the last batch; -1 when there never was one."""

    @property
    def epochs(self) -> Epochs: ...

    def append(self, data: Buffer, *, wall_ms: int) -> None: ...

    def read(self, offset: int, max_bytes: int, *, end: int | None = None) -> Buffer:
        """Whole batches, at least one when there is one below `end`."""

    def truncate_to(self, offset: int) -> None: ...
