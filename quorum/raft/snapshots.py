"""Snapshots between nodes (KIP-630): the leader serves chunks to replicas that are too far behind.

A replica fetches the chunks of a snapshot in order. It continues where it stopped, also after a
restart or with another leader, because the snapshot of one (epoch, offset) has the same bytes on
every node. The whole snapshot is checked and durable before it replaces the log. It holds committed
records only, so it never removes a record that this node knows as committed.
"""

from __future__ import annotations

from quorate.quorum.ids import EpochOffset
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects, membership
from quorate.quorum.raft.core import NO_FLUSH, Core
from quorate.quorum.raft.errors import InvariantViolation
from quorate.quorum.raft.fetch_serving import leader_refusal
from quorate.quorum.raft.messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorate.quorum.raft.replica_progress import note_voter_fetch, progress_of
from quorate.quorum.raft.states import FetchState, Leader
from quorate.quorum.raft.voter_history import QuorumVoters

MAX_SNAPSHOT_BYTES = 1 << 34
"""A replica does not fetch a larger snapshot, in bytes."""

# -- the leader ------------------------------------------------------------------------------


def on_fetch_snapshot(core: Core, token: int, request: FetchSnapshotRequest) -> None:
    """Respond with a chunk of a snapshot, or with an error. If the snapshot is damaged or gone, the
    error is SNAPSHOT_NOT_FOUND, and the replica asks for the latest one."""
    error = leader_refusal(core, request) or _snapshot_refusal(core, request)
    if error != ErrorCode.NONE:
        core.reply(token, _response(core, error))
        return
    state = core.state
    assert isinstance(state, Leader)
    progress = progress_of(core, state, request.replica)
    if progress is not None:
        progress.last_fetch_ms = core.now_ms
        if progress.is_voter:
            note_voter_fetch(core, state, progress)
    max_bytes = min(request.max_bytes, core.settings.fetch_snapshot_max_bytes)
    data = core.snapshots.read(request.snapshot, request.position, max_bytes)
    if data is None:  # the replica then asks for the latest one
        core.reply(token, _response(core, ErrorCode.SNAPSHOT_NOT_FOUND))
        return
    response = FetchSnapshotResponse(
        error=ErrorCode.NONE,
        epoch=core.epoch,
        leader_id=core.leader_id,
        size_bytes=core.snapshots.size_of(request.snapshot),
        data=data,
        leader=core.addresses.get(core.leader_id),
    )
    core.reply(token, response)


def _snapshot_refusal(core: Core, request: FetchSnapshotRequest) -> ErrorCode:
    """Return the error of a request that names no part of a snapshot of this node, or NONE."""
    if request.max_bytes <= 0:
        return ErrorCode.INVALID_REQUEST
    if request.snapshot not in core.snapshots:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if not 0 <= request.position < core.snapshots.size_of(request.snapshot):
        return ErrorCode.POSITION_OUT_OF_RANGE
    return ErrorCode.NONE


def _response(core: Core, error: ErrorCode) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(
        error=error,
        epoch=core.epoch,
        leader_id=core.leader_id,
        leader=core.addresses.get(core.leader_id),
    )


# -- the replica -----------------------------------------------------------------------------


def begin_fetch(core: Core, fetching: FetchState, snapshot: EpochOffset) -> bool:
    """Begin to fetch `snapshot`, which the leader named in its response to a fetch.

    Return False, and report the leader's claim, if the snapshot ends at or below this node's high
    watermark, or if its epoch is later than the leader's.
    """
    if snapshot.offset <= core.high_watermark or snapshot.epoch > core.epoch:
        core.refuse_claim(
            core.leader_id,
            f"leads epoch {core.epoch} and offers a snapshot that ends at offset "
            f"{snapshot.offset} of epoch {snapshot.epoch}, but everything below "
            f"{core.high_watermark} is committed here. The snapshot is not fetched",
        )
        return False
    fetching.snapshot = snapshot
    fetching.position = core.snapshots.part_bytes(snapshot)
    fetching.size_bytes = 0
    return True


def next_request(core: Core, fetching: FetchState) -> FetchSnapshotRequest:
    """Return the request for the next chunk."""
    assert fetching.snapshot is not None
    return FetchSnapshotRequest(
        cluster_id=core.cluster_id,
        replica=core.me,
        epoch=core.epoch,
        snapshot=fetching.snapshot,
        position=fetching.position,
        max_bytes=core.settings.fetch_snapshot_max_bytes,
    )


def on_chunk(
    core: Core,
    fetching: FetchState,
    request: FetchSnapshotRequest,
    response: FetchSnapshotResponse,
) -> bool:
    """Store a chunk. After the last one, emit `InstallSnapshot`.

    Return False if the response is an error or not the expected chunk. The caller then retries
    later. If the leader does not have the snapshot any more, the received bytes are discarded, and
    the next fetch is one of the log, to which the leader may answer with another snapshot.
    """
    snapshot = request.snapshot
    end = request.position + len(response.data)
    fits = 0 < len(response.data) <= request.max_bytes and end <= response.size_bytes
    if response.error == ErrorCode.NONE:
        fits = fits and _is_its_size(core, fetching, response.size_bytes)
    if response.error == ErrorCode.NONE and fits:
        core.snapshots.write_part(snapshot, request.position, response.data)
        fetching.position = end
        if end == response.size_bytes:
            core.installing = snapshot
            core.emit(effects.InstallSnapshot(snapshot))
        return True
    if response.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        core.snapshots.drop_part(snapshot)
        fetching.snapshot = None
    return False


def _is_its_size(core: Core, fetching: FetchState, size_bytes: int) -> bool:
    """Return True if the snapshot may have this size. Every chunk names the same size."""
    known_bytes = fetching.size_bytes or size_bytes
    if size_bytes == known_bytes <= MAX_SNAPSHOT_BYTES:
        fetching.size_bytes = size_bytes
        return True
    core.refuse_claim(
        core.leader_id,
        f"serves a snapshot of {size_bytes} bytes, earlier of {known_bytes}. It is not fetched: "
        f"the size must not change or exceed {MAX_SNAPSHOT_BYTES} bytes",
    )
    return False


def on_checked(core: Core, snapshot: EpochOffset, size_bytes: int, quorum: QuorumVoters) -> None:
    """Install the received snapshot, which is durable now, in place of the log.

    `quorum` holds the voters that the snapshot names. A size of -1 means that the received bytes
    were not a whole snapshot; they are discarded. If the log already holds the snapshot's records,
    it stays. Raise InvariantViolation if this node leads and its log lacks them.
    """
    core.installing = None
    fetching = getattr(core.state, "fetching", None)
    if fetching is not None:
        fetching.snapshot = None
    if size_bytes < 0:
        core.report(
            core.leader_id,
            f"the received snapshot {snapshot.offset}-{snapshot.epoch} is damaged and is discarded",
        )
        core.snapshots.drop_part(snapshot)
        return
    core.snapshots.added(snapshot, size_bytes)
    if log_contains(core, snapshot):
        core.raise_high_watermark(snapshot.offset)
        return
    if isinstance(core.state, Leader):
        raise InvariantViolation(
            f"this node leads with a log that ends at {core.log_end()} and does not contain the "
            f"installed snapshot {snapshot}"
        )
    assert snapshot.offset >= core.high_watermark, f"{snapshot} is below {core.high_watermark}"
    core.log.reset_to(snapshot.offset, snapshot.epoch)
    core.snapshots.remove_before(snapshot.offset)
    core.durable_offset = core.log.flushed_offset
    assert core.durable_offset <= core.log.end_offset == snapshot.offset
    core.requested_flush = NO_FLUSH
    core.emit(effects.SnapshotInstalled(snapshot))
    membership.on_snapshot_installed(core, quorum)
    core.raise_high_watermark(snapshot.offset)


def log_contains(core: Core, snapshot: EpochOffset) -> bool:
    """Return True if this log contains the last record of `snapshot`. Its log then agrees with the
    whole snapshot, by the log matching property of Raft."""
    end = core.log.epochs.end_offset_for(snapshot.epoch, core.log.end_offset) or core.log_end()
    return end.epoch == snapshot.epoch and end.offset >= snapshot.offset > core.log.start_offset
