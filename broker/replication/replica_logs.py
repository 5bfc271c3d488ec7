"""The answer to the controller's question about the ends of this broker's logs (KIP-966, part 2).

Before an unclean election the active controller compares the logs of the live replicas. A partition
whose log is not open is left out of the answer, and its replica is not considered.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.controller.state.messages import (
    ReplicaLog,
    ReplicaLogsRequest,
    ReplicaLogsResponse,
)
from quorate.quorum.rpc.channel import Handler, Reply
from quorate.quorum.rpc.hello import Peer


def replica_logs_handler(registry: PartitionRegistry, broker_epoch: Callable[[], int]) -> Handler:
    """Return the handler of ReplicaLogsRequest. `broker_epoch` returns the broker's present epoch,
    or -1 before its registration."""

    def handle(peer: Peer, request: ReplicaLogsRequest, reply: Reply) -> None:
        found = ((key, registry.get(key)) for key in request.partitions)
        reply(
            ReplicaLogsResponse(
                broker_epoch=broker_epoch(),
                logs=tuple(
                    ReplicaLog(
                        topic_id=key[0],
                        partition_id=key[1],
                        last_epoch=hosted.log.last_epoch,
                        end_offset=hosted.log.end_offset,
                        high_watermark=hosted.partition.high_watermark,
                    )
                    for key, hosted in found
                    if hosted is not None
                ),
            )
        )

    return handle
