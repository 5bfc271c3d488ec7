"""The elections that may have lost data, for `quorate status`: the newest ones in the metadata log.

The cause of such an election carries the end offset of the new leader's log, and the largest end
offset that was known before, if the controller knew them (`quorum/metadata/causes.py`). Later
changes of the partition hide the election from its newest cause, so these records are searched by
their causes. GET /v1/changes looks for the causes in the bytes of the log, which is fast."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorate.cli.status.explanations import NotServed, Page
from quorate.quorum.metadata.causes import Cause, describe
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS

LOOK_BACK = 200_000
"""The number of offsets before the end of the metadata log that the first search covers."""
SEARCH_S = 2.0
"""The time after which a search sends no further request. The next search continues."""
MAX_KEPT = 1_000
"""The most elections that are kept, the newest ones."""
LIMIT = 1_000
MAX_NAMES = 3
"""The most partitions that the line of a group names."""
REMEDIES = {
    Cause.UNCLEAN_ELECTION.value: (
        "Send lost records again from their source, and set unclean.leader.election.enable=false "
        "for topics that must not lose any."
    ),
    Cause.LAST_KNOWN_LEADER.value: (
        "Send lost records again from their source. More replicas prevent a loss, and "
        "flush.messages=1 does if there is one."
    ),
}
"""The remedy for each cause, by its stored name."""
CAUSES = tuple(REMEDIES)


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
            f"{self.name}: leader {leader} since {at}, offset {self.offset}: {describe(self.cause)}"
        )

    @property
    def name(self) -> str:
        """Return the name of the partition."""
        return f"{self.topic}-{self.partition}"

    @property
    def cause_name(self) -> str:
        """Return the name of the cause, without its end offsets."""
        return self.cause.partition(" ")[0]

    @property
    def is_internal(self) -> bool:
        """Return True if the topic is one of Kafka's own."""
        return self.topic in INTERNAL_TOPICS

    @property
    def lost(self) -> int:
        """Return the smallest possible number of lost offsets, 0 if no loss is known."""
        _, *ends = self.cause.split(" ")
        known = len(ends) == 2 and all(each.isdecimal() for each in ends)
        return max(0, int(ends[0]) - int(ends[1])) if known else 0


@dataclass(frozen=True, slots=True)
class ElectionGroup:
    """The elections of one leader by one cause, those of internal topics last."""

    cause: str
    leader: int | None
    elections: tuple[UncleanElection, ...]

    @property
    def partitions(self) -> list[str]:
        """Return the names of the partitions, each once."""
        return list(dict.fromkeys(each.name for each in self.elections))

    def line(self) -> str:
        """Return the line of the status: the counts, the cause, the loss and the remedy."""
        return f"{self.counts()}: {describe(self.cause)} {self.loss()} {REMEDIES[self.cause]}"

    def counts(self) -> str:
        """Return the leader and the partitions, the first ones by name."""
        names = self.partitions
        leader = "no leader" if self.leader is None else f"leader {self.leader}"
        internal = len({each.name for each in self.elections if each.is_internal})
        of_internal = f", {internal} of them of internal topics" if internal else ""
        shown = ", ".join(names[:MAX_NAMES])
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        noun = "partition" if len(names) == 1 else "partitions"
        return f"{leader} of {len(names)} {noun}{of_internal} ({shown}{more})"

    def loss(self) -> str:
        """Return the sentence about the known loss."""
        lossy = {each.name for each in self.elections if each.lost}
        if not lossy:
            return "No loss is known."
        lost = sum(each.lost for each in self.elections)
        noun = "partition" if len(lossy) == 1 else "partitions"
        return f"{len(lossy)} {noun} lost at least {lost} offsets."


def election_groups(elections: Sequence[UncleanElection]) -> list[ElectionGroup]:
    """Return the elections by cause and leader: first the groups with topics of clients, then those
    with the largest known loss, then the largest ones."""
    found: dict[tuple[str, int | None], list[UncleanElection]] = {}
    for each in elections:
        found.setdefault((each.cause_name, each.leader), []).append(each)
    made = [
        ElectionGroup(*key, tuple(sorted(group, key=lambda each: each.is_internal)))
        for key, group in found.items()
    ]
    return sorted(
        made,
        key=lambda group: (
            group.elections[0].is_internal,
            -sum(each.lost for each in group.elections),
            -len(group.elections),
        ),
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
        """Return the elections of `topics`, the newest first, and those of internal topics last.
        `topics` gives the names by id.

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
        found = [
            replace(each, topic=topics[each.topic])
            for each in reversed(self._found)
            if each.topic in topics
        ]
        return sorted(found, key=lambda each: each.is_internal)


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
