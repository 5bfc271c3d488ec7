"""StateInDoubt, the exception that stops a node, and the block that raises it.

`StateInDoubt` means that a change of the log, of Raft's state or of the metadata image was left
half done. On the client, controller and node ports it stops the node, as damaged stored data and a
failed disk do (`is_node_failure` in `rpc/kafka/boundary.py`).

External input may fail its request or close its connection. It must never stop the node. The places
where requests enter (client port, controller port, node port, HTTP, fault socket) therefore turn
every other exception of a handler into an answer or a closed connection.

Rule for callers: check the input first, outside of the block. Only the step that changes state goes
inside `changing(...)`, and input that passed the checks must not be able to make it raise.
"""

from __future__ import annotations

from types import TracebackType


class StateInDoubt(Exception):
    """A change of the node's own state was left half done. The node stops."""


class changing:  # noqa: N801 - read as a word: `with changing("the log of t-0"):`
    """Raises StateInDoubt in place of any Exception that leaves the block.

    These pass unchanged: StateInDoubt, CancelledError and other exceptions that are no Exception,
    and `expected`, which the change raises only before it has changed anything.

    `what` names the state that changes, for the error."""

    __slots__ = ("_expected", "_what")

    def __init__(self, what: str, *expected: type[BaseException]) -> None:
        self._what = what
        self._expected: tuple[type[BaseException], ...] = (StateInDoubt, *expected)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, self._expected):
            raise StateInDoubt(f"{self._what} was left half changed: {error!r}") from error
