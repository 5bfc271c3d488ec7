"""Handles DescribeCluster (API key 60): the brokers of the cluster (KIP-700, KIP-919)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.ids import NO_NODE
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.authorized_operations import CLUSTER_OPERATIONS, NOT_REQUESTED
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from quorate.quorum.rpc.kafka.server import RequestContext

BROKERS, CONTROLLERS = 1, 2
"""The endpoint types (KIP-919)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterHandler:
    """Handles DescribeCluster on one listener of a broker, from the broker's committed image."""

    cluster_id: str
    listener: str
    image: Callable[[], MetadataImage]

    def handle(self, context: RequestContext, request: DescribeClusterRequest) -> None:
        """Respond with the brokers that have this listener.

        Fenced brokers are listed only if the request includes them. The controller id is the lowest
        id of an unfenced broker, because clients send admin requests there, or -1. If the request
        asks for controllers, respond with MISMATCHED_ENDPOINT_TYPE. An unknown type gets
        UNSUPPORTED_ENDPOINT_TYPE.
        """
        if request.endpoint_type != BROKERS:
            error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            text = f"Unsupported endpoint type {request.endpoint_type}"
            if request.endpoint_type == CONTROLLERS:
                error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
                text = (
                    "this is a broker: controllers are described by controllers "
                    "(--bootstrap-controller)"
                )
            context.respond(
                DescribeClusterResponse(
                    error_code=error, error_message=text, cluster_id=self.cluster_id, brokers=()
                )
            )
            return
        image = self.image()
        brokers = []
        for broker_id in image.broker_ids():
            broker = image.brokers[broker_id]
            endpoint = broker.endpoint(self.listener)
            if endpoint is None or (broker.fenced and not request.include_fenced_brokers):
                continue
            brokers.append(
                DescribeClusterBroker(
                    broker_id=broker_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
        alive = [each.broker_id for each in brokers if not each.is_fenced]
        context.respond(
            DescribeClusterResponse(
                cluster_id=self.cluster_id,
                controller_id=alive[0] if alive else NO_NODE,
                brokers=tuple(brokers),
                cluster_authorized_operations=CLUSTER_OPERATIONS
                if request.include_cluster_authorized_operations
                else NOT_REQUESTED,
            )
        )
