"""The delivery of frames, and of the end of a link, from a transport to a LinkHandler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.tracebacks import drop_stack_frames
from quorate.quorum.seams import Address, Link, LinkHandler, ProtocolError

logger = logging.getLogger(__name__)
CLOSING = "closing"
"""The kind of the lines about links that are closed because of a fault of the peer."""


def raise_failure(task: asyncio.Task[None]) -> None:
    """Raise the exception with which `task` ended, if any. A cancelled task raises nothing.

    Owners add this function as a done callback of their tasks, so that the exception reaches the
    loop's exception handler."""
    if not task.cancelled():
        task.result()


def log_closing(peer: Address, reason: object, lines: LogLimit | None) -> None:
    """Write a warning that the link to `peer` is closed because of a fault of the peer. `lines`
    limits the warnings about one host, because a peer can repeat its fault on new links."""
    left_out = "" if lines is None else lines.passes((CLOSING, peer.host))
    if left_out is not None:
        logger.warning("closing the link to %s: %s%s", peer, reason, left_out)


def deliver(
    link: Link, handler: LinkHandler, frame: memoryview, lines: LogLimit | None = None
) -> Exception | None:
    """Pass `frame` to `handler`. Return the exception that it raised, or None.

    An exception aborts the link. A ProtocolError is the peer's fault and makes a warning
    (`log_closing`). It is returned without its stack frames, because they refer to the peer's frame
    and the link keeps the error. Any other exception goes to the loop's exception handler, which
    stops the node (`quorum/node/unhandled.py`). A handler must therefore catch the exceptions of a
    single request and answer them itself."""
    try:
        handler.on_frame(frame)
    except Exception as error:
        return _failed(link, error, lines)
    return None


def handled_later(link: Link, work: Callable[[], None]) -> Exception | None:
    """Do the rest of the work of a frame, with the same boundary as `deliver`."""
    try:
        work()
    except Exception as error:
        return _failed(link, error, getattr(link, "lines", None))
    return None


def _failed(link: Link, error: Exception, lines: LogLimit | None) -> Exception:
    if isinstance(error, ProtocolError):
        log_closing(link.peer, error, lines)
        link.abort()
        drop_stack_frames(error)
        return error
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"handling a frame from {link.peer} failed", "exception": error}
    )
    link.abort()
    return error


def deliver_end(link: Link, handler: LinkHandler, error: Exception | None) -> None:
    """Report the end of `link` to `handler`. An exception goes to the loop's exception handler."""
    try:
        handler.on_closed(error)
    except Exception as failure:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"handling the end of {link.peer} failed", "exception": failure}
        )
