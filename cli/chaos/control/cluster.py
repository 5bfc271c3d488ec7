"""A cluster as a run uses it: its nodes, its requests, their control, and its facts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from quorate.cli.chaos.control.cluster_requests import ClusterRequests
from quorate.cli.chaos.control.node_control import NodeControl
from quorate.cli.chaos.timeline.facts import Facts
from quorate.cli.chaos.workload.brokers import Brokers


class Cluster(ClusterRequests):
    """A cluster that runs already. A node may be a controller and a broker."""

    @property
    @abstractmethod
    def not_judged(self) -> Mapping[str, str]:
        """Return the checks that have no evidence on this cluster, with the reasons."""

    @property
    @abstractmethod
    def controllers(self) -> Sequence[int]:
        """Return the ids of all controllers."""

    @property
    @abstractmethod
    def brokers(self) -> Sequence[int]:
        """Return the ids of all brokers."""

    @abstractmethod
    def require(self, node_id: int) -> None:
        """Raise Refused if the cluster has no such node."""

    @abstractmethod
    def control(self, lease_ms: int) -> NodeControl:
        """Return the control of the nodes, whose faults end after `lease_ms` without renewal."""

    @abstractmethod
    def facts(self, make_brokers: Callable[[], Brokers], now_ms: Callable[[], int]) -> Facts:
        """Return the source of facts from now on. `now_ms` is the clock of the run. Block."""

    @abstractmethod
    def session_timeout_ms(self) -> int:
        """Return broker.session.timeout.ms, or 0 if it is not known."""

    @abstractmethod
    def racks(self) -> Mapping[int, str]:
        """Return the racks of the brokers that have one."""
