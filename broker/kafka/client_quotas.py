"""What DescribeClientQuotas may ask for: checked as in Kafka, though there are no quotas here."""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)

IP, USER, CLIENT_ID = "ip", "user", "client-id"
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
NAMES = {
    EXACT: "MATCH_TYPE_EXACT",
    DEFAULT: "MATCH_TYPE_DEFAULT",
    SPECIFIED: "MATCH_TYPE_SPECIFIED",
}


def check_filter(request: DescribeClientQuotasRequest) -> None:
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
    name = NAMES.get(component.match_type)
    if name is None:
        raise refused(f"Unknown match type {component.match_type}")
    if component.match_type == EXACT and component.match is None:
        raise refused(f"{name} needs a match string.")
    if component.match_type != EXACT and component.match is not None:
        raise refused(f"{name} takes no match string.")


def refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
