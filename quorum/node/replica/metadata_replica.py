"""Runs one node's copy of the metadata log: the Raft core, the log and the election file.

Voters (controllers) and observers (brokers) run the same code. It gives the Raft core its inputs,
carries out the core's effects in order, and reports their results to the core. It makes no decision
of its own.

Invariants:

- An effect that follows a `Persist` is carried out only after that election is durable. No vote and
  no epoch therefore leaves the node before it is on the disk (Raft, Figure 2; R1 and R2 in
  tests/scenarios).
- A completed flush counts for the core only in the epoch in which it was requested, because a
  later leader may have replaced the flushed records (R22).
- While the disk's thread replaces the log by a snapshot, the core gets no input that could append.
  Otherwise records could be written behind files that are about to be removed.
- A failed write, fsync or rename stops the node. `on_failed` is called once, and the replica takes
  no further input. Work that lacks a file descriptor has changed nothing, and is repeated.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec

from quorate.quorum.log.disks.retried_work import RetriedWork
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.metadata.snapshot_file import SnapshotContents
from quorate.quorum.node.replica.metadata_mark import MarkFile
from quorate.quorum.node.replica.metadata_storage import MetadataStorage
from quorate.quorum.node.replica.received_snapshot import check_received
from quorate.quorum.node.replica.replica_flushes import ReplicaFlushes
from quorate.quorum.node.replica.replica_listener import ReplicaListener, VoterLinks, VotersDone
from quorate.quorum.raft import effects
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.election_file import ElectionFile
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.raft.messages import Request, Response
from quorate.quorum.raft.quorum_events import role_event, voters_events
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.voter_history import STATIC_VOTERS
from quorate.quorum.rpc.kafka.boundary import is_node_failure
from quorate.quorum.seams import Seams, Timer
from quorate.quorum.state_in_doubt import StateInDoubt

P = ParamSpec("P")
RaftInput = Callable[Concatenate[int, P], None]
"""An input method of the Raft core. Its first argument is the present time (now_ms)."""
VoterChange = Callable[Concatenate[int, int, P], None]
"""A voter change of the Raft core. Its first arguments are now_ms and a token."""

logger = logging.getLogger("quorate.quorum.raft")
MAX_HELD = 1000
"""Inputs that wait while the log is replaced, before requests of other nodes are dropped."""


class MetadataReplica:
    """One node's copy of the metadata log. Owned by the node's event loop.

    If the core raises in `put`, its state may be half changed, so the node must stop. `put`, and
    the methods that call it, then raise StateInDoubt. They raise an error of the disk or of the log
    unchanged."""

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
        """`mark` is the mark of a controller, or None on a broker. `start` must follow."""
        self.raft = raft
        self.log = storage.log
        self._snapshots = storage.snapshots
        self._clock = seams.clock
        self._disk = seams.disk
        self._work = RetriedWork(seams.disk, seams.clock)
        self._election_file = election_file
        self._voters = voters
        self._listener = listener
        self._mark = mark
        self._log_limit = LogLimit(seams.clock)
        self.log.run_reset = self._replace
        self._snapshots.run_removal = self._remove
        self._flushes = ReplicaFlushes(seams, self.log, self._flushed, self._fail)
        self._outbox: deque[effects.Effect] = deque()
        self._saving = False
        self._replacing = False
        self._held: deque[RaftInput[[]]] = deque()
        self._running = False
        self._role: effects.RoleChanged | None = None
        self._voter_set: Sequence[Voter] | None = None
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
            effects.Flush: self._flushes.request,
            effects.Committed: self._committed,
            effects.RoleChanged: self._role_changed,
            effects.Truncated: self._truncated,
            effects.InstallSnapshot: self._install,
            effects.SnapshotInstalled: self._loaded,
            effects.VotersChanged: self._voter_set_changed,
            effects.LeaderFound: lambda effect: listener.on_leader_found(effect),
            effects.ProbeVoter: self._probe_voter,
            effects.VoterChangeResult: self._voters_changed,
            effects.Resigned: lambda effect: listener.on_resigned(),
            effects.CaughtUp: self._caught_up,
            effects.PeerProblem: self._peer_problem,
        }

    @property
    def end_offset(self) -> int:
        """Return the log end offset."""
        return self.log.end_offset

    def start(self) -> None:
        """Carry out the core's first effects and start its timer."""
        self._running = True
        self._advance()
        self._flushes.start()

    def close(self) -> None:
        """Stop immediately, without a resignation. Requests without an answer get none."""
        self._running = False
        self._work.close()
        self._flushes.close()
        if self._timer is not None:
            self._timer.cancel()

    def put(self, method: RaftInput[P], *args: P.args, **kwargs: P.kwargs) -> None:
        """Give the core an input: call `method(now_ms, *args)`, then carry out the effects.

        While the log is being replaced, the input waits, and gets the time at which it is taken. If
        an election is being saved, the effects wait. After `close` no effect is carried out."""
        if self._replacing:
            self._held.append(lambda now_ms: method(now_ms, *args, **kwargs))
            return
        try:
            method(self._clock.now_ms(), *args, **kwargs)
            self._advance()
        except Exception as error:
            if is_node_failure(error):
                raise
            raise StateInDoubt(
                f"the Raft state of this node was left half changed: {error!r}"
            ) from error

    def request(self, message: Request, reply: Callable[[Response], None]) -> None:
        """Give the core a request of another node. `reply` gets the response, at most once: none if
        MAX_HELD inputs wait while the log is replaced."""
        if len(self._held) >= MAX_HELD:
            return
        token = self._token()
        self._replies[token] = reply
        self.put(self.raft.request, token, message)

    def change_voters(
        self, done: VotersDone, change: VoterChange[P], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Start a voter change of the core. `done` gets the result when it is committed or refused,
        and is never called if this node stops before that."""
        token = self._token()
        self._changes[token] = done

        def with_token(now_ms: int) -> None:
            change(now_ms, token, *args, **kwargs)

        self.put(with_token)

    def append(self, values: Sequence[bytes]) -> int:
        """Append `values` as one batch. Return the offset of the last record.

        The batch is in the log on return, but not durable, and it may never be committed. Raise
        NotLeader if this node does not lead, or resigns for lack of a file descriptor, and
        BatchTooLarge. Nothing was appended then."""
        try:
            offset = self.raft.append(self._clock.now_ms(), self._clock.wall_ms(), values)
        except NotLeader:
            self._clock.call_soon(self._advance)
            raise
        assert offset == self.log.end_offset - 1, "the batch is not at the end of the log"
        self._listener.on_appended(offset, len(values))
        self._advance()
        return offset

    def fetch_now(self) -> None:
        """End an observer's pause between two fetches, because a request waits for a commit. Do
        nothing if there is no pause."""
        if self.raft.fetch_paused:
            self.put(self.raft.fetch_now)

    def superseded(self) -> None:
        """Tell the core that a later generation of the quorum exists."""
        self.raft.superseded()
        self._advance()

    def _token(self) -> int:
        self._next_token += 1
        return self._next_token

    # -- the loop over inputs and effects ---------------------------------------------------------

    def _advance(self) -> None:
        """Carry out the core's effects, up to the next election that must become durable first."""
        self._outbox.extend(self.raft.take_effects())
        while self._outbox and not self._saving and self._running:
            effect = self._outbox.popleft()
            self._carry_out[type(effect)](effect)
            self._outbox.extend(self.raft.take_effects())
        self._arm()

    def _arm(self) -> None:
        """Set the timer to the core's next deadline."""
        deadline_ms = self.raft.deadline_ms() if self._running else None
        if self._timer is not None:
            if deadline_ms == self._timer_ms:
                return
            self._timer.cancel()
            self._timer = None
        self._timer_ms = deadline_ms
        if deadline_ms is not None:
            delay_ms = max(0, deadline_ms - self._clock.now_ms())
            self._timer = self._clock.call_later(delay_ms, self._tick)

    def _tick(self) -> None:
        self._timer = self._timer_ms = None
        if self._running:
            self.put(self.raft.tick)

    # -- messages --------------------------------------------------------------------------------

    def _send(self, effect: effects.Send) -> None:
        def done(response: Response | None) -> None:
            if self._running:
                self.put(self.raft.response, effect.token, response)

        self._voters.send(effect.voter_id, effect.request, effect.timeout_ms, done)

    def _reply(self, effect: effects.Reply) -> None:
        if (reply := self._replies.pop(effect.token, None)) is not None:
            reply(effect.response)

    def _probe_voter(self, effect: effects.ProbeVoter) -> None:
        def probed(passed: bool) -> None:
            if self._running:
                self.put(self.raft.voter_probed, effect.token, passed)

        self._listener.probe_voter(effect.voter, probed)

    def _voters_changed(self, effect: effects.VoterChangeResult) -> None:
        if (done := self._changes.pop(effect.token, None)) is not None:
            done(effect.error, effect.message)

    def _peer_problem(self, effect: effects.PeerProblem) -> None:
        if (left_out := self._log_limit.passes(effect.replica_id)) is not None:
            logger.warning("replica %d: %s%s", effect.replica_id, effect.reason, left_out)

    # -- the disk --------------------------------------------------------------------------------

    def _persist(self, effect: effects.Persist) -> None:
        assert not self._saving, "an effect passed the persist barrier"
        self._saving = True
        election: Election = effect.election

        def saved(_: None, error: BaseException | None) -> None:
            self._saving = False
            if error is not None:
                self._fail(error)
            elif self._running:
                self.put(lambda now_ms: self.raft.election_saved(election))

        self._work.submit(lambda: self._election_file.save(election), saved)

    def _flushed(self, flush: effects.Flush) -> None:
        if not self._running:
            return

        def flushed(now_ms: int) -> None:
            self.raft.flushed(now_ms, flush.epoch, flush.offset)

        if self._mark is None or self._mark.mark.has_records:
            self.put(flushed)
        else:  # This is the first flush in the life of the directory.
            self._save_mark(self._mark.flushed, flushed)

    def _caught_up(self, effect: effects.CaughtUp) -> None:
        assert self._mark is not None, "only a controller catches up"

        def caught_up(now_ms: int) -> None:
            logger.warning("the metadata log is complete again: this controller votes from now on")
            self.raft.caught_up(now_ms)

        self._save_mark(self._mark.caught_up, caught_up)

    def _save_mark(self, work: Callable[[], None], then: RaftInput[[]]) -> None:
        """Give the core the input `then` when `work` has made the mark durable."""

        def saved(_: None, error: BaseException | None) -> None:
            if error is not None:
                self._fail(error)
            elif self._running:
                self.put(then)

        self._work.submit(work, saved)

    def _install(self, effect: effects.InstallSnapshot) -> None:
        snapshot = effect.snapshot

        def checked(
            contents: SnapshotContents | None, size_bytes: int, error: BaseException | None
        ) -> None:
            if isinstance(error, OSError):
                self._fail(error)
                return
            if error is not None and (left_out := self._log_limit.passes("snapshot")) is not None:
                logger.warning("received a damaged snapshot, fetching again: %s%s", error, left_out)
            self._checked = contents
            quorum = STATIC_VOTERS if contents is None else contents.quorum
            self.put(self.raft.snapshot_checked, snapshot, size_bytes, quorum)

        check_received(
            self._work, self._snapshots, snapshot, is_running=lambda: self._running, done=checked
        )

    def _replace(self, work: Callable[[], None]) -> None:
        """Let the disk's thread remove the files of a log that is replaced by a snapshot. Readers
        already see the empty log."""
        assert not self._replacing, "the core got an input while its log was replaced"
        self._replacing = True
        self._flushes.hold()

        def replaced(_: None, error: BaseException | None) -> None:
            self._replacing = False
            if error is not None:
                self._fail(error)
            else:
                self._flushes.release()
            while self._held and self._running and not self._replacing:
                self.put(self._held.popleft())

        self._work.submit(work, replaced)

    def _remove(self, work: Callable[[], None]) -> None:
        self._disk.submit(work, lambda _, error: None if error is None else self._fail(error))

    # -- changes of the log and of the role ------------------------------------------------------

    def _committed(self, effect: effects.Committed) -> None:
        assert effect.high_watermark <= self.log.end_offset, "committed records are not in the log"
        self._listener.on_committed(effect.high_watermark)

    def _truncated(self, effect: effects.Truncated) -> None:
        if (left_out := self._log_limit.passes("truncated")) is not None:
            logger.warning(
                "truncated the metadata log to offset %d, because the leader's log differs from "
                "there on%s",
                effect.offset,
                left_out,
            )
        self._flushes.truncated(effect.offset)

    def _loaded(self, effect: effects.SnapshotInstalled) -> None:
        offset = effect.snapshot.offset
        logger.info("a snapshot replaced the metadata log, which continues at offset %d", offset)
        self._flushes.replaced()
        contents, self._checked = self._checked, None
        assert contents is not None, "the core installed a snapshot that was not checked"
        assert self.log.start_offset >= offset, "the log was not replaced"
        self._listener.on_loaded(contents)

    def _role_changed(self, effect: effects.RoleChanged) -> None:
        event = role_event(self._role, effect, self.log.end_offset)
        self._role = effect
        left_out = self._log_limit.passes((event.kind, effect.epoch))
        if left_out is not None:  # a node without a majority asks for votes every second
            logger.info("%s%s", event.text, left_out, extra={"event": event.kind})
        self._listener.on_role(effect)

    def _voter_set_changed(self, effect: effects.VotersChanged) -> None:
        for event in voters_events(self._voter_set, effect):
            logger.info("%s", event.text, extra={"event": event.kind})
        self._voter_set = effect.voters
        self._listener.on_voters(effect)

    def _fail(self, error: BaseException) -> None:
        if self._running:
            self.close()
            self._listener.on_failed(error)
