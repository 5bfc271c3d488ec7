"""BrokerHeartbeat: the next state of a broker, and the records of the transition.

The table NEXT holds the rule of each state (Kafka's calculateNextBrokerState). The image holds the
current state. Only changed bits go to the log, together with the partition changes that follow from
them. An accepted heartbeat also extends the session, which is soft state.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.controller.brokers import broker_changes
from quorate.quorum.controller.brokers.broker_states import (
    BrokerState,
    check_transition,
    current_state,
)
from quorate.quorum.controller.brokers.log_directories import directory_failures
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import Outcome, RecordSteps, with_response
from quorate.quorum.controller.state.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorate.quorum.controller.state.result import Result
from quorate.quorum.controller.state.sessions import Session
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import Broker
from quorate.quorum.protocol.errors import ErrorCode


def after_fenced(
    context: Context, session: Session, request: BrokerHeartbeatRequest
) -> BrokerState:
    """Return the next state of a fenced broker. If it asks for nothing else, it is unfenced once it
    has replayed the record that fenced or registered it (KAFKA-13959)."""
    if request.want_shut_down:
        return BrokerState.SHUTDOWN_NOW
    if request.want_fence or session.shutting_down:
        return BrokerState.FENCED  # no record ends a controlled shutdown: it could never lead
    if request.metadata_offset < session.unfence_offset:
        return BrokerState.FENCED
    return BrokerState.UNFENCED


def after_unfenced(
    context: Context, session: Session, request: BrokerHeartbeatRequest
) -> BrokerState:
    """Return the next state of an unfenced broker. A broker that wants to stop, and that leads
    partitions, must first give up its leaderships, unless it also asks to be fenced."""
    if request.want_fence:
        return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
    if not request.want_shut_down:
        return BrokerState.UNFENCED
    if context.index.has_leaderships(request.broker_id):
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def after_controlled_shutdown(
    context: Context, session: Session, request: BrokerHeartbeatRequest
) -> BrokerState:
    """Return the next state of a broker in controlled shutdown.

    The broker may stop when it leads nothing and every active broker has replayed the records that
    moved its leaderships.
    """
    if context.index.has_leaderships(request.broker_id):
        return BrokerState.CONTROLLED_SHUTDOWN
    if session.controlled_shutdown_offset <= context.sessions.lowest_active_offset():
        return BrokerState.SHUTDOWN_NOW
    return BrokerState.CONTROLLED_SHUTDOWN


NEXT: dict[BrokerState, Callable[[Context, Session, BrokerHeartbeatRequest], BrokerState]] = {
    BrokerState.FENCED: after_fenced,
    BrokerState.UNFENCED: after_unfenced,
    BrokerState.CONTROLLED_SHUTDOWN: after_controlled_shutdown,
}
"""The rule that chooses the next state, by current state. A rule reads (context, session, request)
and changes nothing."""


def heartbeat(context: Context, request: BrokerHeartbeatRequest) -> Outcome:
    """Return the records of the broker's next state, extend its session and store its metadata
    offset.

    Log directories that have failed since the last heartbeat come first. The state then changes
    with the next heartbeat.

    A refused request gets BROKER_ID_NOT_REGISTERED or STALE_BROKER_EPOCH and changes nothing.
    """
    broker = context.image.brokers.get(request.broker_id)
    if broker is None:
        return refusal(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != request.broker_epoch:
        return refusal(ErrorCode.STALE_BROKER_EPOCH)
    session = context.sessions.of(broker.id)
    current = current_state(broker)
    following = NEXT[current](context, session, request)
    records: RecordSteps | None = None
    if request.offline_log_dirs:
        records = directory_failures(context, broker, request.offline_log_dirs)
    if records is not None:
        following = current  # the next heartbeat changes the state, with the new image
    elif following is not current:
        records = transition(context, broker, current, following)
    context.sessions.contact(session, context.now_ms)
    session.metadata_offset = request.metadata_offset
    session.metadata_backlog = max(0, context.image.last.offset - request.metadata_offset)
    response = BrokerHeartbeatResponse(
        error=ErrorCode.NONE,
        caught_up=request.metadata_offset >= session.unfence_offset,
        fenced=following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return Result((), response) if records is None else with_response(records, response)


def refusal(error: ErrorCode) -> Result:
    """Return a result that answers `error` and changes nothing."""
    return Result(response=BrokerHeartbeatResponse(error=error))


def transition(
    context: Context, broker: Broker, current: BrokerState, following: BrokerState
) -> RecordSteps | None:
    """Return the records that move the broker from state `current` to `following`, or None if
    there are none."""
    check_transition(broker, following)
    if following is BrokerState.UNFENCED:
        return broker_changes.unfence(context, broker)
    if following is BrokerState.CONTROLLED_SHUTDOWN:
        return broker_changes.enter_controlled_shutdown(context, broker)
    if current is BrokerState.FENCED:
        return None  # the broker may stop; it is fenced already
    shut_down = following is BrokerState.SHUTDOWN_NOW
    cause = Cause.SHUTDOWN_COMPLETE if shut_down else Cause.FENCE_REQUESTED
    return broker_changes.fence(context, broker, cause)
