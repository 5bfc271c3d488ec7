"""The asyncio shell around one node's copy of the metadata log: Raft core, log and election file.

Voters (controllers) and observers (brokers) run the same shell. It carries out the core's effects
in order and feeds back what became of them; it decides nothing.

Invariants:

- Nothing the core emitted after a `Persist` leaves the node before that election is durable (R1,
  R2).
- A flush counts for the core only with the epoch in which it was asked for (R22).
- While the disk's thread replaces the log by a snapshot, nothing is put to the core: what it would
  append must not stand behind files that are about to go.
- A failed write, fsync or rename stops the node: `on_failed` is called once and nothing goes on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from quorate.quorum.ids import ReplicaKey
from quorate.quorum.log.group_commit import GroupCommit
from quorate.quorum.metadata.snapshot_file import SnapshotContents, reading
from quorate.quorum.node.metadata_mark import MarkFile
from quorate.quorum.node.metadata_storage import MetadataStorage
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.messages import Request, Response
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.voter_history import STATIC_VOTERS
from quorate.quorum.rpc.kafka.boundary import is_node_failure
from quorate.quorum.seams import Seams, Timer
from quorate.quorum.state_in_doubt import StateInDoubt

FLUSH_BEHIND_MS = 5000
Input = Callable[[int], None]
"""What happened, to be put to the core at a moment (now_ms)."""
VotersDone = Callable[[int, str], None]
"""What became of a change of the voters: Kafka's error code and a message."""

logger = logging.getLogger("quorate.quorum.raft")


class VoterLinks(Protocol):
    """Sends Raft requests to voters by id; `done` gets the response, or None when there was
    none."""

    def send(
        self,
        voter_id: int,
        request: Request,
        timeout_ms: int,
        done: Callable[[Response | None], None],
    ) -> None: ...


class ReplicaListener(Protocol):
    def on_role(self, effect: effects.RoleChanged) -> None: ...

    def on_committed(self, high_watermark: int) -> None: ...

    def on_loaded(self, contents: SnapshotContents) -> None: ...

    def on_voters(self, effect: effects.VotersChanged) -> None: ...

    def on_leader_found(self, effect: effects.LeaderFound) -> None: ...

    def probe_voter(self, voter: Voter, done: Callable[[bool], None]) -> None:
        """Connect to the address of `voter`. Call `done` later: True if that replica answers."""

    def on_resigned(self) -> None: ...

    def on_failed(self, error: BaseException) -> None: ...


class MetadataReplica:
    def __init__(
        self,
        seams: Seams,
        raft: Raft,
        storage: MetadataStorage,
        election_file: ElectionFile,
        voters: VoterLinks,
        listener: ReplicaListener,
        mark: MarkFile | None = None,
    ) -> None:
        self.raft = raft
        self.log = storage.log
        self._snapshots = storage.snapshots
        self._clock = seams.clock
        self._disk = seams.disk
        self._election_file = election_file
        self._voters = voters
        self._listener = listener
        self._mark = mark
        self.log.carry_out_reset = self._replace
        self._snapshots.carry_out_removal = self._remove
        self._commit = GroupCommit(self.log, seams.disk, self._flushed, self._fail)
        self._flushes: deque[effects.Flush] = deque()
        self._outbox: deque[effects.Effect] = deque()
        self._saving = False
        self._replacing = False
        self._held: deque[Input] = deque()
        self._running = False
        self._checked: SnapshotContents | None = None
        self._replies: dict[int, Callable[[Response], None]] = {}
        self._changes: dict[int, VotersDone] = {}
        self._next_token = 0
        self._timer: Timer | None = None
        self._timer_ms: int | None = None
        self._carry_out: dict[type[effects.Effect], Callable[..., None]] = {
            effects.Send: self._send,
            effects.Reply: self._reply,
            effects.Persist: self._persist,
            effects.Flush: self._flush,
            effects.Committed: lambda effect: self._listener.on_committed(effect.high_watermark),
            effects.RoleChanged: self._role_changed,
            effects.Truncated: self._truncated,
            effects.InstallSnapshot: self._install,
            effects.SnapshotInstalled: self._loaded,
            effects.VotersChanged: lambda effect: self._listener.on_voters(effect),
            effects.LeaderFound: lambda effect: self._listener.on_leader_found(effect),
            effects.ProbeVoter: self._meet,
            effects.VoterChangeResult: self._voters_answer,
            effects.Resigned: lambda effect: self._listener.on_resigned(),
            effects.CaughtUp: self._caught_up,
            effects.PeerProblem: self._refused,
        }

    def start(self) -> None:
        self._running = True
        self._advance()
        self._clock.call_later(FLUSH_BEHIND_MS, self._flush_behind)

    def close(self) -> None:
        """Stops at once, without resigning; outstanding replies are dropped with their links."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()

    def request(self, message: Request, reply: Callable[[Response], None]) -> None:
        token = self._next_token
        self._next_token += 1
        self._replies[token] = reply
        self._put(lambda now_ms: self.raft.request(now_ms, token, message))

    def append(self, values: Sequence[bytes]) -> int:
        """Append one batch as the leader; the offset of its last record. Raises NotLeader."""
        offset = self.raft.append(self._clock.now_ms(), self._clock.wall_ms(), values)
        self._advance()
        return offset

    def fetch_now(self) -> None:
        """Something was asked for here whose commit is awaited: be there when it comes."""
        if self.raft.fetch_paused:
            self._put(self.raft.fetch_now)

    def resign(self) -> None:
        self._put(self.raft.resign)

    def add_voter(self, voter: Voter, done: VotersDone) -> None:
        token = self._awaiting(done)
        self._put(lambda now_ms: self.raft.add_voter(now_ms, token, voter))

    def remove_voter(self, voter: ReplicaKey, done: VotersDone) -> None:
        token = self._awaiting(done)
        self._put(lambda now_ms: self.raft.remove_voter(now_ms, token, voter))

    def upgrade(self, level: int, configured: Sequence[Voter], done: VotersDone) -> None:
        token = self._awaiting(done)
        self._put(lambda now_ms: self.raft.upgrade(now_ms, token, level, configured))

    def _awaiting(self, done: VotersDone) -> int:
        self._next_token += 1
        self._changes[self._next_token] = done
        return self._next_token

    def _meet(self, effect: effects.ProbeVoter) -> None:
        def met(is_met: bool) -> None:
            if self._running:
                self._put(lambda now_ms: self.raft.voter_probed(now_ms, effect.token, is_met))

        self._listener.probe_voter(effect.voter, met)

    def _voters_answer(self, effect: effects.VoterChangeResult) -> None:
        done = self._changes.pop(effect.token, None)
        if done is not None:
            done(effect.error, effect.message)

    def voter_connected(self, voter: ReplicaKey) -> None:
        self._put(lambda now_ms: self.raft.voter_connected(now_ms, voter))

    def superseded(self) -> None:
        self.raft.superseded()
        self._advance()

    def link_lost(self, voter_id: int) -> None:
        self._put(lambda now_ms: self.raft.link_lost(now_ms, voter_id))

    def link_refused(self, voter_id: int) -> None:
        self._put(lambda now_ms: self.raft.link_refused(now_ms, voter_id))

    def _put(self, happened: Input) -> None:
        if self._replacing:
            self._held.append(happened)
            return
        try:
            happened(self._clock.now_ms())
            self._advance()
        except Exception as error:
            if is_node_failure(error):
                raise
            raise StateInDoubt(
                f"the state of the quorum was left half changed: {error!r}"
            ) from error

    def _advance(self) -> None:
        """Carry out what the core wants, up to the next election that has to be durable first."""
        self._outbox.extend(self.raft.take_effects())
        while self._outbox and not self._saving and self._running:
            effect = self._outbox.popleft()
            self._carry_out[type(effect)](effect)
            self._outbox.extend(self.raft.take_effects())
        self._arm()

    def _arm(self) -> None:
        deadline_ms = self.raft.deadline_ms() if self._running else None
        if deadline_ms == self._timer_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = deadline_ms
        if deadline_ms is not None:
            delay_ms = max(0, deadline_ms - self._clock.now_ms())
            self._timer = self._clock.call_later(delay_ms, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_ms = None
        if self._running:
            self._put(self.raft.tick)

    def _send(self, effect: effects.Send) -> None:
        def done(response: Response | None) -> None:
            if self._running:
                self._put(lambda now_ms: self.raft.response(now_ms, effect.token, response))

        self._voters.send(effect.voter_id, effect.request, effect.timeout_ms, done)

    def _reply(self, effect: effects.Reply) -> None:
        reply = self._replies.pop(effect.token, None)
        if reply is not None:
            reply(effect.response)

    def _persist(self, effect: effects.Persist) -> None:
        self._saving = True
        election: Election = effect.election

        def saved(_: None, error: BaseException | None) -> None:
            self._saving = False
            if error is not None:
                self._fail(error)
            elif self._running:
                self._put(lambda now_ms: self.raft.election_saved(election))

        self._disk.submit(lambda: self._election_file.save(election), saved)

    def _flush(self, effect: effects.Flush) -> None:
        self._flushes.append(effect)
        self._commit.request()

    def _flushed(self, offset: int) -> None:
        reached = None
        while self._flushes and self._flushes[0].offset <= offset:
            reached = self._flushes.popleft()
        if reached is not None and self._running:
            epoch, end_offset = reached.epoch, reached.offset

            def happened(now_ms: int) -> None:
                self.raft.flushed(now_ms, epoch, end_offset)

            if self._mark is None or self._mark.mark.has_records:
                self._put(happened)
            else:  # once in the life of a directory
                self._save_mark(self._mark.flushed, happened)

    def _caught_up(self, effect: effects.CaughtUp) -> None:
        assert self._mark is not None

        def happened(now_ms: int) -> None:
            logger.warning("the metadata log is complete again: this node votes from now on")
            self.raft.caught_up(now_ms)

        self._save_mark(self._mark.caught_up, happened)

    def _save_mark(self, work: Callable[[], None], happened: Input) -> None:
        """Put `happened` to the core once `work` has made the mark durable."""

        def saved(_: None, error: BaseException | None) -> None:
            if error is not None:
                self._fail(error)
            elif self._running:
                self._put(happened)

        self._disk.submit(work, saved)

    def _flush_behind(self) -> None:
        """The core asks an observer for no flush; its log is a backup of the quorum all the
        same."""
        if self._running:
            if self.log.flushed_offset < self.log.end_offset:
                self._commit.request()
            self._clock.call_later(FLUSH_BEHIND_MS, self._flush_behind)

    def _truncated(self, effect: effects.Truncated) -> None:
        """Flushes asked for beyond the cut prove nothing any more."""
        logger.warning("metadata log cut back to offset %d: the leader's differs", effect.offset)
        self._flushes = deque(each for each in self._flushes if each.offset <= effect.offset)

    def _install(self, effect: effects.InstallSnapshot) -> None:
        """Reading it all and making it durable are the disk thread's, a batch at a time: votes and
        flushes do not wait for all of it."""
        snapshot = effect.snapshot
        steps = reading(snapshot, self._snapshots.chunks(snapshot, part=True))

        def check() -> tuple[SnapshotContents, int] | None:
            contents = next(steps)
            return None if contents is None else (contents, self._snapshots.freeze(snapshot))

        def checked(
            found: tuple[SnapshotContents, int] | None, error: BaseException | None
        ) -> None:
            if found is None and error is None:
                if self._running:
                    self._disk.submit(check, checked)
                return
            if error is not None and not isinstance(error, OSError):
                # Reading changes nothing, so the snapshot is at fault.
                logger.warning("received a damaged snapshot, fetching it again: %s", error)
            elif error is not None:
                self._fail(error)
                return
            if self._running:
                self._checked, size_bytes = found or (None, -1)
                quorum = STATIC_VOTERS if self._checked is None else self._checked.quorum
                self._put(
                    lambda now_ms: self.raft.snapshot_checked(now_ms, snapshot, size_bytes, quorum)
                )

        self._disk.submit(check, checked)

    def _replace(self, work: Callable[[], None]) -> None:
        """The log is empty already for who reads it; its files are not yet."""
        assert not self._replacing
        self._replacing = True

        def replaced(_: None, error: BaseException | None) -> None:
            self._replacing = False
            if error is not None:
                self._fail(error)
                return
            while self._held and self._running and not self._replacing:
                self._put(self._held.popleft())

        self._disk.submit(work, replaced)

    def _remove(self, work: Callable[[], None]) -> None:
        def removed(_: None, error: BaseException | None) -> None:
            if error is not None:
                self._fail(error)

        self._disk.submit(work, removed)

    def _loaded(self, effect: effects.SnapshotInstalled) -> None:
        """Flushes asked for before prove nothing about the log that begins now."""
        logger.info("the log goes on behind a snapshot, at offset %d", effect.snapshot.offset)
        self._flushes.clear()
        contents, self._checked = self._checked, None
        assert contents is not None
        self._listener.on_loaded(contents)

    def _role_changed(self, effect: effects.RoleChanged) -> None:
        logger.info("%s in epoch %d, leader %d", effect.role, effect.epoch, effect.leader_id)
        self._listener.on_role(effect)

    def _refused(self, effect: effects.PeerProblem) -> None:
        logger.warning("replica %d: %s", effect.replica_id, effect.reason)

    def _fail(self, error: BaseException) -> None:
        if self._running:
            self.close()
            self._listener.on_failed(error)
