"""The state of the metadata quorum for `quorate status`: the voters that answer, and how many more
losses the quorum survives. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorate.cli.client.quorum import Quorum

SILENT_MS = 2_000
"""The time without a fetch after which a voter counts as dead. A healthy voter fetches at least
every 500 ms. The default of controller.quorum.fetch.timeout.ms is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumHealth:
    """The voters as the leader sees them.

    `lags` is the lag of each voter in records. `silent_ms` has the voters that do not fetch, with
    the time since their last fetch in ms, or None if this leader has had no fetch of the voter.
    `replaced` are the silent voters of which a controller with the same id and another directory
    fetches: their disk was replaced, and the controller does not vote."""

    lags: Mapping[int, int]
    silent_ms: Mapping[int, int | None]
    replaced: frozenset[int] = frozenset()

    @property
    def answering(self) -> int:
        """Return the number of voters that answer."""
        return len(self.lags) - len(self.silent_ms)

    @property
    def spare(self) -> int:
        """Return the number of voters that may still be lost before the quorum is lost."""
        return self.answering - (len(self.lags) // 2 + 1)

    def summary(self) -> str:
        """Return the sentence about the voters, such as "2 of 3 voters answer; one more loss ends
        the quorum"."""
        said = f"{self.answering} of {len(self.lags)} voters answer"
        if not self.silent_ms:
            return said
        dead = ", ".join(map(str, self.silent_ms))
        if self.spare > 0:
            more = f"the quorum survives the loss of {self.spare} more"
        elif self.spare == 0:
            more = "one more loss ends the quorum"
        else:
            more = "the quorum is lost"
        return f"{said}, {dead} {'does' if len(self.silent_ms) == 1 else 'do'} not; {more}"

    def voters(self) -> str:
        """Return each voter with its lag, and with its silence if it is dead."""
        return ", ".join(f"{voter} ({self._state(voter)})" for voter in self.lags)

    def _state(self, voter: int) -> str:
        if voter not in self.silent_ms:
            return f"{self.lags[voter]} behind"
        if voter in self.replaced:
            return "DOES NOT VOTE, has another disk; remove the old voter, then add this one"
        silent_ms = self.silent_ms[voter]
        if silent_ms is None:
            return "DEAD, no fetch in this epoch"
        return f"DEAD, silent for {silent_ms // 1000} s"


def health_of(quorum: Quorum) -> QuorumHealth:
    """Return the health of the quorum. The times are all of the leader's clock. Raise Refused if no
    voter leads."""
    leader = quorum.leader
    voters = sorted(quorum.state.current_voters, key=lambda voter: voter.replica_id)
    silent: dict[int, int | None] = {}
    for voter in voters:
        if voter.replica_id == leader.replica_id:
            continue
        silent_ms = leader.last_fetch_timestamp - voter.last_fetch_timestamp
        if voter.last_fetch_timestamp < 0:
            silent[voter.replica_id] = None
        elif silent_ms > SILENT_MS and leader.last_fetch_timestamp >= 0:
            silent[voter.replica_id] = silent_ms
    lags = {each.replica_id: leader.log_end_offset - each.log_end_offset for each in voters}
    replaced = silent.keys() & {each.replica_id for each in quorum.state.observers}
    return QuorumHealth(lags=lags, silent_ms=silent, replaced=frozenset(replaced))
