"""The last exception handler of a node: it decides which unhandled exceptions stop the node."""

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

logger = logging.getLogger("quorate.quorum.controller")


@dataclass(slots=True)
class _Line:
    next_s: float = 0.0


_connection_line = _Line()


def on_unhandled(core: NodeCore, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Stop the node, because an exception that no code caught is a broken invariant.

    Two failures of a connection are exempt, because a peer can cause them. asyncio reports a failed
    accept with its `socket`, once for each place of the backlog, and retries after a second. It
    reports an exception of the code that cuts frames with its `transport`, which it closes. The
    handlers of frames catch their own exceptions (`rpc/delivery.py`)."""
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
