"""The follower and the observer: fetch, append, truncate, learn what is committed (KIP-595).

The offset of a fetch is an acknowledgement, so a voter fetches only after a flush of its whole log.
The fetch of an observer acknowledges nothing. After a response with records it pauses: a stream of
commits then costs the leader one response for many commits. A node that waits for a commit of its
own request ends the pause.
"""

from __future__ import annotations

from quorate.quorum.ids import NO_NODE, EpochOffset
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.log.files.errors import BrokenChain, CorruptBatch, OutOfFiles
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import catching_up, effects, membership, snapshots
from quorate.quorum.raft.core import NO_FLUSH, Core
from quorate.quorum.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.quorum.raft.record_checks import check_records
from quorate.quorum.raft.states import FetchState, Follower, Unattached
from quorate.quorum.raft.transitions import learn_from_response
from quorate.quorum.raft.vote import campaign
from quorate.quorum.raft.voter_history import key_of
from quorate.quorum.state_in_doubt import changing

OBSERVER_PAUSE_MS = 5
"""The pause of an observer after a response with records."""
NEVER = (1 << 63) - 1
"""The high watermark in the fetch of a replica that does not wait for commits: no leader's is
higher, so only new records or the deadline end the wait."""


def step_follower(core: Core, state: Follower) -> None:
    """Start a pre-vote if the fetch timeout has passed. Otherwise fetch, and ask the leader to
    correct this node's entry in the voter set."""
    if _may_start_election(core, state):
        campaign(core)
    else:
        if core.catching_up:
            catching_up.step(core, state)
        if state.has_fetched:
            _update_voter(core, state)
        _fetch(core, state.fetching, state.leader_id)


def step_unattached(core: Core, state: Unattached) -> None:
    """Start a pre-vote if the timeout has passed. Otherwise a node that is not a voter, or is
    catching up, asks other nodes for the leader."""
    if _may_start_election(core, state):
        campaign(core)
    elif core.looks_for_leader:
        _fetch(core, state.fetching, NO_NODE)


def _may_start_election(core: Core, state: Follower | Unattached) -> bool:
    """Return True if the deadline has passed and this node may start an election."""
    if state.deadline_ms is None or core.now_ms < state.deadline_ms:
        return False
    if not core.is_electable:
        state.deadline_ms = None  # it was removed from the voters
    return core.is_electable


def on_fetch_response(
    core: Core, voter_id: int, request: FetchRequest, response: FetchResponse | None
) -> None:
    """Handle the leader's response: truncate, begin with a snapshot, or append the records.

    After an invalid response, an error or a timeout the log is unchanged, and the fetch is repeated
    later. Any response may teach this node a later epoch or a leader.
    """
    state = _leaders_follower(core, voter_id, response)
    if state is None or response is None:
        return
    fetching = state.fetching
    if response.error != ErrorCode.NONE:
        _retry_later(core, fetching)
        return
    if (response.epoch, response.leader_id) != (core.epoch, state.leader_id):
        core.refuse_claim(
            voter_id,
            f"responded to a fetch of epoch {core.epoch} with epoch {response.epoch} and leader "
            f"{response.leader_id}. The fetch is repeated",
        )
        _retry_later(core, fetching)
        return
    _leader_responded(core, state)
    if response.snapshot is not None:
        if not snapshots.begin_fetch(core, fetching, response.snapshot):
            _retry_later(core, fetching)
        return
    if response.diverging is not None:
        # The leader's high watermark holds only for a log that is a prefix of its own (R15).
        if not _truncate(core, response.diverging):
            _retry_later(core, fetching)
        return
    try:
        placed, checked = check_records(core, response.records)
        with changing("the metadata log", CorruptBatch, BrokenChain, OSError):
            core.log.append(response.records, wall_ms=core.wall_ms, placed=placed)
    except (CorruptBatch, BrokenChain, OutOfFiles) as error:  # the log is unchanged
        core.report(
            voter_id,
            f"the response of leader {voter_id} to a fetch is refused, and the fetch repeated: "
            f"{error}",
        )
        _retry_later(core, fetching)
        return
    core.followed.appended(checked)
    assert core.log.last_epoch <= core.epoch, f"follows {core.epoch}, log {core.log_end()}"
    if core.must_flush_before_fetch and core.durable_offset < core.log.end_offset:
        core.flush()  # first, because the leader waits for this flush
    if response.records and not core.is_voter:
        fetching.retry_ms = core.now_ms + OBSERVER_PAUSE_MS
    membership.on_follower_append(core, response.records)
    core.raise_high_watermark(min(response.high_watermark, core.log.end_offset))
    state.leader_high_watermark = response.high_watermark
    state.replaced_voter = response.replaced_voter


def on_fetch_snapshot_response(
    core: Core,
    voter_id: int,
    request: FetchSnapshotRequest,
    response: FetchSnapshotResponse | None,
) -> None:
    """Handle a chunk of a snapshot. After an invalid response, the request is repeated later."""
    state = _leaders_follower(core, voter_id, response)
    if state is None or response is None:
        return
    if not snapshots.on_chunk(core, state.fetching, request, response):
        _retry_later(core, state.fetching)
    elif response.error == ErrorCode.NONE:
        _leader_responded(core, state)


def _leaders_follower(
    core: Core, voter_id: int, response: FetchResponse | FetchSnapshotResponse | None
) -> Follower | None:
    """Return the follower state if the response came from the current leader.

    Otherwise schedule a retry, perhaps with another node, and return None.
    """
    state = core.state
    if not isinstance(state, Follower | Unattached):
        return None
    state.fetching.token = None
    if response is not None:
        learn_from_response(core, voter_id, response)
        if core.state is not state:
            return None
        if isinstance(state, Follower) and voter_id == state.leader_id:
            return state
    _retry_later(core, state.fetching)
    if response is not None and isinstance(state, Follower):
        # If another node confirms the leader, fetch from the leader again.
        state.fetching.failed = response.leader_id != state.leader_id
    return None


def on_update_voter_response(
    core: Core,
    voter_id: int,
    request: UpdateVoterRequest,
    response: UpdateVoterResponse | None,
) -> None:
    """Adopt the epoch and the leader. The request is repeated until the voter set has changed."""
    if response is not None:
        learn_from_response(core, voter_id, response)


def _update_voter(core: Core, state: Follower) -> None:
    """Ask the leader to correct this node's entry in the voter set, or to add this node."""
    own_voter, quorum = core.own_voter, core.history.latest
    if own_voter is None or quorum.kraft_version == 0 or core.now_ms < state.next_update_ms:
        return
    state.next_update_ms = core.now_ms + core.settings.fetch_timeout_ms
    caught_up = core.high_watermark == core.log.end_offset
    join = not core.is_voter and core.settings.auto_join and caught_up
    known = next((each for each in quorum.voters if key_of(each) == core.me), own_voter)
    if join or known != own_voter:
        request = UpdateVoterRequest(
            cluster_id=core.cluster_id,
            replica=core.me,
            epoch=core.epoch,
            voter=own_voter,
            join=join,
        )
        core.send(state.leader_id, request)


def _leader_responded(core: Core, state: Follower) -> None:
    """Note that the leader works, and restart the fetch timeout."""
    state.fetching.failed = state.fetching.is_first = False
    state.has_fetched = True
    core.superseded = False  # this quorum has a leader
    state.last_response_ms = core.now_ms
    state.leader_gone = False
    if state.deadline_ms is not None:
        state.deadline_ms = core.now_ms + core.settings.fetch_timeout_ms


def fetch_paused(core: Core) -> bool:
    """Return True if this node is an observer that follows a leader, has no fetch in flight, and
    whose last fetch did not fail."""
    state = core.state
    if not isinstance(state, Follower):
        return False
    return state.fetching.token is None and not state.fetching.failed and not core.is_voter


def end_pause(core: Core) -> None:
    """Let the observer fetch immediately, if it pauses."""
    if isinstance(core.state, Follower) and fetch_paused(core):
        core.state.fetching.retry_ms = core.now_ms


def next_fetch_ms(core: Core, state: Follower | Unattached) -> int | None:
    """Return the time of the next fetch. Return None if another event comes first (a response, a
    flush or a snapshot), or if this node waits for an election instead."""
    fetching = state.fetching
    if fetching.token is not None or core.installing is not None:
        return None
    if isinstance(state, Unattached) and not core.looks_for_leader:
        return None
    if core.must_flush_before_fetch and core.durable_offset < core.log.end_offset:
        return None
    return fetching.retry_ms


def _fetch(core: Core, fetching: FetchState, leader_id: int) -> None:
    """Send a fetch if none is in flight, the log is flushed and the retry time has come.

    If the leader is unknown or failed, an observer sends it to a random voter or bootstrap server.
    """
    if fetching.token is not None or core.installing is not None:
        return
    last, settings = core.log_end(), core.settings
    if core.must_flush_before_fetch and core.durable_offset < last.offset:
        core.flush()
        return
    if core.now_ms < fetching.retry_ms:
        return
    if not core.has_address(leader_id) or (fetching.failed and core.looks_for_leader):
        fetching.failed = False
        others = (*core.voters.others(core.me.id), *core.bootstrap_ids)
        if not others:
            fetching.retry_ms = core.now_ms + settings.fetch_timeout_ms
            return  # this node knows no other node
        leader_id = others[core.random.randrange(0, len(others))]
    if fetching.snapshot is not None:
        fetching.token = core.send(leader_id, snapshots.next_request(core, fetching))
        return
    awaits_commit = settings.await_commit or fetching.is_first or core.looks_for_leader
    request = FetchRequest(
        cluster_id=core.cluster_id,
        replica=core.me,
        epoch=core.epoch,
        offset=last.offset,
        last_fetched_epoch=last.epoch,
        max_wait_ms=settings.fetch_max_wait_ms,
        max_bytes=settings.fetch_max_bytes,
        high_watermark=core.high_watermark if awaits_commit else NEVER,
        catching_up=core.catching_up,
    )
    fetching.token = core.send(leader_id, request, settings.fetch_max_wait_ms)


def cancel_fetch(core: Core, fetching: FetchState) -> None:
    """If a fetch is in flight, ignore its response and retry later."""
    if fetching.token is not None:
        core.in_flight.pop(fetching.token, None)
        fetching.token = None
        _retry_later(core, fetching)


def _retry_later(core: Core, fetching: FetchState) -> None:
    """Mark the fetch as failed, and schedule the next one after the retry backoff."""
    fetching.failed = True
    fetching.retry_ms = core.now_ms + core.settings.retry_backoff_ms


def _truncate(core: Core, diverging: EpochOffset) -> bool:
    """Truncate the log to its common part with the leader's.

    Return False, and truncate nothing, if committed records would be lost or if the logs agree.
    """
    offset = agreed_offset(core, diverging)
    if core.high_watermark <= offset < core.log.end_offset:
        offset = _start_of_batch(core, offset)  # The log removes whole batches.
    if offset < core.high_watermark:
        core.refuse_claim(
            core.leader_id,
            f"leads epoch {core.epoch} and does not have the committed records from offset "
            f"{offset} to {core.high_watermark}. This node keeps them and repeats the fetch. Find "
            "out which node lost records",
        )
        return False
    if offset >= core.log.end_offset:
        return False
    core.log.truncate_to(offset)
    assert core.high_watermark <= core.log.end_offset, "committed records were truncated"
    core.durable_offset = min(core.durable_offset, core.log.end_offset)
    core.requested_flush = NO_FLUSH  # the log may grow to the same end with other records
    core.emit(effects.Truncated(offset))
    membership.on_truncation(core, offset)
    return True


def _start_of_batch(core: Core, offset: int) -> int:
    """Return the first offset of the batch that holds `offset`.

    An honest leader names the start of a batch, and its high watermark is one, too."""
    (position, header), *_ = batches(core.log.read(offset, 1))
    assert position == 0 and header.base_offset <= offset < header.next_offset
    return header.base_offset


def agreed_offset(core: Core, diverging: EpochOffset) -> int:
    """Return the offset up to which this log can agree with the leader's.

    `diverging` is an epoch and its end offset in the leader's log. Only records that are known to
    differ lie beyond the result (R14 in tests/scenarios).
    """
    own_voter = (
        core.log.epochs.end_offset_for(diverging.epoch, core.log.end_offset) or core.log_end()
    )
    if own_voter.epoch == diverging.epoch:
        return min(own_voter.offset, diverging.offset)
    return own_voter.offset
