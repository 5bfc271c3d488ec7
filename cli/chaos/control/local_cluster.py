"""The cluster of `quorate up` in a directory, as a run uses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorate.cli.chaos.control.cluster import Cluster
from quorate.cli.chaos.control.fault_sockets import FaultSockets
from quorate.cli.chaos.control.process_cluster import ProcessCluster
from quorate.cli.chaos.control.signal_control import SignalControl
from quorate.cli.chaos.timeline.logged_facts import LoggedFacts
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.nodes.secured_up import controllers_file_of, is_secured
from quorate.config.loader import load


class LocalCluster(ProcessCluster, Cluster):
    """The processes of `quorate up`. Signals control them, and their logs are on this machine."""

    @property
    def not_judged(self) -> dict[str, str]:
        """Return nothing: every check has its evidence."""
        return {}

    @property
    def controllers(self) -> list[int]:
        """Return the ids of all controllers."""
        return [node["id"] for node in self.entry["controllers"]]

    @property
    def brokers(self) -> list[int]:
        """Return the ids of all brokers."""
        return [node["id"] for node in self.entry["brokers"]]

    def require(self, node_id: int) -> None:
        """Raise Refused if the cluster has no such node."""
        self.node(node_id)

    def control(self, lease_ms: int) -> SignalControl:
        """Return the control of the nodes' processes."""
        return SignalControl(self, lease_ms)

    def facts(self, make_brokers: Callable[[], Brokers], now_ms: Callable[[], int]) -> LoggedFacts:
        """Return the records of the nodes' metadata logs from now on."""
        nodes = (*self.controllers, *self.brokers)
        return LoggedFacts({each: self.log_dir(each) for each in nodes}, self.brokers)

    def session_timeout_ms(self) -> int:
        """Return broker.session.timeout.ms of a controller. All controllers have the same value."""
        file = self.directory.node_file(self.controllers[0])
        timeout: int = load(str(file))["broker.session.timeout.ms"]
        return timeout

    def racks(self) -> dict[int, str]:
        """Return the racks of the brokers that have one."""
        files = {each: str(self.directory.node_file(each)) for each in self.brokers}
        found = {each: load(file)["broker.rack"] for each, file in files.items()}
        return {broker: rack for broker, rack in found.items() if rack is not None}

    def controller_security(self) -> ClientSecurity:
        """Return the protection of connections to controllers, which demand a certificate if the
        cluster is one of `up --secure`. Block to read the certificate."""
        root = self.directory.root
        return ClientFile.read(
            str(controllers_file_of(root)) if is_secured(root) else None
        ).security

    def log_dir(self, node_id: int) -> Path:
        """Return the data directory of a node."""
        return Path(self.node(node_id)["log_dir"])

    @property
    def sockets(self) -> FaultSockets:
        """Return the client of the nodes' fault sockets."""
        return FaultSockets(self.directory)
