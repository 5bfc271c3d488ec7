"""The delivery of frames, and of the end of a link, from a transport to a LinkHandler."""

from __future__ import annotations

import asyncio
import logging

from quorate.quorum.rpc.tracebacks import drop_stack_frames
from quorate.quorum.seams import Link, LinkHandler, ProtocolError

logger = logging.getLogger(__name__)


def raise_failure(task: asyncio.Task[None]) -> None:
    """Raise the exception with which `task` ended, if any. A cancelled task raises nothing.

    Owners add this function as a done callback of their tasks, so that the exception reaches the
    loop's exception handler."""
    if not task.cancelled():
        task.result()


def deliver(link: Link, handler: LinkHandler, frame: memoryview) -> Exception | None:
    """Pass `frame` to `handler`. Return the exception that it raised, or None.

    An exception aborts the link. A ProtocolError is the peer's fault and is logged as a warning. It
    is returned without its stack frames, because they refer to the peer's frame and the link keeps
    the error. Any other exception goes to the loop's exception handler, which stops the node
    (`quorum/node/unhandled.py`). A handler must therefore catch the exceptions of a single request
    and answer them itself."""
    try:
        handler.on_frame(frame)
    except ProtocolError as error:
        logger.warning("closing the link to %s: %s", link.peer, error)
        link.abort()
        drop_stack_frames(error)
        return error
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"handling a frame from {link.peer} failed", "exception": error}
        )
        link.abort()
        return error
    return None


def deliver_end(link: Link, handler: LinkHandler, error: Exception | None) -> None:
    """Report the end of `link` to `handler`. An exception goes to the loop's exception handler."""
    try:
        handler.on_closed(error)
    except Exception as failure:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"handling the end of {link.peer} failed", "exception": failure}
        )
