"""The conditions of an unclean election: the topic's unclean.leader.election.enable, and no hold.

`elections.py` chooses the leader. A hint may put a hold on a broker (`Hints.hold`): an unclean
election that follows from the hint waits until the session of that broker would have expired.
"""

from __future__ import annotations

from quorate.quorum.controller.context import Context
from quorate.quorum.metadata.image import Partition


class UncleanElections:
    """A check that reads each topic's config only once. Create one per decision, because it caches
    configs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._enabled: dict[str, bool] = {}

    def allowed(self, topic_name: str, partition: Partition) -> bool:
        """Return True if the topic enables unclean elections and no replica that may have all data
        has a hold: no member of the ISR or of the ELR, and not the last known leader."""
        enabled = self._enabled.get(topic_name)
        if enabled is None:
            enabled = self._context.unclean_election_enabled(topic_name)
            self._enabled[topic_name] = enabled
        return enabled and not self._context.hints.holds_any(
            (*partition.isr, *partition.elr, *partition.last_known_elr)
        )
