"""The elections that may have lost data, for `quorate status`: the newest ones in the metadata log.

The cause of such an election carries the end offset of the new leader's log, and the largest end
offset that was known before, if the controller knew them (`quorum/metadata/causes.py`). Later
changes of the partition hide the election from its newest cause, so these records are searched by
their causes. GET /v1/changes looks for the causes in the bytes of the log, which is fast."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from quorate.cli.status.explanations import NotServed, Page
from quorate.quorum.metadata.causes import Cause, describe

LOOK_BACK = 200_000
"""The number of offsets before the end of the metadata log that the first search covers."""
SEARCH_S = 2.0
"""The time after which a search sends no further request. The next search continues."""
MAX_KEPT = 1_000
"""The most elections that are kept, the newest ones."""
LIMIT = 1_000
CAUSES = (Cause.UNCLEAN_ELECTION.value, Cause.LAST_KNOWN_LEADER.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElection:
    """An election of a leader that may lack committed records. `topic` is the topic's id if the
    topic is not selected or does not exist any more."""

    topic: str
    partition: int
    leader: int | None
    cause: str
    offset: int
    timestamp_ms: int

    def line(self) -> str:
        """Return the line of the status."""
        at = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(self.timestamp_ms / 1000))
        leader = "none" if self.leader is None else self.leader
        return (
            f"{self.topic}-{self.partition}: leader {leader} since {at}, offset {self.offset}: "
            f"{describe(self.cause)}"
        )


class UncleanElections:
    """The elections that were found so far, and the offset at which the search continues."""

    def __init__(self) -> None:
        self._found: deque[UncleanElection] = deque(maxlen=MAX_KEPT)
        self._next: int | None = None
        self._served = True

    def of(
        self, topics: Mapping[str, str], end: int, get: Callable[[str], Page]
    ) -> list[UncleanElection]:
        """Return the elections of `topics`, the newest first. `topics` gives the names by id.

        `end` is the high watermark of the metadata log. The call blocks for SEARCH_S at most plus
        one request. Errors of `get` are not raised."""
        deadline = time.monotonic() + SEARCH_S
        if self._next is None:
            self._next = max(0, end - LOOK_BACK)
        query = f"limit={LIMIT}&types=PARTITION_CHANGE_RECORD&causes={','.join(CAUSES)}"
        try:
            while self._served and self._next < end and time.monotonic() < deadline:
                try:
                    page = get(f"/v1/changes?from={self._next}&{query}")
                except LookupError:  # the log begins after this offset
                    page = get(f"/v1/changes?{query}")
                self._found.extend(map(election, page.lines))
                if page.next_offset <= self._next:
                    break
                self._next = page.next_offset
        except NotServed:
            self._served = bool(self._found)
        return [
            replace(each, topic=topics[each.topic])
            for each in reversed(self._found)
            if each.topic in topics
        ]


def election(line: dict[str, Any]) -> UncleanElection:
    """Return the election in a line of /v1/changes."""
    record = line["record"]
    leader = record.get("leader", -1)
    return UncleanElection(
        topic=record["topicId"],
        partition=record["partitionId"],
        leader=leader if leader >= 0 else None,
        cause=line["cause"],
        offset=line["offset"],
        timestamp_ms=line["timestamp_ms"],
    )
