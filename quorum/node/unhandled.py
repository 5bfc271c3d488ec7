"""The exception handler of the event loop: it decides which unhandled exceptions stop the node."""

from __future__ import annotations

import asyncio
import errno
import logging
from dataclasses import dataclass
from typing import Any

from quorate.quorum.node.node_core import NodeCore
from quorate.quorum.rpc.kafka.boundary import is_node_failure

LINE_INTERVAL_S = 1.0
"""Minimum time between two log lines about failed connections, in seconds."""
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""The errors of a node that lacks descriptors or memory to accept a connection."""

logger = logging.getLogger("quorate.quorum.controller")


@dataclass(slots=True)
class _Line:
    next_s: float = 0.0


_connection_line = _Line()


def on_unhandled(core: NodeCore, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Stop the node, because an exception that no code caught is a broken invariant. `partial` of
    this function with `core` is an exception handler for asyncio.

    Two failures are only logged, because a peer can cause them:

    - The node cannot accept a connection because it lacks descriptors or memory. asyncio reports it
      with the listening `socket`, possibly many times in a row, and retries after a second.
    - The code that splits a connection's bytes into frames raises an exception. asyncio reports it
      with the `transport` and closes that. A failure of the node's own disk or state still stops
      the node.

    The handlers of frames catch their own exceptions (`rpc/delivery.py`). A report without an
    exception is only logged."""
    error = context.get("exception")
    refused = isinstance(error, OSError) and error.errno in OUT_OF_RESOURCES and "socket" in context
    cut = isinstance(error, Exception) and "transport" in context and not is_node_failure(error)
    if refused or cut:
        if loop.time() >= _connection_line.next_s:
            _connection_line.next_s = loop.time() + LINE_INTERVAL_S
            what = "cannot accept a connection" if refused else "closing a connection"
            logger.warning("%s: %r", what, error, exc_info=None if refused else error)
    elif error is None:
        loop.default_exception_handler(context)
    else:
        core.fail(error)
