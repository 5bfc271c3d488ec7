"""InitProducerId (22): ids for idempotent producers, from blocks that the controller hands out
(KIP-730).

No two producers of a cluster ever get the same id: a block is in the metadata log before it is
used, and what is left of it when the broker stops is not used again. The next block is fetched
before this one is used up. Transactions are not offered: a transactional id is refused.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from quorate.broker.controller.controller_channel import ControllerChannel
from quorate.quorum.controller.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

PREFETCH_BELOW = 100
ALLOCATE_TIMEOUT_MS = 5000
MAX_WAITING = 1000
NO_PRODUCER_EPOCH = -1

logger = logging.getLogger("quorate.broker.producers")


class ProducerIds:
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
        if request.transactional_id is not None:
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
            logger.warning("no producer ids: %s", ErrorCode.of(response.error).name)
        waiting, self._waiting = self._waiting, deque()
        for context in waiting:  # retriable: the client asks again
            context.respond(failure(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))


def failure(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_PRODUCER_EPOCH)
