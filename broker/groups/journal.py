"""The interface through which a shard writes records.

The group rules know only this interface, so tests can run them without replication.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from quorate.broker.groups.records import GroupRecord
from quorate.quorum.protocol.errors import ErrorCode


class Journal(Protocol):
    """The log of one shard. Appends are committed in the order in which they were made.

    Committed means that all in-sync replicas have the records (acks=all)."""

    def append(self, records: Sequence[GroupRecord]) -> ErrorCode:
        """Append the records as one batch, and return NONE if they are in the log.

        After NONE, the records will be committed unless this broker loses leadership. After any
        other error, nothing was appended, and the caller must not apply the records.
        """

    def when_committed(self, done: Callable[[ErrorCode], None]) -> None:
        """Call `done(NONE)` when everything appended so far is committed.

        The call is immediate if everything is committed already. If the journal is closed first,
        because this broker lost leadership, call `done(NOT_COORDINATOR)`.
        """
