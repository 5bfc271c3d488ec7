"""Handles DescribeClientQuotas (API key 48): the quotas of the image that a filter matches.

An entity has a name for each of its types, such as user=alice and client-id=app. A filter is a list
of components, one for each type that it names. An entity matches if it satisfies every component.
If the filter is strict, the entity must also have no other type. An invalid filter gets the error
code that Kafka gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.image import ClientQuotaEntity, MetadataImage, quota_order
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
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


@dataclass(frozen=True, slots=True)
class DescribeClientQuotasHandler:
    """Handles DescribeClientQuotas on the event loop of a node."""

    image: Callable[[], MetadataImage]

    def handle(
        self, context: RequestContext, request: DescribeClientQuotasRequest
    ) -> IncrementalWork[None]:
        """Respond with the matching entities in sorted order, or with the error of an invalid
        filter. Pause between entities, because an image may have very many."""
        try:
            check_filter(request)
        except KafkaError as error:
            context.respond(
                DescribeClientQuotasResponse(
                    error_code=error.code, error_message=error.message, entries=None
                )
            )
            return
        quotas = self.image().client_quotas
        pace, entries = Pace(), []
        for entity in quotas:
            if pace.is_time():
                yield
            if matches(dict(entity), request):
                entries.append(entity)
        entries.sort(key=quota_order)
        context.count_elements(4 * len(entries))
        yield
        response = DescribeClientQuotasResponse(
            entries=tuple(entry_of(each, quotas[each]) for each in entries)
        )
        yield from context.respond_steps(response)


def matches(names: Mapping[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    """Return True if the entity with these names by type matches the filter, which must be valid.

    The name None is the default entity of the type. SPECIFIED matches any name, also None, as
    Kafka's brokers do."""
    if request.strict and len(names) != len(request.components):
        return False
    return all(
        each.entity_type in names
        and (each.match_type == SPECIFIED or names[each.entity_type] == each.match)
        for each in request.components
    )


def entry_of(entity: ClientQuotaEntity, quotas: Mapping[str, float]) -> EntryData:
    """Return the entry of one entity, with its quotas sorted by name."""
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        values=tuple(ValueData(key=key, value=value) for key, value in sorted(quotas.items())),
    )


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
