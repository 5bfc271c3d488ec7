"""The command `python -m tests.chaos.ablated RULE up ...`: `quorate` with one rule replaced in
every node.

The nodes are forked from this process, so that the replacement is in effect there, too. Nodes that
a scenario run starts again are not: `ablated_site` reaches these. The production code has no switch
for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

from quorate.broker.partition.leadership import Leadership
from quorate.cli.main import main
from quorate.quorum.controller import broker_changes
from quorate.quorum.controller.sessions import NEVER_MS, Sessions
from quorate.quorum.log import recovery
from quorate.quorum.log.scan import scan
from quorate.quorum.metadata.records import BrokerRegistrationChangeRecord
from quorate.quorum.raft import check_quorum, follower, high_watermark
from quorate.quorum.raft.vote import campaign


def fence_alone(context: Any, broker: Any, cause: Any) -> Generator[Any, None, list[Any]]:
    """Return records that fence the broker and leave it the leader of its partitions."""
    yield from ()
    return [
        BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, fenced=broker_changes.FENCE, cause=cause
        )
    ]


def once(begin: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a function that campaigns for the first epoch only."""

    def first_only(core: Any) -> None:
        if core.election.epoch == 0:
            begin(core)

    return first_only


def discard_unflushed(segment: Any) -> Iterator[tuple[int, Any, bool]]:
    """Return the scan of a partition's segment without any batch, as if all of it were torn."""
    if "__cluster_metadata" in segment.path:
        yield from scan(segment)
    else:
        yield 0, None, False


Ablation = tuple[Any, str, Any]
ABLATIONS: dict[str, Ablation] = {
    "fencing": (broker_changes, "fence", fence_alone),
    "session-expiry": (Sessions, "_first", lambda self: (NEVER_MS, -1)),
    "acks-all": (Leadership, "next_high_watermark", lambda self, high, end, now_ms: end),
    "election": (follower, "campaign", once(campaign)),
    "isr-expansion": (Leadership, "maybe_expand", lambda self, replica, high_watermark: None),
    "isr-shrink": (Leadership, "maybe_shrink", lambda self, end_offset, now_ms: None),
    "check-quorum": (check_quorum, "has_expired", lambda core, state: False),
    "metadata-majority": (high_watermark, "majority_offset", max),
    "log-recovery": (recovery, "scan", discard_unflushed),
}


def ablate(rule: str) -> None:
    """Replace the rule in this process. Raise KeyError if there is no such rule."""
    owner, name, instead = ABLATIONS[rule]
    assert hasattr(owner, name)
    setattr(owner, name, instead)


if __name__ == "__main__":
    ablate(sys.argv.pop(1))
    main(prog_name="quorate")
