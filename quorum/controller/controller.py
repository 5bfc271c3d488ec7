"""The pure controller: it turns requests, broker connections and time into `Result` values.

A `Result` holds records, a response and effects. Rules decide on the latest image, which includes
records that are appended but not yet committed. They change only soft state. The caller appends a
result's records, replays them, and calls `replayed` with the next image before the next input.

Controllers of every role follow the log through `replayed` and `prepare_load`, and links through
`connected` and `connection_lost`. They also accept `contact`, `probe_succeeded` and `probe_failed`.
A standby thus becomes active without building its indexes first. All other inputs are for the
active controller only.

This module knows no Raft, no connections and no wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from quorate.quorum.controller.brokers import broker_changes
from quorate.quorum.controller.features.first_records import activation_records
from quorate.quorum.controller.partitions import scheduled_elections, unclean_recovery
from quorate.quorum.controller.partitions.elect_leaders import unclean_keys
from quorate.quorum.controller.periodic_tasks import PeriodicTasks, Task
from quorate.quorum.controller.rules import decide
from quorate.quorum.controller.state.context import Caller, Context, PermitsOf
from quorate.quorum.controller.state.decision_steps import (
    DecisionSteps,
    Outcome,
    Step,
    begun,
    started,
    with_response,
)
from quorate.quorum.controller.state.hints import Hints
from quorate.quorum.controller.state.messages import ReplicaLogsResponse
from quorate.quorum.controller.state.partition_index import PartitionIndex, PartitionKey
from quorate.quorum.controller.state.replica_log_queries import ReplicaLogQueries
from quorate.quorum.controller.state.result import (
    NOTHING,
    AskReplicaLogs,
    Effect,
    ProbeBroker,
    Result,
)
from quorate.quorum.controller.state.sessions import NEVER_MS, Session, Sessions
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import Broker, MetadataImage
from quorate.quorum.metadata.records import MetadataRecord, NoOpRecord
from quorate.quorum.quotas.mutation_quotas import MutationQuotas
from quorate.quorum.seams import Random


class Controller:
    """The controller's rules together with their soft state.

    The node's event loop owns the object, and no method blocks. `image` is the image that the next
    decision is based on.

    Invariants:

    - `index` always describes `image`.
    - While the controller is active, each broker of `image` has exactly one session.
    - Sessions, hints and periodic tasks are never written to the log.

    `expired_sessions` counts the brokers that this process fenced because their session timed out.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        random: Random,
        voter_ids: Callable[[], Collection[int]] = tuple,
        permits: PermitsOf | None = None,
    ) -> None:
        """`voter_ids` returns the ids of the quorum's voters at any time. `permits` is None without
        an authorizer."""
        self._settings = settings
        self._periodic_tasks = PeriodicTasks(settings)
        self._context = Context(
            settings=settings,
            random=random,
            sessions=Sessions(settings.session_timeout_ms),
            hints=Hints(enabled=settings.hints, listener=settings.inter_broker_listener),
            voter_ids=voter_ids,
            permits=permits,
        )
        self._active = False
        self.expired_sessions = 0
        self.mutation_quotas = MutationQuotas(settings.mutation_windows)
        """The quotas of clients that create and delete partitions. No record holds their state."""

    @property
    def index(self) -> PartitionIndex:
        """Return the reverse indexes over `image`."""
        return self._context.index

    @property
    def sessions(self) -> Sessions:
        """Return the sessions of the registered brokers. There are none on a standby."""
        return self._context.sessions

    @property
    def image(self) -> MetadataImage:
        """Return the image that the next decision is based on."""
        return self._context.image

    # --------------------------------------------------------------------------------- role and log

    def prepare_load(self, image: MetadataImage) -> IncrementalWork[Callable[[], Result]]:
        """Build the index of an image that no delta connects with the current one, in steps.

        Such an image comes from a snapshot, or it is the committed image after leadership was lost.
        The steps change nothing. The callable that they return installs the image and its index in
        one step, and returns a result with the probes to send.
        """
        index = yield from PartitionIndex.of(image)

        def install() -> Result:
            self._context.image = image
            index.unclean_elections = self._context.index.unclean_elections
            index.elr_elections = self._context.index.elr_elections
            self._context.index = index
            self._context.hints.keep_only(image.brokers)
            return Result(effects=self._follow_all(image))

        return install

    def loaded(self, image: MetadataImage) -> Result:
        """Install `image` like `prepare_load`, but without pauses. Return the probes to send."""
        return finished(self.prepare_load(image))()

    def replayed(self, image: MetadataImage, delta: ImageDelta) -> Result:
        """Install `image`, which is the current image after `delta`.

        If a config changed while partitions are leaderless, schedule the check for unclean
        elections, because the change may have allowed them. Do not schedule it if the periodic task
        is disabled or this controller is not active. Return a result with the probes to send.
        """
        context = self._context
        context.image = image
        if delta.topics or delta.deleted:
            context.index.apply(delta)
        if delta.configs and context.index.leaderless:
            # The change may allow unclean elections for a leaderless partition.
            self._periodic_tasks.soon(Task.ELECT_UNCLEANLY, context.now_ms)
        if not delta.brokers:
            return NOTHING
        effects: list[Effect] = []
        for broker_id, change in delta.brokers.items():
            effects += self._follow(broker_id, change.new)
        return Result(effects=effects)

    def activate(
        self, image: MetadataImage, *, now_ms: int, next_offset: int, in_transaction: bool = False
    ) -> Result:
        """Make this controller the active one. Return the first records to write, and the probes
        to send.

        Call this only when the LeaderChange record of the own epoch is committed and `image`
        includes all inherited records. Every broker gets a fresh session. `next_offset` is the
        offset of the next appended record. `in_transaction` is True if the log ends inside a
        metadata transaction (KIP-868), which the records then abort.
        """
        context = self._context
        self._at(now_ms, next_offset)
        self._active = True
        context.sessions = Sessions(self._settings.session_timeout_ms)
        context.replica_logs = ReplicaLogQueries()
        effects: list[Effect] = []
        if image is not context.image:
            effects += self.loaded(image).effects
        else:
            effects += self._follow_all(image)
        effects += context.hints.activate(
            [image.brokers[broker_id] for broker_id in image.broker_ids()],
            delay_ms=self._settings.takeover_probe_delay_ms,
            hold_until_ms=now_ms + self._settings.session_timeout_ms,
        )
        self._periodic_tasks.start(now_ms)
        return Result(activation_records(context, in_transaction=in_transaction), effects=effects)

    def deactivate(self) -> None:
        """Stop deciding because leadership is lost. Drop the sessions, the holds and the schedule.

        The facts about broker connections stay. Records that were appended but not committed may
        have been truncated, so the caller must install the committed image with `prepare_load`
        afterwards.
        """
        self._active = False
        self._periodic_tasks.stop()
        self._context.hints.deactivate()
        self._context.sessions = Sessions(self._settings.session_timeout_ms)
        self._context.replica_logs = ReplicaLogQueries()

    # ------------------------------------------------------------------------------------- requests

    def handle(
        self, request: object, *, now_ms: int, next_offset: int, caller: Caller | None = None
    ) -> Outcome:
        """Apply the rule of the request's class and return its outcome. Long work has done its
        first step only; `resume` does the next one.

        `next_offset` is the offset that the first record of the result will get. `caller` is the
        client that sent the request, or None for a node. Rules answer
        errors in the response. Any exception, such as KeyError for an unknown request class, means
        that no record was returned and the image has not changed.
        """
        self._at(now_ms, next_offset)
        return started(decide(self._context, self.mutation_quotas, request, caller))

    def resume(self, steps: DecisionSteps, *, now_ms: int, next_offset: int) -> Step | Result:
        """Do the next step of a decision. Return the records of one batch, None for a pause without
        records, or the result, which ends the decision.

        The caller has appended and replayed the records of the step before, and has made no other
        decision since the first step."""
        self._at(now_ms, next_offset)
        try:
            return next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result

    def contact(self, broker_id: int, broker_epoch: int, *, now_ms: int) -> None:
        """Extend the session of a broker whose heartbeat arrived. Do nothing if the epoch is not
        the current one, or if this controller is not active and therefore has no sessions.

        Call this on arrival, before the heartbeat waits in any queue, and even if it will be
        discarded. Otherwise a busy controller would fence healthy brokers (KAFKA-15019,
        KAFKA-17793).
        """
        session = self._session(broker_id, broker_epoch)
        if session is not None:
            self._context.sessions.contact(session, now_ms)

    # ----------------------------------------------------------------------------------------- time

    def deadline_ms(self) -> int:
        """Return the monotonic time at which `tick` next has work. It may be in the past. NEVER_MS
        means never; a controller that is not active has no such time."""
        if not self._active:
            return NEVER_MS
        hold = self._context.hints.next_hold()
        return min(
            self._context.sessions.deadline_ms(),
            self._periodic_tasks.deadline_ms(),
            self._context.replica_logs.deadline_ms(self._context.now_ms),
            NEVER_MS if hold is None else hold[0],
        )

    def tick(self, now_ms: int) -> Outcome:
        """Do one piece of work that is due at `now_ms`: ask for the logs of leaderless partitions,
        elect a leader for those without an answer, fence one expired broker, end one hold on
        unclean elections, or run one periodic task. Return an empty result if nothing is due.

        Call this again while `deadline_ms` is not later than the current time.
        """
        self._at(now_ms, self._context.next_offset)
        wanted = self._context.replica_logs.take_wanted()
        if wanted:
            return Result(effects=unclean_recovery.questions(self._context, wanted))
        overdue = self._context.replica_logs.overdue(now_ms)
        if overdue:
            return self._elect_uncleanly(overdue)
        stale = self._context.sessions.first_stale(now_ms)
        if stale is not None:
            self.expired_sessions += 1
            return self._fence(stale, Cause.SESSION_EXPIRED)
        hold = self._context.hints.next_hold()
        if hold is not None and hold[0] <= now_ms:
            self._context.hints.release(hold[1])
            keys = scheduled_elections.leaderless_of(self._context, hold[1])
            scheduled_elections.prepare_unclean_elections(self._context, keys)
            return NOTHING
        task = self._periodic_tasks.take_due(now_ms)
        return NOTHING if task is None else self._run(task)

    def _run(self, task: Task) -> Result:
        context = self._context
        if task is Task.WRITE_NO_OP:
            return Result((NoOpRecord(),))
        if task is Task.BALANCE_LEADERS:
            return self._bounded(task, scheduled_elections.balance_leaders(context))
        scheduled_elections.prepare_unclean_elections(context, sorted(context.index.leaderless))
        return NOTHING

    def _bounded(self, task: Task, records: list[MetadataRecord]) -> Result:
        """Return the records. If their number reached the bound of one run, schedule the task again
        soon, because more elections may be due. A disabled task is not scheduled."""
        if len(records) == self._settings.max_elections_per_run:
            delay_ms = self._settings.more_elections_delay_ms
            self._periodic_tasks.soon(task, self._context.now_ms + delay_ms)
        return Result(records, atomic=False)

    # --------------------------------------------------------------------------- unclean elections

    def replica_logs(
        self, asked: AskReplicaLogs, response: ReplicaLogsResponse | None, *, now_ms: int
    ) -> Result:
        """Take a broker's answer, or None. Return the records of the unclean elections that wait
        for no other answer. The answer of another incarnation does not count."""
        self._at(now_ms, self._context.next_offset)
        context = self._context
        current = context.has_epoch(asked.broker_id, asked.broker_epoch)
        counts = current and response is not None and response.broker_epoch == asked.broker_epoch
        logs = response.logs if counts and response is not None else ()
        return self._elect_uncleanly(context.replica_logs.answered(asked, logs))

    def questions(self, request: object, *, now_ms: int) -> Result:
        """Return the questions to brokers that must be asked before `handle` gets the request.
        Decide nothing."""
        self._at(now_ms, self._context.next_offset)
        keys = unclean_keys(self._context, request)
        return Result(effects=unclean_recovery.questions(self._context, keys, administrator=True))

    def unclean_keys(self, request: object) -> list[PartitionKey]:
        """Return the partitions for which the request wants an unclean election, at most
        MAX_QUERIES. The work grows with the size of the request."""
        return unclean_keys(self._context, request)

    def has_questions(self, keys: Iterable[PartitionKey]) -> bool:
        """Return True if a question about one of the partitions has no answer yet, for at most
        QUERY_TIMEOUT_MS."""
        return any(map(self._context.replica_logs.is_open, keys))

    def _elect_uncleanly(self, keys: list[PartitionKey]) -> Result:
        return Result(unclean_recovery.elections(self._context, keys), atomic=False)

    # ---------------------------------------------------------------------------------------- hints

    def connected(self, broker_id: int, broker_epoch: int, host: str) -> Result:
        """Record that a link from `host` belongs to this registration of the broker.

        Call this once per link and registration, in every role. A standby that becomes active then
        knows which brokers are connected. A registration that is not current is ignored. Return a
        result with the probe to send, if one is needed.
        """
        return Result(effects=self._context.hints.connected(broker_id, broker_epoch, host))

    def connection_lost(self, broker_id: int, broker_epoch: int) -> Result:
        """Record that a link that was passed to `connected` is closed. The broker may have other
        links. Return a result with the probe to send, if one is needed."""
        return Result(effects=self._context.hints.connection_lost(broker_id, broker_epoch))

    def probe_succeeded(self, probe: ProbeBroker) -> Result:
        """Record that the probed address accepted a connection. Return a result with the next
        probe, if one is needed."""
        return Result(effects=self._context.hints.succeeded(probe))

    def probe_failed(self, probe: ProbeBroker) -> Result:
        """Record that a probe timed out or found no route. This proves nothing about the broker.
        Return a result with the next probe, if one is needed."""
        return Result(effects=self._context.hints.failed(probe))

    def probe_refused(self, probe: ProbeBroker, *, now_ms: int) -> Outcome:
        """Fence the broker if the refused probe proves that its process is dead. Otherwise return a
        result with the next probe, if one is needed.

        Unclean elections that this early fencing makes possible wait until the session would have
        expired.
        """
        self._at(now_ms, self._context.next_offset)
        hints = self._context.hints
        if not hints.is_proof_of_death(probe):
            return Result(effects=hints.failed(probe))
        hints.hold(probe.broker_id, self._context.sessions.of(probe.broker_id).deadline_ms)
        return self._fence(probe.broker_id, Cause.CONNECTION_LOST)

    # --------------------------------------------------------------------------------------- inside

    def _at(self, now_ms: int, next_offset: int) -> None:
        self._context.now_ms = now_ms
        self._context.next_offset = next_offset

    def _fence(self, broker_id: int, cause: Cause) -> Outcome:
        broker = self._context.image.brokers[broker_id]
        return begun(with_response(broker_changes.fence(self._context, broker, cause), None))

    def _session(self, broker_id: int, broker_epoch: int) -> Session | None:
        session = self._context.sessions.get(broker_id)
        return session if session is not None and session.broker_epoch == broker_epoch else None

    def _follow_all(self, image: MetadataImage) -> list[Effect]:
        effects: list[Effect] = []
        for broker_id in image.broker_ids():
            effects += self._follow(broker_id, image.brokers[broker_id])
        return effects

    def _follow(self, broker_id: int, broker: Broker | None) -> tuple[Effect, ...]:
        context = self._context
        if self._active:
            if broker is None:
                context.sessions.close(broker_id)
            else:
                context.sessions.follow(broker, context.image.last.offset, context.now_ms)
        return context.hints.follow(broker_id, broker)
