"""AllocateProducerIds: blocks of producer ids, from which brokers answer InitProducerId."""

from __future__ import annotations

from quorate.quorum.controller.state.context import Context
from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from quorate.quorum.controller.state.result import Result
from quorate.quorum.metadata.records import ProducerIdsRecord
from quorate.quorum.protocol.errors import ErrorCode

BLOCK_SIZE = 1000
"""The number of producer ids in one block, as in Kafka."""
MAX_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(context: Context, request: AllocateProducerIdsRequest) -> Result:
    """Reserve the next BLOCK_SIZE producer ids for the broker.

    A stale epoch gets STALE_BROKER_EPOCH. If the ids are exhausted, the error is
    UNKNOWN_SERVER_ERROR.
    """
    if not context.has_epoch(request.broker_id, request.broker_epoch):
        return Result(response=AllocateProducerIdsResponse(error=ErrorCode.STALE_BROKER_EPOCH))
    first = context.image.next_producer_id
    if first > MAX_PRODUCER_ID - BLOCK_SIZE:
        return Result(response=AllocateProducerIdsResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(
        error=ErrorCode.NONE, first_producer_id=first, count=BLOCK_SIZE
    )
    return Result((record,), response)
