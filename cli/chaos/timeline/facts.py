"""The interface of the sources from which a run learns the state of the cluster's metadata."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from quorate.cli.chaos.timeline.cluster_states import ClusterStates
from quorate.cli.chaos.timeline.timeline import Event


class Facts(Protocol):
    """A source of events: the metadata logs of nodes, or the answers of brokers."""

    def following(self) -> AbstractAsyncContextManager[None]:
        """Collect facts for the duration of the block, from the event loop of the run."""

    def new_events(self, states: ClusterStates) -> Iterator[Event]:
        """Apply the facts since the last call to the states, and yield their events."""

    def replay(self, states: ClusterStates) -> list[Event] | None:
        """Apply all facts since the creation of this object to new states, and return their events.

        Return None if the events that were yielded during the run are final. Block."""

    def log_end(self, node_id: int) -> int:
        """Return the end offset of the node's metadata log as known now, or -1. Block."""
