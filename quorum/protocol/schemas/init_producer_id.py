"""The InitProducerId messages (KIP-98, KIP-360, KIP-939): the id and epoch of a producer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.quorum.protocol.field_bounds import TRANSACTIONAL_ID
from quorate.quorum.protocol.wire import Message, wire


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdRequest(Message):
    """Asks for a producer id. An idempotent producer sends no transactional id."""

    API_KEY: ClassVar[int] = 22
    transactional_id: str | None = wire("string", nullable="0+", bound=TRANSACTIONAL_ID)
    transaction_timeout_ms: int = wire("int32")
    producer_id: int = wire("int64", versions="3+", default=-1)
    producer_epoch: int = wire("int16", versions="3+", default=-1)
    enable2_pc: bool = wire("bool", versions="6+", default=False)
    keep_prepared_txn: bool = wire("bool", versions="6+", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerIdResponse(Message):
    """The producer id and its epoch."""

    API_KEY: ClassVar[int] = 22
    throttle_time_ms: int = wire("int32", default=0)
    error_code: int = wire("int16", default=0)
    producer_id: int = wire("int64", default=-1)
    producer_epoch: int = wire("int16")
    ongoing_txn_producer_id: int = wire("int64", versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = wire("int16", versions="6+", default=-1)
