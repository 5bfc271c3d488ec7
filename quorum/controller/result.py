"""What a rule answers, how it refuses, and how large one request's batch may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.quorum.clipped import clipped
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.rpc.kafka.bounds import ERROR_TEXT
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.seams import Address

MAX_RECORDS_PER_USER_OP = 10_000
"""Kafka's bound on one atomic batch (KAFKA-17870): what a user asks for never splits over two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeBroker:
    """Effect: connect to `address` once, after `delay_ms`, and give this very value back to
    `Controller.probe_succeeded`, `probe_refused` or `probe_failed`."""

    broker_id: int
    broker_epoch: int
    number: int
    address: Address
    delay_ms: int = 0


Effect = ProbeBroker


@dataclass(frozen=True, slots=True)
class Result:
    """`records` go to the log in this order; when `atomic` in one batch, else in batches of at most
    MAX_RECORDS_PER_USER_OP. `response` may be sent once they, and everything appended before them,
    are committed."""

    records: Sequence[MetadataRecord] = ()
    response: object = None
    effects: Sequence[Effect] = ()
    atomic: bool = True


NOTHING = Result()


class ControllerError(Exception):
    """Base of what this package raises: `error` is Kafka's code for it."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        self.error = error
        self.message = clipped(message, ERROR_TEXT.limit)
        super().__init__(self.message)


class RequestRefused(ControllerError):
    """One item of a request, or a request that has no items, breaks a rule."""


class TooManyRecords(ControllerError):
    """Fails the whole request, never one item of it: the batch is atomic."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request: more than "
            f"{MAX_RECORDS_PER_USER_OP} records would be written at once; ask for fewer at a time.",
        )


def check_items(count: int) -> None:
    """Raise TooManyRecords if a request names more items than one batch has records."""
    if count > MAX_RECORDS_PER_USER_OP:
        raise TooManyRecords


def check_room(records: int) -> None:
    if records > MAX_RECORDS_PER_USER_OP:
        raise TooManyRecords
