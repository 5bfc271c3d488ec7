"""ControllerRegistration: a controller registers its incarnation, listeners and features (KIP-919).

The registration has no epoch and does not expire. UpdateFeatures reads it, so that no feature rises
to a level that a controller does not support. The rules are those of
ClusterControlManager.registerController.
"""

from __future__ import annotations

from quorate.quorum.controller.brokers.registration import check_endpoints, check_ranges
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quorate.quorum.controller.state.result import RequestRefused, Result
from quorate.quorum.metadata.image import METADATA_VERSION, ControllerRegistration, MetadataImage
from quorate.quorum.metadata.records import RegisterControllerRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.shapes import shape_of, violation

REGISTRATION_SINCE = 15
"""The first level of metadata.version that has RegisterControllerRecord (3.7-IV0)."""
MAX_CONTROLLERS = 1_000
"""The number of registered controllers above which a further one is refused. No registration is
ever removed, as in Kafka."""
REQUEST_SHAPE = shape_of(ControllerRegistrationRequest)


def registrations_supported(image: MetadataImage) -> bool:
    """Return True if the finalized metadata.version has registrations of controllers."""
    return image.features.get(METADATA_VERSION, 0) >= REGISTRATION_SINCE


def register_controller(context: Context, request: ControllerRegistrationRequest) -> Result:
    """Register the controller. A registration that the image already has gets no record.

    A refused request gets UNSUPPORTED_VERSION below metadata.version REGISTRATION_SINCE, and
    INVALID_REQUEST if it exceeds a bound.
    """
    try:
        check(context, request)
    except RequestRefused as refused:
        return Result(
            response=ControllerRegistrationResponse(error=refused.error, message=refused.message)
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=request.endpoints,
        features=request.features,
    )
    known = context.image.controllers.get(request.controller_id)
    records = () if known == registration_of(record) else (record,)
    return Result(records, ControllerRegistrationResponse(error=ErrorCode.NONE))


def check(context: Context, request: ControllerRegistrationRequest) -> None:
    """Raise RequestRefused if the request is not valid."""
    if not registrations_supported(context.image):
        raise RequestRefused(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    # A controller in the own process sends its request without encoding it.
    reason = violation(REQUEST_SHAPE, request)
    if reason:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, reason)
    check_ranges(request.features)
    check_endpoints(request.endpoints)
    controllers = context.image.controllers
    if request.controller_id not in controllers and len(controllers) >= MAX_CONTROLLERS:
        raise RequestRefused(
            ErrorCode.INVALID_REQUEST, f"{MAX_CONTROLLERS} controllers are registered already"
        )


def registration_of(record: RegisterControllerRecord) -> ControllerRegistration:
    """Return the registration that the image holds after the record."""
    return ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(sorted(record.end_points, key=lambda each: each.name)),
        features=tuple(sorted(record.features, key=lambda each: each.name)),
    )
