"""The conditions of an unclean election, and its preparation.

The topic's config decides (`Strategy`). A hint may put a hold on a broker (`Hints.hold`): an
unclean election that follows from the hint waits until the session of that broker would have
expired.

An automatic unclean election never happens in the decision that finds a partition without a leader.
`UncleanElections.prepare` notes the partition, and the controller asks the live replicas for the
ends of their logs first (`replica_log_queries.py`).
"""

from __future__ import annotations

import enum

from quorate.quorum.controller.state.context import UNCLEAN_LEADER_ELECTION, Context
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import NO_LEADER

UNCLEAN_RECOVERY_STRATEGY = "unclean.recovery.strategy"


class Strategy(enum.Enum):
    """The values of unclean.recovery.strategy (KIP-966, part 2), by what may lose records.

    NONE never elects uncleanly, except for the last known leader. BALANCED waits until the last
    known leader is active, and then elects the longest log among all active replicas. AGGRESSIVE
    elects the longest log as soon as no replica of the ISR or ELR is active. With both, the last
    known leader is a replica like the others.
    unclean.leader.election.enable=true means AGGRESSIVE.
    """

    NONE = "none"
    BALANCED = "balanced"
    AGGRESSIVE = "aggressive"


STRATEGIES = {each.value: each for each in Strategy}
"""The strategies by value."""


def strategy_of(context: Context, topic_name: str) -> Strategy:
    """Return the effective strategy of a topic.

    Stored texts may have blanks around them, which `Key.parse` accepts. Any other text than a
    strategy, which only a log of another origin can have, means NONE."""
    enabled = context.topic_config(topic_name, UNCLEAN_LEADER_ELECTION)
    if enabled is not None and enabled.strip().lower() == "true":
        return Strategy.AGGRESSIVE
    text = (context.topic_config(topic_name, UNCLEAN_RECOVERY_STRATEGY) or "").strip()
    return STRATEGIES.get(text, Strategy.NONE)


class UncleanElections:
    """A check that reads each topic's config only once. Create one per decision, because it caches
    configs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._strategies: dict[str, Strategy] = {}

    def strategy(self, topic_name: str) -> Strategy:
        """Return the effective strategy of a topic."""
        found = self._strategies.get(topic_name)
        if found is None:
            found = self._strategies[topic_name] = strategy_of(self._context, topic_name)
        return found

    def allowed(self, topic_name: str, partition: Partition) -> bool:
        """Return True if the topic allows an unclean election of the partition now.

        No replica that may have all data may have a hold: no member of the ISR or of the ELR, and
        not the last known leader. With BALANCED, the ISR and the ELR must be empty, and the last
        known leader must be active.
        """
        strategy = self.strategy(topic_name)
        if strategy is Strategy.NONE:
            return False
        if strategy is Strategy.BALANCED:
            last = partition.last_known_elr
            if partition.isr or partition.elr or not last or not self._context.is_active(last[0]):
                return False
        return not self._context.hints.holds_any(
            (*partition.isr, *partition.elr, *partition.last_known_elr)
        )

    def last_known_may_lead(self, topic_name: str) -> bool:
        """Return True if the last known leader leads as soon as it is active.

        If the topic allows unclean elections, the controller compares its log with those of the
        other active replicas first. Another replica may have led before it and have more."""
        return self.strategy(topic_name) is Strategy.NONE

    def prepare(self, topic_name: str, key: PartitionKey, leader: int) -> None:
        """Note the partition for an unclean election if `leader` is NO_LEADER and the topic may
        allow one. `Controller` asks the replicas for their logs and elects."""
        if leader == NO_LEADER and self.strategy(topic_name) is not Strategy.NONE:
            self._context.replica_logs.want(key)
