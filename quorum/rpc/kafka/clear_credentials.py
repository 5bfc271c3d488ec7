"""A warning about credentials that a client changes through a connection without TLS.

AlterUserScramCredentials has the salted password, which is as good as the password. Kafka and
Quorate accept it over any connection. The line names the client, so that an operator can change the
password again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from quorate.config.listeners import is_loopback
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.seams import Clock

Handle = Callable[[RequestContext, Any], Any]

logger = logging.getLogger("quorate.kafka")


class ClearCredentials:
    """The warnings of one port. The event loop owns it."""

    def __init__(self, clock: Clock) -> None:
        self._lines = LogLimit(clock)

    def noted(self, handle: Handle) -> Handle:
        """Return a handler of AlterUserScramCredentials that calls `note` before `handle`."""

        def note_first(context: RequestContext, request: Any) -> Any:
            self.note(context)
            return handle(context, request)

        return note_first

    def note(self, context: RequestContext) -> None:
        """Log a WARN line if the request came without TLS from another machine. Lines about one
        machine are limited."""
        encrypted = context.connection.link.identity is not None
        if encrypted or is_loopback(context.peer.host):
            return
        left_out = self._lines.passes(context.peer.host)
        if left_out is not None:
            logger.warning(
                "a client at %s sends credentials of users through the network without TLS. A "
                "reader of the network can log in with them. Change them again over TLS%s",
                context.peer,
                left_out,
            )
