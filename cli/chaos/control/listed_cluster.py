"""The cluster of a nodes.toml, as a run uses it. Its nodes may be those of Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.cli.chaos.checks.move_checks import CONTROLLER_MOVES, ISR_MOVES, LEADER_MOVES
from quorate.cli.chaos.checks.record_checks import REPLICAS
from quorate.cli.chaos.control.answered_facts import AnsweredFacts
from quorate.cli.chaos.control.cluster import Cluster
from quorate.cli.chaos.control.cluster_requests import PROTOCOL_IN_FILE
from quorate.cli.chaos.control.command_control import CommandControl
from quorate.cli.chaos.loading.node_file import BROKER, CONTROLLER, NodeList
from quorate.cli.chaos.workload.brokers import Brokers
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.quorum import describe_quorum
from quorate.quorum.protocol.schemas import configs

STATES_ONLY = "answers of brokers show states of partitions, and not each change"
BROKER_RESOURCE = 4


class ListedCluster(Cluster):
    """The nodes of a file. Commands control them, and Kafka's protocol says what happens."""

    def __init__(
        self,
        listed: NodeList,
        servers: tuple[tuple[str, int], ...],
        client_file: ClientFile | None = None,
    ) -> None:
        self.client_file = client_file or ClientFile()
        self._listed = listed
        self._servers = servers

    @property
    def servers(self) -> tuple[tuple[str, int], ...]:
        """Return the bootstrap servers."""
        return self._servers

    @property
    def not_judged(self) -> Mapping[str, str]:
        """Return the checks that need the files of the nodes."""
        return {
            REPLICAS: "the files of the replicas are out of reach",
            CONTROLLER_MOVES: STATES_ONLY,
            LEADER_MOVES: STATES_ONLY,
            ISR_MOVES: STATES_ONLY,
        }

    @property
    def controllers(self) -> list[int]:
        """Return the ids of all controllers."""
        return self._listed.with_role(CONTROLLER)

    @property
    def brokers(self) -> list[int]:
        """Return the ids of all brokers."""
        return self._listed.with_role(BROKER)

    def require(self, node_id: int) -> None:
        """Raise Refused if the file lists no such node."""
        if node_id not in self._listed.nodes:
            known = ", ".join(map(str, self._listed.nodes))
            raise Refused(f"node {node_id}: the cluster has no such node; its nodes are {known}")

    def control(self, lease_ms: int) -> CommandControl:
        """Return the control of the nodes by their commands."""
        return CommandControl(self._listed, lease_ms, self.client_file.security)

    def facts(
        self, make_brokers: Callable[[], Brokers], now_ms: Callable[[], int]
    ) -> AnsweredFacts:
        """Return the answers of all brokers from now on."""
        return AnsweredFacts(make_brokers, self.brokers, now_ms)

    def session_timeout_ms(self) -> int:
        """Return 0. Only steps that need fault sockets measure sessions."""
        return 0

    def racks(self) -> dict[int, str]:
        """Return the racks of the brokers that have one."""
        admin = self.admin()
        try:
            brokers = admin.metadata(()).brokers
        finally:
            admin.close()
        return {each.node_id: each.rack for each in brokers if each.rack is not None}

    def refuse_other_nodes(self) -> None:
        """Raise Refused if the brokers that run or the voters differ from the nodes of the file.

        Raise NotReachable if no broker answers, for example because it demands TLS or SASL."""
        admin = self.admin()
        try:
            running = {each.node_id for each in admin.metadata(()).brokers}
            voters = {each.replica_id for each in describe_quorum(admin).state.current_voters}
        except NotReachable as error:
            raise NotReachable(f"{error.message}. {PROTOCOL_IN_FILE}") from None
        finally:
            admin.close()
        for role, found, listed in (
            ("brokers that run", running, self.brokers),
            ("voters", voters, self.controllers),
        ):
            if found != set(listed):
                raise Refused(
                    f"the {role} are {numbers(found)}, and the file of nodes lists "
                    f"{numbers(listed)}: it must list every node, and every node must run"
                )

    def configs_of(self, broker: int, names: list[str]) -> dict[str, str | None]:
        """Return some configs of a broker as the broker describes them."""
        wanted = configs.DescribeConfigsResource(
            resource_type=BROKER_RESOURCE,
            resource_name=str(broker),
            configuration_keys=tuple(names),
        )
        request = configs.DescribeConfigsRequest(resources=(wanted,))
        admin = self.admin()
        try:
            answer = admin.ask_node(broker, request, configs.DescribeConfigsResponse)
        finally:
            admin.close()
        found = answer.results[0].configs
        return {each.name: each.value for each in found}


def numbers(nodes: set[int] | list[int]) -> str:
    """Return node ids as text."""
    return ", ".join(map(str, sorted(nodes))) or "none"
