"""The command `python -m tests.chaos.ablated RULE up ...`: `quorate` with one rule replaced in
every node.

The nodes are forked from this process, so that the replacement is in effect there, too. Nodes that
a scenario run starts again are not: `ablated_site` reaches these. The production code has no switch
for it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any

from quorate.broker.groups import loading
from quorate.broker.partition import isr_membership, leadership
from quorate.broker.partition.leadership import Leadership
from quorate.broker.partition.producer_state import ProducerStates
from quorate.cli.main import main
from quorate.quorum.controller.brokers import broker_changes
from quorate.quorum.controller.partitions import partition_change
from quorate.quorum.controller.partitions.reassignment_completion import Completion
from quorate.quorum.controller.state.sessions import NEVER_MS, Sessions
from quorate.quorum.controller.topics import placement
from quorate.quorum.faults.clock import FaultClock
from quorate.quorum.faults.link import FaultLink
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.flush import Flush
from quorate.quorum.log.opening import recovery
from quorate.quorum.log.segments.scan import scan
from quorate.quorum.metadata.records import BrokerRegistrationChangeRecord
from quorate.quorum.node.controller.uncommitted_decisions import UncommittedDecisions
from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.raft import check_quorum, follower, high_watermark
from quorate.quorum.raft.core import Core
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


def flush_on_the_loop(self: OsDisk, work: Any, done: Any) -> None:
    """Do the disk's work in the thread of the event loop, which stands still meanwhile."""
    result, failed = None, None
    try:
        result = work()
    except BaseException as error:
        failed = error
    asyncio.get_running_loop().call_soon(done, result, failed)


def flush_without_errors(self: Flush) -> None:
    """Flush, and count a failure as a success."""
    with contextlib.suppress(OSError):
        RUN(self)


def without_racks(image: Any) -> list[placement.UsableBroker]:
    """Return the usable brokers as if those of the first rack were in racks of their own, and all
    others in one. Each partition then has two replicas in the first rack."""
    found = USABLE(image)
    first = found[0].rack
    return [replace(each, rack=str(each.id) if each.rack == first else "-") for each in found]


def complete_early(
    isr: tuple[int, ...],
    replicas: tuple[int, ...],
    *,
    removing: tuple[int, ...],
    adding: tuple[int, ...],
) -> Completion | None:
    """Return a completion whose new replicas are the ISR, although they lack records."""
    if not removing and not adding:
        return None
    kept = tuple(each for each in replicas if each not in removing)
    return Completion(adding or kept, kept)


def load_nothing(self: Any, data: memoryview) -> None:
    """Skip the records of groups, as if the log had none."""
    for _, header in batches(data):
        self._offset = header.next_offset


def answer_from_memory(
    self: UncommittedDecisions, decision: Any, asked: Any, *, changes: bool = False
) -> None:
    """Answer requests that change nothing as soon as they are decided, before a majority has
    confirmed this controller and what it decided before."""
    if decision.parts or changes:
        CARRY(self, decision, asked, changes=changes)
        return
    asked.answer(decision.response)
    for effect in decision.effects:
        self._carry_out(effect)


CARRY = UncommittedDecisions.carry
RUN, USABLE = Flush.run, placement.usable_brokers


def count_absent_voters(self: Core, ids: Collection[int]) -> int:
    """Count the voters among `ids`, and those without a link as if they agreed. Count as in
    production until the quorum has committed something."""
    here = {*self.connected, self.me.id} if self.high_watermark else self.voters.ids
    return sum(each in ids or each not in here for each in self.voters.ids)


def lagging_soon(
    followers: Iterable[int], replicas: Any, end_offset: int, now_ms: int, lag_ms: int
) -> tuple[int, ...]:
    """Return the members of the ISR that are 100 ms behind."""
    return LAGGING(followers, replicas, end_offset, now_ms, min(lag_ms, 100))


LAGGING = isr_membership.lagging
Ablation = tuple[Any, str, Any]
"""An object, the name of its attribute, and the value instead."""
ALSO: dict[str, Ablation] = {
    "absent-voters": (high_watermark, "majority_offset", max),
    # otherwise a controller may resign before the sessions end
    "monotonic-sessions": (check_quorum, "has_expired", lambda core, state: False),
}
"""The second replacement of a safeguard."""
WALL_CLOCK: Ablation = (
    FaultClock,
    "now_ms",
    lambda self: self._inner.now_ms() + self.faults.rules.clock_offset_ms,
)
ABLATIONS: dict[str, Ablation] = {
    "fencing": (broker_changes, "fence", fence_alone),
    "session-expiry": (Sessions, "_first", lambda self: (NEVER_MS, -1)),
    "acks-all": (Leadership, "next_high_watermark", lambda self, high, end, now_ms: end),
    "election": (follower, "campaign", once(campaign)),
    "isr-expansion": (Leadership, "maybe_expand", lambda self, replica, high_watermark: None),
    "lag-time": (leadership, "lagging", lagging_soon),
    "absent-voters": (Core, "count_voters", count_absent_voters),
    "late-frames": (FaultLink, "_delay_ms", lambda self: 0),
    "isr-shrink": (Leadership, "maybe_shrink", lambda self, end_offset, now_ms: None),
    "linearizable-reads": (UncommittedDecisions, "carry", answer_from_memory),
    "check-quorum": (check_quorum, "has_expired", lambda core, state: False),
    "metadata-majority": (high_watermark, "majority_offset", max),
    "disk-failure": (NodeCore, "fail", lambda self, error: None),
    "flush-failure": (Flush, "run", flush_without_errors),
    "flush-thread": (OsDisk, "submit", flush_on_the_loop),
    "monotonic-time": WALL_CLOCK,
    "monotonic-sessions": WALL_CLOCK,
    "deduplication": (ProducerStates, "check", lambda self, header: None),
    "group-loading": (loading.Loading, "_replay", load_nothing),
    "rack-placement": (placement, "usable_brokers", without_racks),
    "reassignment-completion": (partition_change, "completion", complete_early),
    "log-recovery": (recovery, "scan", discard_unflushed),
}


def ablate(rule: str) -> None:
    """Replace the rule in this process. Raise KeyError if there is no such rule."""
    for owner, name, instead in (ABLATIONS[rule], *([ALSO[rule]] if rule in ALSO else [])):
        assert hasattr(owner, name)
        setattr(owner, name, instead)


if __name__ == "__main__":
    ablate(sys.argv.pop(1))
    main(prog_name="quorate")
