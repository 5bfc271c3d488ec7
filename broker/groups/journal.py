"""Where a coordinator's records go; a seam, so that the rules know nothing of replication."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from quorate.broker.groups.records import GroupRecord
from quorate.quorum.rpc.kafka.errors import ErrorCode


class Journal(Protocol):
    def append(self, records: Sequence[GroupRecord]) -> ErrorCode:
        """NONE: they are in the log, in this order, and will be committed unless leadership is
        lost. Any other error: nothing was appended, and nobody may act as if it were."""

    def when_committed(self, done: Callable[[ErrorCode], None]) -> None:
        """`done(NONE)` once everything appended so far is committed (at once when it is), or
        NOT_COORDINATOR when leadership was lost before."""
