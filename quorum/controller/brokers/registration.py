"""BrokerRegistration: the checks in Kafka's order, then the records.

The checks are those of ClusterControlManager.registerBroker. A broker's epoch is the offset of its
RegisterBrokerRecord. One rule departs from Kafka: a new incarnation replaces a session that is
still valid if the connection of the old incarnation is dead. Kafka refuses it until the session
expires (docs/differences.md, "Failures are noticed sooner").
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.quorum.clipped import quoted
from quorate.quorum.controller.brokers.broker_changes import replace_incarnation
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.decision_steps import DecisionSteps, Outcome
from quorate.quorum.controller.state.hints import Connection
from quorate.quorum.controller.state.messages import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from quorate.quorum.controller.state.result import RequestRefused, Result
from quorate.quorum.directory_ids import is_reserved
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import METADATA_VERSION, Broker
from quorate.quorum.metadata.records import (
    Endpoint,
    FeatureRange,
    MetadataRecord,
    RegisterBrokerRecord,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.shapes import shape_of, violation

REQUEST_SHAPE = shape_of(BrokerRegistrationRequest)


def register_broker(context: Context, request: BrokerRegistrationRequest) -> Outcome:
    """Register the broker, or renew the registration of the same incarnation.

    A refused request gets INVALID_REQUEST, INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION,
    INVALID_REGISTRATION or UNSUPPORTED_VERSION. If another incarnation was registered, it first
    leaves its ISRs, and after an unclean stop its ELRs (`replace_incarnation`).

    Invariant: an incarnation registers only when its broker is in no ISR, but for those of which it
    is the last member without ELR. The record of the registration is the last one, so a controller
    that stops between two batches leaves the old registration in place.
    """
    try:
        check_bounds(request)
        check_cluster(context, request)
        existing = context.image.brokers.get(request.broker_id)
        check_not_duplicate(context, request, existing)
        check_log_dirs(context, request)
        check_features(context, request)
    except RequestRefused as refused:
        return Result(
            response=BrokerRegistrationResponse(error=refused.error, message=refused.message)
        )
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        return registered([], register_record(context, request, existing.epoch, existing))
    return new_incarnation(context, request, existing)


def new_incarnation(
    context: Context, request: BrokerRegistrationRequest, existing: Broker | None
) -> DecisionSteps:
    """Remove the old incarnation of the broker from its ISRs, in steps, and register the new one.
    The last batch has both the last removals and the registration."""
    clean = is_clean(request, existing)
    if existing is not None:
        hold_unclean_elections(context, existing)
    cause = Cause.SESSION_REPLACED if clean else Cause.UNCLEAN_RESTART
    records = yield from replace_incarnation(context, request.broker_id, cause, clean=clean)
    broker_epoch = context.next_offset + len(records)
    return registered(records, register_record(context, request, broker_epoch, None))


def registered(before: Sequence[MetadataRecord], record: RegisterBrokerRecord) -> Result:
    """Return the result that appends the records `before` and `record` in one batch."""
    response = BrokerRegistrationResponse(error=ErrorCode.NONE, broker_epoch=record.broker_epoch)
    return Result([*before, record], response)


def check_bounds(request: BrokerRegistrationRequest) -> None:
    """Raise RequestRefused if a field exceeds its bound, because every node replays the record.

    Decoding has checked the bounds of a request that came from another node. A broker in the
    controller's own process sends its request without encoding it, so this function checks them
    again.
    """
    reason = violation(REQUEST_SHAPE, request)
    if reason:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, reason)
    check_ranges(request.features)
    check_endpoints(request.endpoints)


def check_ranges(features: Sequence[FeatureRange]) -> None:
    """Raise RequestRefused if the range of a feature is empty."""
    for each in features:
        if each.min_supported_version > each.max_supported_version:
            raise RequestRefused(
                ErrorCode.INVALID_REQUEST,
                f"Feature {quoted(each.name)} has an empty range of versions",
            )


def check_endpoints(endpoints: Sequence[Endpoint]) -> None:
    """Raise RequestRefused if two endpoints have the same name."""
    names = [each.name for each in endpoints]
    if len(set(names)) != len(names):
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Two endpoints have the same name")


def check_cluster(context: Context, request: BrokerRegistrationRequest) -> None:
    """Raise RequestRefused if the broker belongs to another cluster."""
    expected = context.settings.cluster_id
    if request.cluster_id != expected:
        raise RequestRefused(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {expected}, but got cluster ID {request.cluster_id}",
        )


def check_not_duplicate(
    context: Context, request: BrokerRegistrationRequest, existing: Broker | None
) -> None:
    """Raise RequestRefused if another incarnation has a valid session and its connection is not
    dead."""
    if existing is None or existing.incarnation_id == request.incarnation_id:
        return
    if not context.sessions.is_valid(existing.id, context.now_ms):
        return
    if is_dead(context, existing):
        return
    raise RequestRefused(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"Another broker is registered with id {existing.id}. If this broker was restarted, it may "
        "register once the old process's connection is gone or its session has expired.",
    )


def is_dead(context: Context, broker: Broker) -> bool:
    """Return True if the broker lost its connection to this controller, or did not connect in time.

    The time to connect is `takeover_probe_delay_ms` from the start of the session. It gives a
    broker time to find a new active controller. Without hints (quorate.hints.enable) a connection
    proves nothing, and only the end of the session counts, as in Kafka.
    """
    if not context.settings.hints:
        return False
    opened_ms = context.sessions.of(broker.id).opened_ms
    connection = context.hints.connection(broker.id, broker.epoch)
    if connection is Connection.UNSEEN:
        return context.now_ms - opened_ms >= context.settings.takeover_probe_delay_ms
    return connection is Connection.LOST


def check_log_dirs(context: Context, request: BrokerRegistrationRequest) -> None:
    """Raise RequestRefused if the directory ids are missing, reserved, repeated, or those of
    another broker (KIP-858)."""
    log_dirs = request.log_dirs
    if not log_dirs:
        raise RequestRefused(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if any(is_reserved(directory) for directory in log_dirs):
        raise RequestRefused(ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(log_dirs)) != len(log_dirs):
        raise RequestRefused(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for broker_id in context.image.broker_ids():
        for directory in context.image.brokers[broker_id].log_dirs:
            if broker_id != request.broker_id and directory in log_dirs:
                raise RequestRefused(
                    ErrorCode.INVALID_REGISTRATION,
                    f"Broker {broker_id} is already registered with directory "
                    f"{uuid_to_text(directory)}; was a data directory copied?",
                )


def check_features(context: Context, request: BrokerRegistrationRequest) -> None:
    """Raise RequestRefused if the broker does not name metadata.version, or if a finalized level is
    outside of its range. The range of a feature that the broker does not name is 0 to 0."""
    ranges = {each.name: each for each in request.features}
    if METADATA_VERSION not in ranges:
        raise RequestRefused(
            ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'"
        )
    for name in sorted(context.image.features):
        level = context.image.features[name]
        supported = ranges.get(name)
        low, high = (
            (0, 0)
            if supported is None
            else (supported.min_supported_version, supported.max_supported_version)
        )
        if level and not low <= level <= high:
            raise RequestRefused(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} "
                f"of {name}. The broker wants a version between {low} and {high}, inclusive.",
            )


def hold_unclean_elections(context: Context, old: Broker) -> None:
    """Make unclean elections wait until the replaced session would have expired. Do nothing if the
    old incarnation is fenced or its session has expired.

    A hint may end a session early, but it must not cause data loss earlier than the session timeout
    would.
    """
    if context.sessions.is_valid(old.id, context.now_ms) and not old.fenced:
        context.hints.hold(old.id, context.sessions.of(old.id).deadline_ms)


def is_clean(request: BrokerRegistrationRequest, old: Broker | None) -> bool:
    """Return True if the old incarnation stopped cleanly. `old` is None if the broker is not
    registered; nothing is known about its last stop then.

    The clean shutdown file of a broker holds the epoch that the broker had when it stopped.
    """
    return old is not None and request.previous_broker_epoch == old.epoch


def register_record(
    context: Context,
    request: BrokerRegistrationRequest,
    broker_epoch: int,
    amended: Broker | None,
) -> RegisterBrokerRecord:
    """Return the record. `amended` is the registration of the same incarnation, whose state is
    kept, or None. A new incarnation starts fenced."""
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=broker_epoch,
        end_points=endpoints(context, request),
        features=request.features,
        rack=request.rack,
        fenced=True if amended is None else amended.fenced,
        in_controlled_shutdown=False if amended is None else amended.in_controlled_shutdown,
        log_dirs=request.log_dirs,
        cause=Cause.REGISTERED,
    )


def endpoints(context: Context, request: BrokerRegistrationRequest) -> tuple[Endpoint, ...]:
    """Return the broker's endpoints, including the node-to-node endpoint.

    Other brokers fetch from that address, and a later active controller sends its probes there.
    """
    name = context.settings.inter_broker_listener
    if any(each.name == name for each in request.endpoints):
        return request.endpoints
    host, port = request.replication_address
    return (*request.endpoints, Endpoint(name=name, host=host, port=port))
