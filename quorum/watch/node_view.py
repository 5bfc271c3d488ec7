"""The parts of a running node that its HTTP interface reads.

`quorum/node/node_core.py` implements this protocol. The interface imports nothing of `quorum/node`,
because a node imports the interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from quorate.config.node_config import NodeConfig
from quorate.quorum.ids import ReplicaKey
from quorate.quorum.log.log import Log
from quorate.quorum.log.snapshots.snapshots import SnapshotFiles
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.raft.control_records import Voter
from quorate.quorum.raft.raft import Raft
from quorate.quorum.rpc.handshake import LinkCounts
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.seams import Address, Clock


class NodeView(Protocol):
    """One running node. All members are read on the node's event loop."""

    @property
    def config(self) -> NodeConfig:
        """Return the configuration of the node."""

    @property
    def clock(self) -> Clock:
        """Return the clock of the node."""

    @property
    def cluster_id(self) -> str:
        """Return the id of the node's cluster."""

    @property
    def me(self) -> ReplicaKey:
        """Return the node id and the directory id."""

    @property
    def failed(self) -> bool:
        """Return True if the node has failed and is stopping."""

    @property
    def lost(self) -> str:
        """Return the reason why the node had to catch up before it voted, or an empty string."""

    @property
    def log(self) -> Log:
        """Return the node's copy of the metadata log."""

    @property
    def snapshots(self) -> SnapshotFiles:
        """Return the snapshots of the metadata log."""

    @property
    def raft(self) -> Raft:
        """Return the Raft core. Callers only read its state."""

    @property
    def voters(self) -> Sequence[Voter]:
        """Return the voters that this node knows, with their addresses."""

    @property
    def image(self) -> MetadataImage:
        """Return the committed metadata image."""

    @property
    def replayed_offset(self) -> int:
        """Return the offset of the next record that the image needs."""

    @property
    def resources(self) -> NodeResources:
        """Return the scheduler and the budgets that bound what the node's peers use of its CPU and
        memory."""

    @property
    def link_counts(self) -> LinkCounts:
        """Return the numbers of links between nodes that were refused or closed."""

    @property
    def failed_requests(self) -> Mapping[str, int]:
        """Return the number of failed requests from other nodes, by the kind of message."""

    def failure_at(self, address: Address) -> str:
        """Return the reason why the last attempt to connect to the controller at an address failed.
        It is empty if none failed or there is a connection."""

    def is_connected(self, voter_id: int) -> bool:
        """Return True if the node has a connection to this voter."""
