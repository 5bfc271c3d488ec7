"""The command `python -m tests.chaos.ablated RULE up ...`: `quorate` with one rule replaced in
every node.

The nodes are forked from this process, so that the replacement is in effect there, too. The
production code has no switch for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from quorate.broker.partition.leadership import Leadership
from quorate.cli.main import main
from quorate.quorum.controller import broker_changes
from quorate.quorum.controller.sessions import NEVER_MS, Sessions
from quorate.quorum.metadata.records import BrokerRegistrationChangeRecord
from quorate.quorum.raft import follower
from quorate.quorum.raft.vote import campaign


def fence_alone(context: Any, broker: Any, cause: Any) -> list[Any]:
    """Return records that fence the broker and leave it the leader of its partitions."""
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


Ablation = tuple[Any, str, Any]
ABLATIONS: dict[str, Ablation] = {
    "fencing": (broker_changes, "fence", fence_alone),
    "session-expiry": (Sessions, "_first", lambda self: (NEVER_MS, -1)),
    "acks-all": (Leadership, "next_high_watermark", lambda self, high, end, now_ms: end),
    "election": (follower, "campaign", once(campaign)),
    "isr-expansion": (Leadership, "maybe_expand", lambda self, replica, high_watermark: None),
}

if __name__ == "__main__":
    owner, name, instead = ABLATIONS[sys.argv.pop(1)]
    setattr(owner, name, instead)
    main(prog_name="quorate")
