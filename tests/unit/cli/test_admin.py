"""The node to which the command line sends a request."""

from __future__ import annotations

from typing import Any

from quorate.cli.client.admin import CONTROLLER_ENDPOINT, Admin, AdminSettings
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import cluster
from tests.unit.cli.fake_kafka import FakeKafka

ACTIVE = 2


def quorum_answer(error: ErrorCode) -> cluster.DescribeQuorumResponse:
    """Return a DescribeQuorum response with an error."""
    return cluster.DescribeQuorumResponse(error_code=error, topics=(), nodes=())


def test_a_standby_controller_is_asked_who_is_active() -> None:
    """--bootstrap-controller may list only standby controllers, which answer NOT_CONTROLLER to
    every change."""
    active = FakeKafka({cluster.DescribeQuorumRequest: lambda _: quorum_answer(ErrorCode.NONE)})

    def describe_cluster(_: Any) -> cluster.DescribeClusterResponse:
        node = cluster.DescribeClusterBroker(
            broker_id=ACTIVE, host=active.host, port=active.port, rack=None
        )
        return cluster.DescribeClusterResponse(
            endpoint_type=CONTROLLER_ENDPOINT,
            cluster_id="c",
            controller_id=ACTIVE,
            brokers=(node,),
        )

    standby = FakeKafka(
        {
            cluster.DescribeQuorumRequest: lambda _: quorum_answer(ErrorCode.NOT_CONTROLLER),
            cluster.DescribeClusterRequest: describe_cluster,
        }
    )
    admin = Admin(
        AdminSettings(servers=((standby.host, standby.port),), timeout_s=5, controllers=True)
    )
    try:
        request = cluster.DescribeQuorumRequest(topics=())
        answer = admin.ask(
            request, cluster.DescribeQuorumResponse, lambda answer: [answer.error_code]
        )
        assert answer.error_code == ErrorCode.NONE
        assert [type(each) for each in active.requests] == [cluster.DescribeQuorumRequest]
    finally:
        admin.close()
        for server in (active, standby):
            server.close()
