"""The records that several nodes' logs of one cluster agree on. Pure.

Two logs are equal up to the end of the last epoch that both have, at the smaller end offset (log
matching, Raft, section 5.3). Two facts follow from the ends of the logs:

- **Complete**: a log that has every committed record. Every log that could win an election has
  them (leader completeness, Raft, section 5.4.3).
- **Decided**: records that no election can remove any more. Only a voter whose log is at least as
  up to date as those of a majority can win. A record in the logs of all voters that could win is
  therefore in the log of each later leader.

While the last change of the voters may be uncommitted, two sets of voters may elect (`leaders.py`).
A fact is then one that follows from both sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The epochs of a log, with their first offsets, and the offset after its last record.

    `starts` has ascending epochs. The first one may begin before the log does."""

    starts: tuple[tuple[int, int], ...]
    end_offset: int

    @property
    def rank(self) -> tuple[int, int]:
        """The epoch of the last record and the end offset, which compare as Raft compares logs."""
        return (self.starts[-1][0], self.end_offset) if self.starts else (-1, -1)


class Agreement(NamedTuple):
    """The facts about the logs of a cluster.

    `complete` is the node of the log that certainly has every committed record, and the fewest
    others, or None if too many logs are missing. Records below `decided_end` are decided. If
    `rest_is_known`, all others are not committed."""

    complete: int | None
    decided_end: int
    rest_is_known: bool


def agreement(logs: Mapping[int, LogEnd], electorates: Iterable[Set[int]]) -> Agreement:
    """Return the facts that follow from the logs of these nodes, if each electorate, a set of
    voters, may elect the next leader."""
    chosen: list[int | None] = []
    decided: list[int | None] = []
    for voters in electorates:
        held = sorted(voters & logs.keys())
        ranks = [logs[node].rank for node in held]
        is_majority = len(held) > len(voters) // 2
        chosen.append(held[complete(ranks, len(voters))] if is_majority else None)
        decided.append(decided_end([logs[node] for node in held], len(voters)))
    sure = [node for node in chosen if node is not None]
    ends = [end for end in decided if end is not None]
    are_known = bool(ends) and len(ends) == len(decided)
    return Agreement(
        max(sure, key=lambda node: logs[node].rank) if sure and len(sure) == len(chosen) else None,
        min(ends) if are_known else 0,
        are_known and len(set(ends)) == 1,
    )


def common_end(one: LogEnd, other: LogEnd) -> int:
    """Return the offset up to which the two logs have the same records, exclusive."""
    ends = _epoch_ends(other)
    return max(
        (min(end, ends[epoch]) for epoch, end in _epoch_ends(one).items() if epoch in ends),
        default=0,
    )


def _epoch_ends(log: LogEnd) -> dict[int, int]:
    if not log.starts:
        return {}
    ends = [*(start for _, start in log.starts[1:]), log.end_offset]
    return {epoch: end for (epoch, _), end in zip(log.starts, ends, strict=True)}


def complete(ranks: Sequence[tuple[int, int]], voters: int) -> int:
    """Return the index of a log that certainly has every committed record.

    It is the least up-to-date log that could win an election, because it has the fewest records
    that may still be replaced. `ranks` are those of the logs of voters, and `voters` is the number
    of all voters. For each missing log a more up-to-date one is taken. If too few are given to be
    certain, the result is the most up-to-date log."""
    order = sorted(range(len(ranks)), key=lambda index: ranks[index], reverse=True)
    majority = voters // 2 + 1
    missing = voters - len(ranks)
    return order[max(voters - majority - missing, 0)]


def decided_end(logs: Sequence[LogEnd], voters: int) -> int | None:
    """Return the offset below which no election can remove a record, exclusive.

    Return None if the log of a voter is missing, because that voter could win an election."""
    if not logs or len(logs) < voters:
        return None
    ranked = sorted(logs, key=lambda log: log.rank, reverse=True)
    majority = voters // 2 + 1
    could_win = ranked[: voters - majority + 1]
    best = could_win[0]
    return min(common_end(best, other) for other in could_win)
