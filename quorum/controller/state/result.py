"""The output of a rule, the errors that refuse a request, and the bound on one request's batch.

A rule is a pure function from one input of the controller, such as a request, and the latest image
to a `Result`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.quorum.clipped import clipped
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.field_bounds import ERROR_TEXT
from quorate.quorum.seams import Address

MAX_RECORDS_PER_USER_OP = 10_000
"""Kafka's bound on the records of one atomic batch (KAFKA-17870). The only user's request that may
span several batches is UnregisterBroker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeBroker:
    """An effect: connect once to `address` after `delay_ms` milliseconds.

    A refused connection is evidence that the broker's process is dead, before its session times
    out. The caller passes this same value to `Controller.probe_succeeded`, `probe_refused` or
    `probe_failed`. A probe is best effort: if the caller drops it, the session timeout still fences
    a dead broker. `number` identifies the newest probe of a registration.
    """

    broker_id: int
    broker_epoch: int
    number: int
    address: Address
    delay_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AskReplicaLogs:
    """An effect: ask a broker for the ends of its logs of `partitions`, each (topic id, partition).

    The caller passes this same value to `Controller.replica_logs`, with the broker's response, or
    with None if there is none within `timeout_ms` milliseconds.
    """

    broker_id: int
    broker_epoch: int
    partitions: tuple[tuple[Uuid, int], ...]
    timeout_ms: int


Effect = ProbeBroker | AskReplicaLogs


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one input.

    The caller appends `records` in this order. If `atomic`, they form one batch. Otherwise the
    caller may split them into several batches (`quorum/node/controller/controller_decision.py`).
    `response` may leave the node only when they, and everything appended before them, are
    committed. The caller carries out `effects` immediately.
    """

    records: Sequence[MetadataRecord] = ()
    response: object = None
    effects: Sequence[Effect] = ()
    atomic: bool = True


NOTHING = Result()
"""The result without records, response and effects."""


class ControllerError(Exception):
    """Base class of this package's errors. `error` is Kafka's error code, and `message` is cut to
    the length that a response may have."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        self.error = error
        self.message = clipped(message, ERROR_TEXT.limit)
        super().__init__(self.message)


class RequestRefused(ControllerError):
    """One item of a request, or a request without items, breaks a rule. The other items are not
    affected."""


class TooManyRecords(ControllerError):
    """A request would write more than MAX_RECORDS_PER_USER_OP records. It fails as a whole, because
    its batch is atomic. `error` is POLICY_VIOLATION."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request: more than "
            f"{MAX_RECORDS_PER_USER_OP} records would be written at once. Change less at a time.",
        )


def check_items(count: int) -> None:
    """Raise TooManyRecords if `count`, the number of items that a request names, exceeds the number
    of records that one batch may have."""
    if count > MAX_RECORDS_PER_USER_OP:
        raise TooManyRecords


def check_room(records: int) -> None:
    """Raise TooManyRecords if `records`, the number of records that one request writes, exceeds the
    bound of a batch."""
    if records > MAX_RECORDS_PER_USER_OP:
        raise TooManyRecords
