"""The memory that a request holds while it waits for the active controller. Pure.

The sizes are estimates. They are not below a third of the real ones, also for requests that are
made to be larger in memory than they look.
"""

from __future__ import annotations

from quorate.quorum.controller.state.messages import (
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
)
from quorate.quorum.rpc.kafka.context import ELEMENT_BYTES

LEAST_BYTES = 1024
"""Counted for each request in addition."""
DECODED_RATIO = 32
"""A small request that is decoded without a count of its elements is counted so many times, because
an element of four bytes takes ELEMENT_BYTES in memory."""
CHANGE_BYTES = 300
"""Of one change of an ISR, without its replicas."""


def node_request_bytes(message: object) -> int:
    """Return the size of a broker's own request. Only those with long lists are measured. The
    bounds of their fields keep the others small."""
    if isinstance(message, AlterPartitionRequest):
        replicas = sum([len(change.isr) for change in message.changes])
        return LEAST_BYTES + CHANGE_BYTES * len(message.changes) + ELEMENT_BYTES * replicas
    if isinstance(message, AssignReplicasToDirsRequest):
        return LEAST_BYTES + 3 * ELEMENT_BYTES * len(message.assignments)
    return LEAST_BYTES


def client_request_bytes(body_bytes: int, elements: int | None) -> int:
    """Return the size of a client's request with a body of `body_bytes`. `elements` is the number
    of array elements, or None if they were not counted."""
    if elements is None:
        return LEAST_BYTES + DECODED_RATIO * body_bytes
    return LEAST_BYTES + body_bytes + ELEMENT_BYTES * elements
