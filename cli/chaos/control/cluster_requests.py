"""The requests with which a run prepares a cluster, and asks it for its leaders.

They raise NotReachable if no broker answers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from quorate.cli.client.admin import Admin, AdminSettings, check
from quorate.cli.client.client_file import ClientFile
from quorate.cli.client.quorum import describe_quorum
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import configs, elect_leaders, topics

TOPIC_RESOURCE = 2
NO_NEED = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }
)
"""The results of a preferred election, which need not change anything."""
PROTOCOL_IN_FILE = "--command-config names a file with the protocol of the clients"
HEAL_TIMEOUT_S = 60.0
"""The default time, in s, for which `wait_healed` waits."""


class ClusterRequests(ABC):
    """The requests to any cluster. Each call opens connections of its own, and blocks."""

    client_file = ClientFile()
    """The settings of all connections to brokers."""

    @property
    @abstractmethod
    def servers(self) -> tuple[tuple[str, int], ...]:
        """Return the (host, port) pairs of the bootstrap servers."""

    def admin(self, timeout_s: float = 30.0) -> Admin:
        """Return a new Admin, which the caller closes."""
        security = self.client_file.security
        return Admin(AdminSettings(servers=self.servers, timeout_s=timeout_s, security=security))

    def create_topic(self, topic: str, partitions: int, replicas: int, *, min_isr: int = 2) -> None:
        """Create a topic. Raise Refused if the cluster refuses it."""
        wanted = topics.CreatableTopic(
            name=topic,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=(),
            configs=(topics.CreatableTopicConfig(name="min.insync.replicas", value=str(min_isr)),),
        )
        admin = self.admin()
        answer = admin.change(
            topics.CreateTopicsRequest(topics=(wanted,)),
            topics.CreateTopicsResponse,
            lambda answer: [each.error_code for each in answer.topics],
        )
        admin.close()
        check(answer.topics[0].error_code, answer.topics[0].error_message)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic. Raise Refused if the cluster refuses that."""
        admin = self.admin()
        answer = admin.change(
            topics.DeleteTopicsRequest(
                topics=(topics.DeleteTopicState(name=topic),),
                topic_names=(topic,),
                timeout_ms=admin.timeout_ms,
            ),
            topics.DeleteTopicsResponse,
            lambda answer: [each.error_code for each in answer.responses],
        )
        admin.close()
        check(answer.responses[0].error_code, answer.responses[0].error_message, topic)

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition of a topic, or -1 for a partition without one."""
        admin = self.admin()
        (described,) = admin.metadata([topic]).topics
        admin.close()
        return {each.partition_index: each.leader_id for each in described.partitions}

    def active_controller(self) -> int:
        """Return the id of the active controller."""
        admin = self.admin()
        leader = describe_quorum(admin).state.leader_id
        admin.close()
        return leader

    def change_a_config(self, topic: str, value: str) -> None:
        """Set the topic's retention.ms to `value`, and return when the change is committed.

        Raise Refused if the cluster refuses the change."""
        change = configs.IncrementalAlterableConfig(
            name="retention.ms", config_operation=0, value=value
        )
        resource = configs.IncrementalAlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(change,)
        )
        request = configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        admin = self.admin()
        answer = admin.change(
            request,
            configs.IncrementalAlterConfigsResponse,
            lambda answer: [each.error_code for each in answer.responses],
            repeatable=True,
        )
        admin.close()
        check(answer.responses[0].error_code, answer.responses[0].error_message)

    def elect_preferred(self, topic: str) -> None:
        """Elect the preferred leaders of a topic's partitions that can lead.

        Raise Refused if the cluster refuses the request or a partition for another reason."""
        admin = self.admin()
        try:
            (described,) = admin.metadata([topic]).topics
            numbers = tuple(each.partition_index for each in described.partitions)
            wanted = elect_leaders.TopicPartitions(topic=topic, partitions=numbers)
            request = elect_leaders.ElectLeadersRequest(
                topic_partitions=(wanted,), timeout_ms=admin.timeout_ms
            )
            answer = admin.change(
                request,
                elect_leaders.ElectLeadersResponse,
                lambda answer: [answer.error_code],
                repeatable=True,
            )
        finally:
            admin.close()
        check(answer.error_code, None)
        for each in answer.replica_election_results:
            for partition in each.partition_result:
                if ErrorCode.of(partition.error_code) not in NO_NEED:
                    check(partition.error_code, partition.error_message, f"partition of {topic}")

    def wait_healed(self, topic: str, replicas: int, timeout_s: float = HEAL_TIMEOUT_S) -> bool:
        """Return True when every ISR has `replicas` members, or False after `timeout_s`.

        A broker that does not know the topic's partitions yet does not count."""
        begin_s = time.monotonic()
        admin = self.admin()
        try:
            while time.monotonic() - begin_s < timeout_s:
                (described,) = admin.metadata([topic]).topics
                if described.partitions and all(
                    len(each.isr_nodes) == replicas for each in described.partitions
                ):
                    return True
                time.sleep(0.1)
            return False
        finally:
            admin.close()
