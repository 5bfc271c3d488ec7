"""The InitProducerId messages (KIP-98, KIP-360, KIP-939): the id and epoch of a producer.

Quorate serves versions 0 to 5, so the fields of version 6 never travel. It has no transactions, so
it refuses a request with a transactional id with INVALID_REQUEST. The answer to any other request
is a new producer id with epoch 0. If the broker has no ids and gets none from the controller, the
answer is the retriable error COORDINATOR_LOAD_IN_PROGRESS
(`broker/kafka/records/producer_ids.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import TRANSACTIONAL_ID
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest(Message):
    """Asks for a producer id. An idempotent producer without transactions sends None as
    `transactional_id`.

    `producer_id` and `producer_epoch` are those that the producer has and wants to continue with
    the next epoch (KIP-360), or -1. Without a transactional id, Kafka ignores them, and so does
    Quorate. The last two fields are for two-phase commit (KIP-939)."""

    API_KEY: ClassVar[int] = 22
    transactional_id: str | None = wire("string", nullable="0+", bound=TRANSACTIONAL_ID)
    transaction_timeout_ms: int = wire("int32")
    producer_id: int = wire("int64", versions="3+", default=-1)
    producer_epoch: int = wire("int16", versions="3+", default=-1)
    enable2_pc: bool = wire("bool", versions="6+", default=False)
    keep_prepared_txn: bool = wire("bool", versions="6+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse(Message):
    """The id and the epoch of the producer. If `error_code` is not 0, both are -1.

    The fields `ongoing_txn_*` name the producer of a transaction that is still prepared, or are -1
    (KIP-939)."""

    API_KEY: ClassVar[int] = 22
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    producer_id: int = wire("int64", default=-1)
    producer_epoch: int = wire("int16")
    ongoing_txn_producer_id: int = wire("int64", versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = wire("int16", versions="6+", default=-1)
