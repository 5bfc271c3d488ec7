"""The context of a request whose response is changed before it is encoded.

A check of permissions removes a part of a request, and adds the answers about that part to the
response (`quorum/authorization/check.py`). The handler of the rest gets this context. It passes
everything else on to the context of the whole request.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.authorization.check import Amend
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.seams import Buffer


class AmendedContext(RequestContext):
    """A request of `whole`, whose response `amend` changes."""

    __slots__ = ("_amend", "_whole")

    def __init__(self, whole: RequestContext, amend: Amend) -> None:
        super().__init__(whole.connection, whole.api_key, whole.version, whole.correlation_id)
        self._whole = whole
        self._amend = amend
        self.principal = whole.principal
        self.client_id = whole.client_id
        self.received_us = whole.received_us
        self.frame = whole.frame

    def respond(self, response: Message) -> None:
        """Answer with the changed response. Long changes run in slices."""
        self._whole.run(self.respond_steps(response))

    def respond_steps(self, response: Message) -> IncrementalWork[None]:
        """Change and encode the response in steps."""
        changed = yield from self._amend(response)
        yield from self._whole.respond_steps(changed)

    def respond_raw(self, *body: Buffer) -> None:
        """Answer with a body that no handler of a checked API may have encoded itself."""
        raise AssertionError("the response of a checked request must be amended")

    def no_response(self) -> None:
        """End the request without a response."""
        self._whole.no_response()

    def fail(self, error: ErrorCode, message: str | None = None) -> None:
        """Answer that the whole request failed."""
        self._whole.fail(error, message)

    def fail_with(self, error: Exception) -> None:
        """Fail the whole request."""
        self._whole.fail_with(error)

    def count_elements(self, elements: int) -> None:
        """Count elements of the response in the budget of the node."""
        self._whole.count_elements(elements)

    def run(self, steps: IncrementalWork[None]) -> None:
        """Run steps that answer the request in slices."""
        self._whole.run(steps)

    @property
    def on_abandoned(self) -> Callable[[], None] | None:
        """Return what cancels the operation that waits for the request."""
        return self._whole.on_abandoned

    @on_abandoned.setter
    def on_abandoned(self, cancel: Callable[[], None] | None) -> None:
        whole = getattr(self, "_whole", None)
        if whole is not None:  # the base class sets it before this class has its fields
            whole.on_abandoned = cancel
