"""The boundary of the node port: it decides which exceptions of a handler stop the node.

| exception | consequence |
|---|---|
| ProtocolError | The link closes. `rpc/delivery.py` logs it. |
| StateInDoubt, CorruptLog, an OSError of this node's disk | The node stops (`is_node_failure`). |
| any other | The sender gets an error response if the message has one, else its link closes. |

The exceptions of the last row are counted by a metric, and a limited number of lines is logged for
each kind of message (`log_limit.py`). InvariantViolation is a subclass of StateInDoubt.

Raft's requests reach the last row only before anything has changed: `MetadataReplica` turns every
exception of a change into StateInDoubt.

The boundary catches what a handler raises before it returns. Later work of a request passes its
exceptions to `NodeRequests.failed`. Others reach `unhandled.py`.
"""

from __future__ import annotations

import hashlib
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from quorate.quorum.clipped import clipped
from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    EnvelopeRequest,
    EnvelopeResponse,
)
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.node.peers.speaker import check_speaker
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft.messages import FetchRequest, Request
from quorate.quorum.rpc.budget import Budget
from quorate.quorum.rpc.channel import Handler, Reply
from quorate.quorum.rpc.hello import Peer
from quorate.quorum.rpc.kafka.boundary import is_node_failure
from quorate.quorum.rpc.messages import packed
from quorate.quorum.rpc.node_link_memory import fetch_room
from quorate.quorum.seams import Clock, ProtocolError

HASH_CHARS = 16
"""The number of hexadecimal digits of a message's SHA-256 in the log."""

logger = logging.getLogger("quorate.node")

# The responses with an error. Raft's requests have none: their links close.
REFUSED: Mapping[type, Callable[[ErrorCode], Any]] = {
    BrokerRegistrationRequest: lambda error: BrokerRegistrationResponse(error=error),
    BrokerHeartbeatRequest: lambda error: BrokerHeartbeatResponse(error=error),
    AlterPartitionRequest: lambda error: AlterPartitionResponse(error=error),
    AllocateProducerIdsRequest: lambda error: AllocateProducerIdsResponse(error=error),
    AssignReplicasToDirsRequest: lambda error: AssignReplicasToDirsResponse(error=error),
    EnvelopeRequest: lambda error: EnvelopeResponse(error=error),
    ControllerRegistrationRequest: lambda error: ControllerRegistrationResponse(error=error),
}
RAFT_REQUESTS: tuple[type, ...] = get_args(Request)


def affordable(message: Any, budget: Budget) -> Any:
    """Return the request. If it is a Fetch, lower `max_bytes` to the memory that `budget` has left
    for the response."""
    if isinstance(message, FetchRequest):
        room_bytes = fetch_room(budget)
        if message.max_bytes > room_bytes:
            return replace(message, max_bytes=room_bytes)
    return message


class NodeRequests:
    """Guards the handlers of the node port, and counts the requests that fail.

    Owned by the node's event loop."""

    def __init__(self, clock: Clock, fail: Callable[[BaseException], None]) -> None:
        """`fail` stops the node."""
        self.failures: Counter[str] = Counter()
        """The number of failed requests by the name of the message's class."""
        self._fail = fail
        self._lines = LogLimit(clock)

    def guarded(self, handler: Handler) -> Handler:
        """Return `handler` behind the boundary that this module describes. It gets only requests
        that speak for their sender (`speaker.py`)."""

        def handle(peer: Peer, message: Any, reply: Reply) -> None:
            try:
                check_speaker(peer, message)
                handler(peer, message, reply)
                return
            except ProtocolError:
                raise
            except Exception as error:
                if self.failed(peer, message, reply, error):
                    return
            raise ProtocolError(f"{type(message).__name__} could not be handled")

        return handle

    def failed(self, peer: Peer, message: Any, reply: Reply, error: Exception) -> bool:
        """Stop the node, or count and answer the request, because its handler or its later work has
        raised `error`. Return False if the response has no error, so that the link must close."""
        if is_node_failure(error):
            self._fail(error)
            return True
        self._note(peer, message, error)
        refused = REFUSED.get(type(message))
        if refused is None:
            return False
        reply(refused(ErrorCode.UNKNOWN_SERVER_ERROR))
        return True

    def _note(self, peer: Peer, message: Any, error: Exception) -> None:
        name = type(message).__name__
        self.failures[name] += 1
        left_out = self._lines.passes(name)
        if left_out is None:
            return
        digest = hashlib.sha256(packed(message, 0)).hexdigest()[:HASH_CHARS]
        place = traceback.extract_tb(error.__traceback__)[-1]
        logger.error(
            "handling %s of %s failed (message %s) at %s:%d: %s%s",
            name,
            peer,
            digest,
            place.filename.rpartition("quorate/")[2],
            place.lineno or 0,
            clipped(repr(error), 500),
            left_out,
        )
