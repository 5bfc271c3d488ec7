"""The recovery of a replica whose directory lost records: it catches up before it votes.

Raft relies on every voter to keep the records that the voter acknowledged. A voter that came back
with an empty log could elect a leader without committed records (KAFKA-12181). When the node
starts, the shell detects such a loss (`quorum/node/replica/metadata_mark.py`) and passes it to the
core. Until the replica has caught up:

- It grants no vote and no pre-vote, and starts no election.
- Its fetches are marked. The leader does not count their offsets, and they may step back.
- It asks the voters for the leader, as an observer does.

The replica has caught up when its durable log reaches the high watermark that the current leader
sent, and that high watermark is beyond the start of the leader's own epoch. Both parts matter:

- The log of a leader holds everything that was committed before its epoch (leader completeness). A
  replica that holds a record of the leader's epoch therefore holds all of that, too.
- The high watermark covers the records that were committed in this epoch.

The replica knows the last epoch in which it voted, because the mark is outside of the directory
that was lost. It therefore never follows a leader of an older epoch. The core emits `CaughtUp`
once for each leader that it follows until the shell has saved that and calls `Raft.caught_up`. Only
then does the replica vote again.
"""

from __future__ import annotations

from quorate.quorum.raft import effects
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.states import Follower, Unattached


def step(core: Core, state: Follower) -> None:
    """Emit `CaughtUp` if the log holds every record that this replica may have acknowledged."""
    if state.caught_up or not _is_complete(core, state):
        return
    state.caught_up = True
    core.emit(effects.CaughtUp())


def end(core: Core) -> None:
    """Let this replica vote from now on."""
    core.lost_log = False
    state = core.state
    if not core.is_electable:
        return
    if isinstance(state, Follower):
        state.deadline_ms = core.now_ms + core.settings.fetch_timeout_ms
    elif isinstance(state, Unattached):
        state.deadline_ms = election_deadline_ms(core)


def _is_complete(core: Core, state: Follower) -> bool:
    committed = state.leader_high_watermark
    end = core.log_end()
    if committed == 0 or core.durable_offset < committed or end.epoch != core.epoch:
        return False
    latest = core.snapshots.latest
    if latest is not None and latest.epoch == core.epoch and latest.offset <= committed:
        return True  # a snapshot holds committed records only
    before = core.log.epochs.end_offset_for(core.epoch - 1, core.log.end_offset)
    return before is None or before.offset < committed
