"""A Quorate cluster for tests, which runs in the process of the test.

Start with `LocalCluster`, whose docstring explains its use. `with` gives a ThreadedCluster, and
`async with` a Cluster. The module also exports the errors of their methods."""

from __future__ import annotations

from quorate.broker.local.cluster import Cluster
from quorate.broker.local.errors import (
    LocalClusterError,
    NodeFailed,
    NotInTime,
    TopicRefused,
    WrongState,
)
from quorate.broker.local.local_cluster import LocalCluster
from quorate.broker.local.threaded import ThreadedCluster

__all__ = [
    "Cluster",
    "LocalCluster",
    "LocalClusterError",
    "NodeFailed",
    "NotInTime",
    "ThreadedCluster",
    "TopicRefused",
    "WrongState",
]
