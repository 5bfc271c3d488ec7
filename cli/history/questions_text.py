"""The output of `quorate history diff` and `quorate history whatif`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from quorate.quorum.analytics.log.text import clock
from quorate.quorum.analytics.replay.what_if import VERDICTS, Fate, WhatIf
from quorate.quorum.metadata.records import NO_LEADER

if TYPE_CHECKING:
    from quorate.quorum.analytics.replay.differences import Comparison, Difference
    from quorate.quorum.analytics.replay.moment import Moment


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines of the differences between two moments."""
    yield (
        f"from offset {comparison.before_offset}, {clock(comparison.before_ms)} UTC, "
        f"to offset {comparison.after_offset}, {clock(comparison.after_ms)} UTC"
    )
    if not comparison.differences:
        yield "nothing differs"
    for subject, group in groupby(comparison.differences, key=lambda each: each.subject):
        changes = list(group)
        # Every change of a partition raises its epoch, which says nothing more.
        told = [each for each in changes if each.field != "partition_epoch"] or changes
        what = "" if changes[0].what == "changed" else f"{changes[0].what}, "
        yield f"{subject}: {what}{', '.join(map(_change, told))}"


def _change(each: Difference) -> str:
    if each.what == "created":
        return f"{each.field} {_value(each.after)}"
    if each.what == "removed":
        return f"{each.field} was {_value(each.before)}"
    return f"{each.field} {_value(each.before)} -> {_value(each.after)}"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def what_if_lines(at: Moment, result: WhatIf, limit: int) -> Iterator[str]:
    """Yield the lines about the loss of brokers: the counts, and the worst `limit` partitions."""
    yield f"at offset {at.offset}, {clock(at.timestamp_ms)} UTC"
    yield f"lost: {_brokers(result.lost)}"
    yield from (f"  {line}" for line in _counts(result))
    for fate in result.fates[:limit]:
        yield _fate(fate)
    if (more := len(result.fates) - limit) > 0:
        yield f"and {more:,} more partitions"


def each_broker_lines(at: Moment, results: Sequence[WhatIf]) -> Iterator[str]:
    """Yield the lines about the loss of each single broker."""
    yield f"at offset {at.offset}, {clock(at.timestamp_ms)} UTC"
    for result in results:
        yield f"without {_brokers(result.lost)}:"
        yield from (f"  {line}" for line in _counts(result))
    if not results:
        yield "no broker is active"


def _counts(result: WhatIf) -> Iterator[str]:
    counts = [f"{count:,} {verdict}" for verdict in VERDICTS if (count := result.count(verdict))]
    yield (
        f"{len(result.fates):,} of {result.partitions:,} partitions have a replica there: "
        f"{', '.join(counts) or 'none'}"
    )
    if result.lost_if_unclean:
        yield (
            f"{result.lost_if_unclean:,} of the offline partitions could be led by an unclean "
            "election, at the risk of losing data"
        )
    if result.voters_left < result.voters:
        survives = "a majority" if result.quorum_survives else "no majority: no metadata can change"
        yield f"{result.voters_left} of {result.voters} voters are left, {survives}"


def _fate(fate: Fate) -> str:
    leader = "none" if fate.leader_after == NO_LEADER else fate.leader_after
    before = "none" if fate.leader_before == NO_LEADER else fate.leader_before
    setting = "unknown" if fate.min_isr is None else fate.min_isr
    in_sync = ",".join(map(str, fate.in_sync)) or "none"
    line = (
        f"{fate.topic}-{fate.partition}: {fate.verdict}, leader {before} -> {leader}, "
        f"in sync {in_sync} of {len(fate.replicas)}, min.insync.replicas {setting}"
    )
    if fate.unclean_leader != NO_LEADER:
        line += f", unclean leader {fate.unclean_leader}"
    return line


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def what_if_json(result: WhatIf) -> dict[str, Any]:
    """Return the effect as JSON values, with the counts of the verdicts."""
    return {
        **asdict(result),
        "counts": {verdict: result.count(verdict) for verdict in VERDICTS},
        "lost_if_unclean": result.lost_if_unclean,
        "quorum_survives": result.quorum_survives,
    }
