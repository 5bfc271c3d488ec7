"""What goes wrong with a local cluster."""

from __future__ import annotations


class LocalClusterError(Exception):
    """Any of these."""


class NodeFailed(LocalClusterError):
    """A node stopped by itself; the cause is the exception that made it. Which node it was is not
    always known."""

    def __init__(self, node_id: int | None, error: BaseException) -> None:
        super().__init__(f"{'a node' if node_id is None else f'node {node_id}'} failed: {error!r}")
        self.node_id = node_id
        self.__cause__ = error


class NotInTime(LocalClusterError, TimeoutError):
    """The cluster did not come to the state that was waited for."""


class WrongState(LocalClusterError):
    """The node is not in the state that the call needs, or there is no such node."""


class TopicRefused(LocalClusterError):
    """The cluster said no; the message has Kafka's error and the reason."""
