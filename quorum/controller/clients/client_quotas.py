"""AlterClientQuotas: an administrator sets and removes the quotas of clients (KIP-546).

An entity is a user, a client id, both together, or an IP address. A name of None is the default of
its type. An error of one entity fails none of the others. All records are one atomic batch.

Each quota is a number above 0. CLIENT_KEYS and IP_KEYS hold the kind of each. The removal of a
quota that is not set changes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from ipaddress import ip_address

from quorate.quorum.clipped import clipped
from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.result import (
    ControllerError,
    RequestRefused,
    Result,
    TooManyRecords,
    check_room,
)
from quorate.quorum.metadata.image import ClientQuotaEntity
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.metadata.records import ClientQuotaRecord, QuotaEntity
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.client_quotas import (
    AlterationData,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredData,
    EntityData,
    OpData,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
INT, LONG, DOUBLE = "an INT", "a LONG", "a DOUBLE"
LARGEST = {INT: float(2**31 - 1), LONG: float(2**63 - 1)}
CLIENT_KEYS = {
    "producer_byte_rate": LONG,
    "consumer_byte_rate": LONG,
    "request_percentage": DOUBLE,
    "controller_mutation_rate": DOUBLE,
}
IP_KEYS = {"connection_creation_rate": INT}
MAX_ENTITIES = 10_000
"""Maximum number of entities with quotas. Kafka has no bound. Brokers hold all of them in
memory."""
FRACTION = 1e-6
"""Kafka's bound on the fractional part of an INT or a LONG."""
NO_QUOTAS: PersistentMap[str, float] = PersistentMap()


def alter_client_quotas(context: Context, request: AlterClientQuotasRequest) -> Result:
    """Change the quotas of one or more entities.

    An entity that the request names twice fails with INVALID_REQUEST. A request that would write
    more than MAX_RECORDS_PER_USER_OP records fails as a whole with POLICY_VIOLATION. A request
    with `validate_only` gets its response but writes nothing.
    """
    records: list[ClientQuotaRecord] = []
    answers: list[AlteredData] = []
    times = Counter(frozenset(each.entity) for each in request.entries)
    entities = len(context.image.client_quotas)
    try:
        for asked in request.entries:
            try:
                if times[frozenset(asked.entity)] > 1:
                    raise refused("The request names the entity more than once.")
                entity = checked_entity(asked)
                changes = changes_of(context, entity, asked)
                if entity not in context.image.client_quotas and changes:
                    entities += 1
                    check_count(entities)
            except RequestRefused as error:
                answers.append(answer(asked, error))
                continue
            check_room(len(records) + len(changes))
            records += changes
            answers.append(answer(asked, None))
    except TooManyRecords as error:
        all_failed = tuple(answer(each, error) for each in request.entries)
        return Result(response=AlterClientQuotasResponse(entries=all_failed))
    response = AlterClientQuotasResponse(entries=tuple(answers))
    return Result(() if request.validate_only else records, response)


def checked_entity(asked: AlterationData) -> ClientQuotaEntity:
    """Return the entity, with its parts sorted by type. Raise RequestRefused if it is not valid."""
    names: dict[str, str | None] = {}
    for part in asked.entity:
        kind, name = part.entity_type, part.entity_name
        if kind in names:
            raise refused(f"Invalid client quota entity, duplicate entity type {clipped(kind)}.")
        if kind not in (USER, CLIENT_ID, IP):
            raise refused(f"Unhandled client quota entity type: {clipped(kind)}")
        if name == "":
            raise refused(f"Empty {kind} not supported")
        names[kind] = name
    if not names:
        raise refused("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise refused(
                "Invalid quota entity combination: an ip cannot be combined with a user or a "
                "client-id"
            )
        check_address(names[IP])
    return tuple((kind, names[kind]) for kind in sorted(names))


def check_address(name: str | None) -> None:
    """Raise RequestRefused unless `name` is an IP address or None.

    Kafka also resolves host names. Here a node never waits for DNS to decide a request."""
    try:
        if name is not None:
            ip_address(name)
    except ValueError:
        raise refused(f"{clipped(name or '')} is not an IP address.") from None


def changes_of(
    context: Context, entity: ClientQuotaEntity, asked: AlterationData
) -> list[ClientQuotaRecord]:
    """Return the records of one entity: none for a quota that keeps its value. Raise
    RequestRefused if a change is not valid."""
    keys = IP_KEYS if entity[0][0] == IP else CLIENT_KEYS
    now = context.image.client_quotas.get(entity, NO_QUOTAS)
    parts = tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity)
    records, seen = [], set()
    for op in asked.ops:
        if op.key in seen:
            raise refused(f"Duplicate quota key {clipped(op.key)}.")
        seen.add(op.key)
        if op.remove:
            if op.key in now:
                records.append(ClientQuotaRecord(entity=parts, key=op.key, remove=True))
            continue
        check_value(keys, op)
        if now.get(op.key) != op.value:
            records.append(ClientQuotaRecord(entity=parts, key=op.key, value=op.value))
    return records


def check_value(keys: dict[str, str], op: OpData) -> None:
    """Raise RequestRefused if the quota is unknown or its value is not valid.

    Kafka stores infinite values and values that are no numbers. They are refused here."""
    kind = keys.get(op.key)
    if kind is None:
        raise refused(f"Invalid configuration key {clipped(op.key)}")
    if op.value <= 0:
        raise refused(f"Quota {op.key} must be greater than 0")
    if op.value > LARGEST.get(kind, math.inf):
        raise refused(f"Proposed value for {op.key} is too large for {kind}.")
    if not math.isfinite(op.value):
        raise refused(f"Quota {op.key} must be a finite number")
    if kind != DOUBLE and op.value % 1 > FRACTION:
        raise refused(f"{op.key} cannot be a fractional value.")


def check_count(entities: int) -> None:
    """Raise RequestRefused if `entities`, the number of entities after a change, is too large."""
    if entities > MAX_ENTITIES:
        raise RequestRefused(
            ErrorCode.POLICY_VIOLATION,
            f"At most {MAX_ENTITIES} entities may have quotas. Remove the quotas of others first, "
            "or set a quota of the default entity.",
        )


def answer(asked: AlterationData, error: ControllerError | None) -> AlteredData:
    """Return the outcome for one entity."""
    return AlteredData(
        error_code=ErrorCode.NONE if error is None else error.error,
        error_message=None if error is None else error.message,
        entity=tuple(
            EntityData(entity_type=each.entity_type, entity_name=each.entity_name)
            for each in asked.entity
        ),
    )


def refused(message: str) -> RequestRefused:
    """Return the error INVALID_REQUEST with a message."""
    return RequestRefused(ErrorCode.INVALID_REQUEST, message)
