"""The description of a cluster: its id, its active controller and its nodes."""

from __future__ import annotations

from quorate.cli.client.admin import Admin, check
from quorate.quorum.protocol.schemas.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def describe_cluster(admin: Admin, *, fenced: bool = False) -> DescribeClusterResponse:
    """Return the cluster's description from a broker or a controller, as `admin` is connected.

    With `fenced` the response includes fenced brokers if the node supports that. Raise Refused on
    an error."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False,
        endpoint_type=admin.endpoint_type,
        include_fenced_brokers=fenced,
    )
    answer = admin.ask(request, DescribeClusterResponse, lambda answer: [answer.error_code])
    check(answer.error_code, answer.error_message)
    return answer
