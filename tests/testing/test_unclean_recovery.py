"""An unclean election on request elects the longest log of the live replicas (KIP-966, part 2)."""

from __future__ import annotations

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.quorum.controller.partitions.unclean_elections import UNCLEAN_RECOVERY_STRATEGY
from quorate.quorum.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from quorate.testing import LocalCluster
from tests.testing.clients import consume, numbered, produce
from tests.testing.test_local_cluster import QUICK


def elect_uncleanly(bootstrap: str) -> None:
    # The first server may be the one that the test killed.
    servers = tuple(each.rpartition(":") for each in bootstrap.split(","))
    admin = Admin(
        AdminSettings(servers=tuple((host, int(port)) for host, _, port in servers), timeout_s=20.0)
    )
    request = ElectLeadersRequest(
        election_type=1,
        topic_partitions=(TopicPartitions(topic="t", partitions=(0,)),),
        timeout_ms=10_000,
    )
    answer = admin.change(request, ElectLeadersResponse, lambda answer: [answer.error_code])
    admin.close()
    (topic,) = answer.replica_election_results
    assert [each.error_code for each in topic.partition_result] == [0]


def test_the_longest_log_is_elected_on_request() -> None:
    with LocalCluster(controllers=1, brokers=3, config=QUICK) as cluster:
        cluster.create_topic("t", config={UNCLEAN_RECOVERY_STRATEGY: "none"})
        produce(cluster.bootstrap, "t", numbered(10))
        cluster.wait_in_sync("t")
        leader = cluster.leader("t")
        # The first of the others in assignment order gets the shorter log.
        partition = cluster._cluster._partition("t", 0)
        assert partition is not None
        shorter, longer = (each for each in partition.replicas if each != leader)
        cluster.kill_broker(shorter)
        produce(cluster.bootstrap, "t", numbered(10, first=10))
        cluster.kill_broker(longer)
        cluster.kill_broker(leader)
        for each in (shorter, longer):
            cluster.restart(each)
        cluster.wait_ready()
        elect_uncleanly(cluster.bootstrap)
        assert cluster.leader("t") == longer
        assert consume(cluster.bootstrap, "t", 20) == numbered(20)
