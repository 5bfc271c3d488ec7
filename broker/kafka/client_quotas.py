"""Handles DescribeClientQuotas (API key 48).

Quorate has no client quotas, so the response to a valid filter is empty, strict or not. An invalid
filter gets the error code that Kafka gives.
"""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

IP, USER, CLIENT_ID = "ip", "user", "client-id"
"""The entity types."""
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""The match types: one name, the default entity, or any name."""
NAMES = {
    EXACT: "MATCH_TYPE_EXACT",
    DEFAULT: "MATCH_TYPE_DEFAULT",
    SPECIFIED: "MATCH_TYPE_SPECIFIED",
}
"""The names of the match types in error messages."""


def describe_client_quotas(context: RequestContext, request: DescribeClientQuotasRequest) -> None:
    """Respond with no quotas, or with the error of an invalid filter."""
    try:
        check_filter(request)
    except KafkaError as error:
        context.respond(
            DescribeClientQuotasResponse(
                error_code=error.code, error_message=error.message, entries=None
            )
        )
    else:
        context.respond(DescribeClientQuotasResponse(entries=()))


def check_filter(request: DescribeClientQuotasRequest) -> None:
    """Raise KafkaError if the filter is invalid. The code is UNSUPPORTED_VERSION for an unknown
    entity type, and INVALID_REQUEST otherwise.

    An entity type may appear once, and ip excludes the other types. `check_match` has the rules of
    a component."""
    seen: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        if not kind:
            raise refused("Invalid empty entity type.")
        if kind in seen:
            raise refused(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (IP, USER, CLIENT_ID):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        check_match(component)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise refused("The entity type ip cannot be combined with user or client-id.")


def check_match(component: ComponentData) -> None:
    """Raise KafkaError (INVALID_REQUEST) if the match type is unknown. Also raise it if EXACT has
    no match string, or another type has one."""
    name = NAMES.get(component.match_type)
    if name is None:
        raise refused(f"Unknown match type {component.match_type}")
    if component.match_type == EXACT and component.match is None:
        raise refused(f"{name} needs a match string.")
    if component.match_type != EXACT and component.match is not None:
        raise refused(f"{name} takes no match string.")


def refused(message: str) -> KafkaError:
    """Return the error INVALID_REQUEST with a message."""
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
