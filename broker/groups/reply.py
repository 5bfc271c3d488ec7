"""How an answer goes back: now, or when the group is ready for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.wire import Message


@dataclass(frozen=True, slots=True)
class Reply:
    """`refusal` says an error as this API says it."""

    send: Callable[[Message], None]
    refusal: Callable[[ErrorCode], Message]

    def fail(self, error: ErrorCode) -> None:
        self.send(self.refusal(error))
