"""Handles InitProducerId (API key 22): gives ids to idempotent producers (KIP-98, KIP-730).

The active controller allocates the ids in blocks. No two producers of a cluster ever get the same
id, because a block is committed in the metadata log before the broker uses it. When the broker
stops, the rest of its block is lost. The broker requests the next block before the present one is
used up. Quorate has no transactions, so a request with a transactional id is refused.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from quorate.broker.controller.controller_channel import ControllerChannel
from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from quorate.quorum.log.batches.batch import NO_PRODUCER
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

PREFETCH_BELOW = 100
"""The number of remaining ids below which the broker requests the next block."""
ALLOCATE_TIMEOUT_MS = 5000
"""The time that the broker waits for the controller to allocate a block."""
MAX_WAITING = 1000
"""Maximum number of requests that wait for a block."""
NO_PRODUCER_EPOCH = -1
"""The producer epoch in an error response, and in a request without one."""

logger = logging.getLogger("quorate.broker.producers")


class ProducerIds:
    """The producer ids of one broker. It runs on the broker's event loop.

    Invariant: at most one request for a block is in flight. At most two blocks are kept."""

    def __init__(
        self,
        controller: ControllerChannel,
        broker_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._blocks: deque[range] = deque()
        self._waiting: deque[RequestContext] = deque()
        self._requested = False

    def handle(self, context: RequestContext, request: InitProducerIdRequest) -> None:
        """Respond with an unused producer id and epoch 0, immediately or when a block arrives.

        The errors are INVALID_REQUEST for a transactional id, and for a producer id without an
        epoch or an epoch without an id, and COORDINATOR_LOAD_IN_PROGRESS,
        which clients retry, if an allocation fails or MAX_WAITING requests wait. A failed
        allocation fails all waiting requests.
        """
        half = (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_PRODUCER_EPOCH)
        if request.transactional_id is not None or half:
            context.respond(failure(ErrorCode.INVALID_REQUEST))
            return
        if len(self._waiting) >= MAX_WAITING:
            context.respond(failure(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        self._waiting.append(context)
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._blocks:
            block = self._blocks.popleft()
            self._waiting.popleft().respond(
                InitProducerIdResponse(
                    error_code=ErrorCode.NONE, producer_id=block.start, producer_epoch=0
                )
            )
            if len(block) > 1:
                self._blocks.appendleft(block[1:])
        if sum(map(len, self._blocks)) < PREFETCH_BELOW:
            self._request_block()

    def _request_block(self) -> None:
        if not self._requested:
            self._requested = True
            request = AllocateProducerIdsRequest(
                broker_id=self._broker_id, broker_epoch=self._broker_epoch()
            )
            self._controller.send(request, ALLOCATE_TIMEOUT_MS, self._answered)

    def _answered(self, response: AllocateProducerIdsResponse | None) -> None:
        self._requested = False
        if response is not None and response.error == ErrorCode.NONE:
            first = response.first_producer_id
            self._blocks.append(range(first, first + response.count))
            self._serve()
            return
        if response is not None:
            name = ErrorCode.of(response.error).name
            logger.warning("the controller allocated no producer ids: %s; clients retry", name)
        waiting, self._waiting = self._waiting, deque()
        for context in waiting:  # the error is retriable
            context.respond(failure(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))


def failure(error: ErrorCode) -> InitProducerIdResponse:
    """Return an error response."""
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)
