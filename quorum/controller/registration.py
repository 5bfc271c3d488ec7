"""BrokerRegistration: the checks of kafka-rules 3.2 in their order, then the records.

A broker's epoch is the offset of its RegisterBrokerRecord. Beyond Kafka: another incarnation
replaces a session that is still valid when the old one's connection is dead (Kafka refuses it for
up to broker.session.timeout.ms).
"""

from __future__ import annotations

from quorate.quorum.clipped import quoted
from quorate.quorum.controller.broker_changes import replace_incarnation
from quorate.quorum.controller.context import Context
from quorate.quorum.controller.directories import is_reserved
from quorate.quorum.controller.hints import Connection
from quorate.quorum.controller.messages import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from quorate.quorum.controller.result import RequestRefused, Result
from quorate.quorum.ids import uuid_to_text
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import METADATA_VERSION, Broker
from quorate.quorum.metadata.records import Endpoint, MetadataRecord, RegisterBrokerRecord
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.shapes import shape_of, violation

REQUEST_SHAPE = shape_of(BrokerRegistrationRequest)


def register_broker(context: Context, request: BrokerRegistrationRequest) -> Result:
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
    records: list[MetadataRecord] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record = register_record(context, request, existing.epoch, existing)
    else:
        if existing is not None:
            hold_unclean_elections(context, existing)
            records += replace_incarnation(context, existing, why_replaced(request, existing))
        record = register_record(context, request, context.next_offset + len(records), None)
    records.append(record)
    response = BrokerRegistrationResponse(error=ErrorCode.NONE, broker_epoch=record.broker_epoch)
    return Result(records, response)


def check_bounds(request: BrokerRegistrationRequest) -> None:
    """Refuse what no RegisterBrokerRecord may hold, because every node replays it.

    The decoding of node messages has checked the fields' bounds. A request that was made in this
    process was not decoded."""
    reason = violation(REQUEST_SHAPE, request)
    if reason:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, reason)
    for each in request.features:
        if each.min_supported_version > each.max_supported_version:
            raise RequestRefused(
                ErrorCode.INVALID_REQUEST,
                f"Feature {quoted(each.name)} has an empty range of versions",
            )
    names = [each.name for each in request.endpoints]
    if len(set(names)) != len(names):
        raise RequestRefused(ErrorCode.INVALID_REQUEST, "Two endpoints have the same name")


def check_cluster(context: Context, request: BrokerRegistrationRequest) -> None:
    expected = context.settings.cluster_id
    if request.cluster_id != expected:
        raise RequestRefused(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {expected}, but got cluster ID {request.cluster_id}",
        )


def check_not_duplicate(
    context: Context, request: BrokerRegistrationRequest, existing: Broker | None
) -> None:
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
    """Its connection is gone, or after a takeover it had its time to connect and did not."""
    opened_ms = context.sessions.of(broker.id).opened_ms
    connection = context.hints.connection(broker.id, broker.epoch)
    if connection is Connection.UNSEEN:
        return context.now_ms - opened_ms >= context.settings.takeover_probe_delay_ms
    return connection is Connection.LOST


def check_log_dirs(context: Context, request: BrokerRegistrationRequest) -> None:
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
    """Every finalized level must be in the broker's range; what it does not name, it has at 0."""
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
    """A session that ends early, on a hint, must not make unclean elections any earlier."""
    if context.sessions.is_valid(old.id, context.now_ms) and not old.fenced:
        context.hints.hold(old.id, context.sessions.of(old.id).deadline_ms)


def why_replaced(request: BrokerRegistrationRequest, old: Broker) -> Cause:
    """The clean shutdown file holds the epoch that the broker had when it stopped."""
    clean = request.previous_broker_epoch == old.epoch
    return Cause.SESSION_REPLACED if clean else Cause.UNCLEAN_RESTART


def register_record(
    context: Context,
    request: BrokerRegistrationRequest,
    broker_epoch: int,
    amended: Broker | None,
) -> RegisterBrokerRecord:
    """The same incarnation keeps its epoch and state; a new one starts fenced."""
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
    """With the node-to-node address among them: other brokers fetch there, and a later controller
    probes there (idea 9)."""
    name = context.settings.inter_broker_listener
    if any(each.name == name for each in request.endpoints):
        return request.endpoints
    host, port = request.replication_address
    return (*request.endpoints, Endpoint(name=name, host=host, port=port))
