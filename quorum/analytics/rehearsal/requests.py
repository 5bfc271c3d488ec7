"""The messages that the brokers of a rehearsal send to the controller."""

from __future__ import annotations

from quorate.quorum.analytics.rehearsal.virtual_controller import CLUSTER_ID
from quorate.quorum.controller.state.messages import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    IsrChange,
    ReplicaLog,
    ReplicaLogsResponse,
)
from quorate.quorum.controller.state.partition_index import PartitionKey
from quorate.quorum.controller.state.result import AskReplicaLogs
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import METADATA_VERSION, Broker, MetadataImage
from quorate.quorum.metadata.records import FeatureRange
from quorate.quorum.seams import Random

UUID_BITS = 128
LOG_ENDS = 1_000
"""The number of different log ends from which a seed draws."""
ADDRESS = ("rehearsal", 1)
"""The address of all brokers. Nothing connects to it."""


def registration(
    broker: Broker, image: MetadataImage, clean_epoch: int, random: Random
) -> BrokerRegistrationRequest:
    """Return the registration of the next process of the broker, with what it registered before.

    `clean_epoch` is its epoch at a controlled shutdown, or -1. The process supports the finalized
    features, even if the log does not say that."""
    levels = {METADATA_VERSION: 1, **image.features}
    known = {each.name: each for each in broker.features}
    supported = [
        FeatureRange(
            name=name,
            min_supported_version=min(
                level, known[name].min_supported_version if name in known else level
            ),
            max_supported_version=max(
                level, known[name].max_supported_version if name in known else level
            ),
        )
        for name, level in sorted(levels.items())
    ]
    return BrokerRegistrationRequest(
        broker_id=broker.id,
        cluster_id=CLUSTER_ID,
        incarnation_id=_uuid(random),
        endpoints=broker.endpoints,
        features=tuple(supported),
        rack=broker.rack,
        log_dirs=broker.log_dirs or (_uuid(random),),
        previous_broker_epoch=clean_epoch,
        replication_address=ADDRESS,
    )


def heartbeat(broker: Broker, offset: int, *, want_shut_down: bool) -> BrokerHeartbeatRequest:
    """Return the heartbeat of a broker that has replayed the metadata up to `offset`."""
    return BrokerHeartbeatRequest(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        metadata_offset=offset,
        want_fence=False,
        want_shut_down=want_shut_down,
    )


def proposal(
    image: MetadataImage, key: PartitionKey, isr: tuple[int, ...], cause: Cause, min_isr: int
) -> AlterPartitionRequest:
    """Return the request in which the leader of a partition proposes an ISR."""
    partition = image.topics[key[0]].partitions[key[1]]
    change = IsrChange(
        topic_id=key[0],
        partition_id=key[1],
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple((each, image.brokers[each].epoch) for each in isr),
        leader_recovery_state=0,
        cause=cause,
        min_insync_replicas=min_isr,
    )
    leader = image.brokers[partition.leader]
    return AlterPartitionRequest(broker_id=leader.id, broker_epoch=leader.epoch, changes=(change,))


def log_ends(asked: AskReplicaLogs, random: Random) -> ReplicaLogsResponse:
    """Return a broker's answer to a question: log ends that the seed chooses."""
    logs = tuple(
        ReplicaLog(
            topic_id=topic_id,
            partition_id=partition_id,
            last_epoch=0,
            end_offset=random.randrange(0, LOG_ENDS),
            high_watermark=0,
        )
        for topic_id, partition_id in asked.partitions
    )
    return ReplicaLogsResponse(broker_epoch=asked.broker_epoch, logs=logs)


def _uuid(random: Random) -> Uuid:
    """Return a random id that is not one of Kafka's reserved ids, which are small numbers."""
    return Uuid(
        (random.getrandbits(UUID_BITS) | 1 << UUID_BITS - 1).to_bytes(UUID_BITS // 8, "big")
    )
