"""Safeguards of Raft: elections, replication, snapshots and changes of the voters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from quorate.quorum.ids import NO_NODE, EpochOffset
from quorate.quorum.node.opening import metadata_opening
from quorate.quorum.node.replica import metadata_replica
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import (
    check_quorum,
    effects,
    fetch_serving,
    follower,
    high_watermark,
    leader,
    membership,
    snapshots,
    start,
    vote,
    voter_changes,
)
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_timers import election_deadline_ms
from quorate.quorum.raft.messages import VoteRequest
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.states import FetchState, Leader, Progress, Prospective, State
from tests.sim.ablations import quorum_scripts as scripts
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import RaftWalk, Scene, Script
from tests.sim.scripts import lost_directory_scenarios, scenarios

NOT_DURABLE = "is called committed but durable only on"
CHANGED = "committed record"
TWO_LEADERS = "has leaders"

# The production functions, for replacements that do more or less than these.
_fetch = follower._fetch
_truncate = follower._truncate
_advance = high_watermark.advance
_grants = vote._grants
_become_leader = leader.become_leader
_emit_changes = Core._emit_changes
_become = Core.become
_role = start._role
_flushed = Raft.flushed
_checked = snapshots.on_checked


def fetch_before_flush(core: Core, fetching: FetchState, leader_id: int) -> None:
    core.durable_offset = core.log.end_offset
    _fetch(core, fetching, leader_id)


def count_unflushed(core: Core, state: Leader) -> None:
    core.durable_offset = core.log.end_offset
    _advance(core, state)


def believe_in_followers(core: Core, state: Leader) -> bool:
    state.check_quorum_ms = None
    return False


def half_is_enough(offsets: Sequence[int]) -> int:
    return sorted(offsets)[-max(1, len(offsets) // 2)]


def commit_older_epochs(core: Core, granted: set[int]) -> None:
    _become_leader(core, granted)
    assert isinstance(core.state, Leader)
    core.state.epoch_start_offset = -1


def vote_for_shorter_logs(core: Core, request: VoteRequest) -> bool:
    return _grants(core, replace(request, last=EpochOffset(1 << 30, 1 << 30)))


def forget_the_vote(core: Core) -> None:
    _emit_changes(core)
    for position, effect in enumerate(core.effects):
        if isinstance(effect, effects.Persist):
            core.effects[position] = effects.Persist(replace(effect.election, voted=None))


def save_votes_only(core: Core) -> None:
    _emit_changes(core)
    core.effects[:] = [
        each
        for each in core.effects
        if not isinstance(each, effects.Persist) or each.election.voted is not None
    ]


def truncate_and_commit(core: Core, diverging: EpochOffset) -> None:
    _truncate(core, diverging)
    core.raise_high_watermark(core.log.end_offset)


def campaign_at_once(core: Core) -> None:
    """Become Prospective in name only, as if every voter had granted its pre-vote."""
    known = core.election
    state = Prospective(deadline_ms=election_deadline_ms(core), granted=set(core.voters.ids))
    core.become(state, known.epoch, voted=known.voted, leader_id=known.leader_id)


def take_any_watermark(core: Core, offset: int) -> None:
    if offset != core.high_watermark:
        core.high_watermark = offset
        core.emit(effects.Committed(offset))


def lead_on(core: Core, alone: bool) -> State:
    if core.leader_id != core.me.id:
        return _role(core, alone)
    others = core.voters.others(core.me.id)
    return Leader(
        epoch_start_offset=core.log.end_offset,
        voters={voter_id: Progress(core.voters.key(voter_id), True) for voter_id in others},
        check_quorum_ms=core.now_ms + core.settings.check_quorum_timeout_ms,
        begin_epoch_ms=core.now_ms,
    )


def keep_requests(
    core: Core, state: State, epoch: int, *, voted: Any, leader_id: int = NO_NODE
) -> None:
    asked = dict(core.in_flight)
    _become(core, state, epoch, voted=voted, leader_id=leader_id)
    core.in_flight.update(asked)


def any_flush_counts(raft: Raft, now_ms: int, epoch: int, offset: int) -> None:
    _flushed(raft, now_ms, raft.epoch, offset)


def persist_later(replica: metadata_replica.MetadataReplica, effect: effects.Persist) -> None:
    election: Election = effect.election
    replica._disk.submit(lambda: replica._election_file.save(election), lambda _, error: None)
    replica.raft.election_saved(election)


def gate(*, own_epoch: bool, one_at_a_time: bool) -> Callable[[Core, Leader], None]:
    def require(core: Core, state: Leader) -> None:
        nothing = core.high_watermark <= state.epoch_start_offset
        pending = state.change is not None or core.history.latest_offset >= core.high_watermark
        if (own_epoch and nothing) or (one_at_a_time and pending):
            raise voter_changes.VoterChangeRefused(ErrorCode.REQUEST_TIMED_OUT, "not yet")

    return require


def count_the_removed(core: Core, state: Leader) -> None:
    offsets = [each.end_offset for each in state.voters.values()]
    offset = sorted([*offsets, core.durable_offset], reverse=True)[(len(offsets) + 1) // 2]
    if offset > state.epoch_start_offset:
        core.raise_high_watermark(offset)


def install_unchecked(core: Core, snapshot: EpochOffset, size_bytes: int, quorum: Any) -> None:
    parts = getattr(core.snapshots, "parts")  # noqa: B009  # of the snapshots in memory
    _checked(core, snapshot, max(size_bytes, len(parts[snapshot])), quorum)


ABLATIONS = (
    Ablation(
        "flush-before-fetch",
        "a voter flushes its log before it fetches more records",
        follower,
        "_fetch",
        fetch_before_flush,
        RaftWalk(80, 26),
        NOT_DURABLE,
    ),
    Ablation(
        "leader-flush",
        "a leader counts its own copy of a record only when it has flushed this copy",
        high_watermark,
        "advance",
        count_unflushed,
        RaftWalk(18, 45),
        NOT_DURABLE,
    ),
    Ablation(
        "majority",
        "a record is committed only when more than half of the voters have it",
        high_watermark,
        "majority_offset",
        half_is_enough,
        RaftWalk(11, 22),
        NOT_DURABLE,
    ),
    Ablation(
        "current-epoch-commit",
        "a leader commits records of older epochs only through a record of its own epoch "
        "(Figure 8)",
        leader,
        "become_leader",
        commit_older_epochs,
        RaftWalk(73, 333),
        "does not have the committed records",
    ),
    Ablation(
        "longest-log",
        "a voter votes only for a candidate whose log is at least as long as its own",
        vote,
        "_grants",
        vote_for_shorter_logs,
        RaftWalk(9, 376),
        "does not have the committed records",
    ),
    Ablation(
        "one-vote",
        "a voter votes once in an epoch",
        vote,
        "_grants",
        lambda core, request: True,
        RaftWalk(12, 59),
        TWO_LEADERS,
    ),
    Ablation(
        "vote-saved",
        "the saved election names the candidate that got the vote",
        Core,
        "_emit_changes",
        forget_the_vote,
        Script(scripts.vote_forgotten_in_a_crash),
        TWO_LEADERS,
    ),
    Ablation(
        "election-saved",
        "a node saves its election also without a vote, because it names the voters' known "
        "directories",
        Core,
        "_emit_changes",
        save_votes_only,
        RaftWalk(747, 176),
        NOT_DURABLE,
    ),
    Ablation(
        "persist-barrier",
        "a node sends no message before the election that the message rests on is durable",
        metadata_replica.MetadataReplica,
        "_persist",
        persist_later,
        Scene(scenarios.vote_forgotten),
        "with the saved votes of",
    ),
    Ablation(
        "raft-truncation",
        "a follower truncates the records that its leader does not have",
        follower,
        "_truncate",
        lambda core, diverging: True,
        RaftWalk(5, 400),
        "does not come to rest",
    ),
    Ablation(
        "raft-log-matching",
        "a Fetch names the epoch of the record before its offset, and the leader compares this "
        "epoch",
        fetch_serving,
        "diverging_epoch",
        lambda core, offset, epoch: None,
        RaftWalk(25, 111),
        NOT_DURABLE,
    ),
    Ablation(
        "matching-watermark",
        "a high watermark counts only for a log that is known to match the leader's (R15)",
        follower,
        "_truncate",
        truncate_and_commit,
        RaftWalk(35, 266),
        NOT_DURABLE,
    ),
    Ablation(
        "raft-watermark",
        "the high watermark of the quorum never goes back",
        Core,
        "raise_high_watermark",
        take_any_watermark,
        RaftWalk(76, 178),
        "a high watermark went back",
    ),
    Ablation(
        "flush-epoch",
        "a flush that was requested in an older epoch proves nothing (R22)",
        Raft,
        "flushed",
        any_flush_counts,
        Script(scripts.late_flush),
        NOT_DURABLE,
    ),
    Ablation(
        "pre-vote",
        "a replica that could not win an election does not raise the epoch",
        follower,
        "campaign",
        campaign_at_once,
        Script(scripts.cut_off_and_back),
        "a leader that works was deposed",
    ),
    Ablation(
        "check-quorum",
        "a leader from which no majority fetches resigns",
        check_quorum,
        "has_expired",
        believe_in_followers,
        Script(scripts.nobody_follows),
        "a leader that nobody follows leads on",
    ),
    Ablation(
        "resigned-after-restart",
        "a leader that restarts does not lead the same epoch again (KAFKA-10527)",
        start,
        "_role",
        lead_on,
        Script(scripts.leader_restarted),
        "logs differ",
    ),
    Ablation(
        "forgotten-requests",
        "a replica ignores the answers to requests that it sent in an earlier role (R10, R24)",
        Core,
        "become",
        keep_requests,
        RaftWalk(17, 80),
        "does not come to rest",
    ),
    Ablation(
        "own-epoch-gate",
        "a leader changes the voters only after a commit in its own epoch",
        voter_changes,
        "_require_settled",
        gate(own_epoch=False, one_at_a_time=True),
        Script(scripts.change_of_a_new_leader),
        CHANGED,
    ),
    Ablation(
        "one-change",
        "a leader makes only one change of the voters at a time",
        voter_changes,
        "_require_settled",
        gate(own_epoch=True, one_at_a_time=False),
        Script(scripts.two_changes_at_once),
        CHANGED,
    ),
    Ablation(
        "truncated-voters",
        "a voter set is no longer in effect when its record is truncated",
        membership,
        "on_truncation",
        lambda core, end_offset: None,
        Script(scripts.change_truncated),
        "after a change that never was",
    ),
    Ablation(
        "removed-leader",
        "a leader that removed itself from the voters does not count its own log (KAFKA-16530)",
        high_watermark,
        "advance",
        count_the_removed,
        RaftWalk(3, 77),
        NOT_DURABLE,
    ),
    Ablation(
        "joining-flush",
        "a controller flushes before it fetches, also while it is no voter",
        Core,
        "must_flush_before_fetch",
        property(lambda core: core.is_voter),
        Script(scripts.joins_without_knowing),
        NOT_DURABLE,
    ),
    Ablation(
        "wiped-directory",
        "a replica with a voter's id and another directory does not vote (KAFKA-12181)",
        Core,
        "verify_voter_key",
        lambda core, replica: True,
        Script(scripts.wiped_voter),
        "a committed record changed",
    ),
    Ablation(
        "lost-log",
        "a voter that lost its log does not vote before it has caught up",
        Core,
        "catching_up",
        property(lambda core: False),
        Script(scripts.log_lost),
        CHANGED,
    ),
    Ablation(
        "metadata-mark",
        "the metadata mark distinguishes a lost metadata directory from a new one",
        metadata_opening,
        "why_lost",
        lambda mark, found: "",
        Scene(lost_directory_scenarios.committed_topic_stays),
        "has Print",
    ),
    Ablation(
        "lost-acknowledgements",
        "a leader does not count the fetches of a replica that is catching up",
        fetch_serving,
        "NO_OFFSET",
        1 << 40,
        Script(scripts.log_lost_and_fetched_again),
        NOT_DURABLE,
    ),
    Ablation(
        "snapshot-verification",
        "a replica checks the whole of a received snapshot before it uses the snapshot",
        snapshots,
        "on_checked",
        install_unchecked,
        RaftWalk(22, 218),
        "snapshot",
    ),
    Ablation(
        "snapshot-replaces-log",
        "a snapshot replaces a log that does not contain its last record",
        snapshots,
        "log_contains",
        lambda core, snapshot: True,
        RaftWalk(26, 400),
        "is beyond the log",
    ),
)
