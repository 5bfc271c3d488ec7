"""The errors of a local cluster."""

from __future__ import annotations

from quorate.quorum.protocol.errors import ErrorCode


class LocalClusterError(Exception):
    """The base class of these errors."""


class NodeFailed(LocalClusterError):
    """A node failed by itself.

    The cause is its exception. The node's id is None if it is unknown."""

    def __init__(self, node_id: int | None, error: BaseException) -> None:
        super().__init__(f"{'a node' if node_id is None else f'node {node_id}'} failed: {error!r}")
        self.node_id = node_id
        self.__cause__ = error


class NotInTime(LocalClusterError, TimeoutError):
    """The cluster did not reach the expected state in time."""


class WrongState(LocalClusterError):
    """The node is not in the state that the call requires, or it does not exist."""


class TopicRefused(LocalClusterError):
    """The cluster refused the topic. The message holds Kafka's error and its reason.

    `retriable` is True if the same request may succeed later. The cluster may then have created the
    topic already, or still create it."""

    def __init__(self, topic: str, error: ErrorCode, reason: str | None) -> None:
        super().__init__(f"topic {topic!r} is refused: {error.name}: {reason or error.message}")
        self.error = error

    @property
    def retriable(self) -> bool:
        return self.error.retriable
