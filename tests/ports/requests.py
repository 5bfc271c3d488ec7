"""A valid request for every API and version, and the topics, records and groups that it names.

The same requests are sent to a node in memory, by the fuzzer, and to Apache Kafka, whose responses
are compared with ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.schemas import (
    acls,
    api_versions,
    client_quotas,
    cluster,
    configs,
    describe_producers,
    elect_leaders,
    fetch,
    find_coordinator,
    group_admin,
    group_membership,
    group_offsets,
    init_producer_id,
    list_config_resources,
    list_offsets,
    log_dirs,
    metadata,
    offset_for_leader_epoch,
    produce,
    raft_voters,
    reassignments,
    sasl_authenticate,
    sasl_handshake,
    topics,
    unregister_broker,
    update_features,
    user_scram_credentials,
)
from quorate.quorum.protocol.wire import Message

READ, WRITTEN, GROWN, GROUP = "read", "written", "grown", "group"
TOPIC, BROKER = 2, 4
BROKERS, CONTROLLERS = 1, 2
TIMEOUT_MS = 10_000
WHEN_MS = 1_700_000_000_000
RECORDS = 3
SESSION_MS = 30_000


@dataclass(frozen=True, slots=True)
class World:
    """The ids that differ between two nodes in the same state."""

    broker_id: int
    topic_id: Uuid = ZERO_UUID
    """Of WRITTEN."""
    read_id: Uuid = ZERO_UUID
    """Of READ."""
    endpoint_type: int = BROKERS


Build = Callable[[World, int], Message]


def batch(number: int = 0) -> bytes:
    values = [b"value-%d-%d" % (number, index) for index in range(RECORDS)]
    records = [Record(at, WHEN_MS + at, b"key", value) for at, value in enumerate(values)]
    return bytes(build_batch(records, leader_epoch=-1))


def create(name: str, partitions: int = 1, replicas: int = 1) -> topics.CreateTopicsRequest:
    new = topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=(),
        configs=(),
    )
    return topics.CreateTopicsRequest(topics=(new,), timeout_ms=TIMEOUT_MS)


def doomed(version: int) -> str:
    return f"doomed-{version}"


def preparation() -> Iterator[tuple[Message, int]]:
    """Yield the requests that create the topics, records and the offsets topic."""
    api = APIS[ApiKey.DELETE_TOPICS]
    yield create(WRITTEN), 5
    yield create(READ, 2), 5
    yield create(GROWN), 5
    for version in range(api.min_version, api.max_version + 1):
        yield create(doomed(version)), 5
    yield produced(READ, ZERO_UUID), 9
    yield find(World(0), 3), 3


def produced(topic: str, topic_id: Uuid, number: int = 0) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(index=0, records=batch(number))
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=TIMEOUT_MS,
        topic_data=(
            produce.TopicProduceData(name=topic, topic_id=topic_id, partition_data=(data,)),
        ),
    )


def fetched(world: World, version: int) -> Message:
    return fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=0,
        topics=(
            fetch.FetchTopic(
                topic=READ,
                topic_id=world.read_id,
                partitions=tuple(
                    fetch.FetchPartition(partition=each, fetch_offset=at, partition_max_bytes=1000)
                    for each, at in ((0, 0), (1, 5), (7, 0))
                ),
            ),
        ),
    )


def listed(*wanted: tuple[int, int]) -> Build:
    """Return a builder of ListOffsets requests for pairs of partition and timestamp."""

    def build(world: World, version: int) -> Message:
        partitions = tuple(
            list_offsets.ListOffsetsPartition(partition_index=each, timestamp=when)
            for each, when in wanted
        )
        topics_wanted = tuple(
            list_offsets.ListOffsetsTopic(name=name, partitions=partitions)
            for name in (READ, "missing")
        )
        return list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics_wanted)

    return build


def described_metadata(*names: str) -> Build:
    """Return a builder of Metadata requests. Without names, it names topics by id if the version
    can."""

    def build(world: World, version: int) -> Message:
        by_name = [metadata.MetadataRequestTopic(name=each) for each in names]
        by_id = [
            metadata.MetadataRequestTopic(topic_id=each, name=None)
            for each in (world.read_id, Uuid(bytes(range(16))))
        ]
        return metadata.MetadataRequest(
            topics=tuple(by_name) if names or version < 12 else tuple(by_id),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )

    return build


def committed(world: World, version: int) -> Message:
    parts = tuple(
        group_offsets.OffsetCommitRequestPartition(
            partition_index=each, committed_offset=2, committed_metadata="here"
        )
        for each in (0, 9)
    )
    topic = group_offsets.OffsetCommitRequestTopic(
        name=READ, topic_id=world.read_id, partitions=parts
    )
    return group_offsets.OffsetCommitRequest(group_id=GROUP, member_id="", topics=(topic,))


def fetched_offsets(world: World, version: int) -> Message:
    return group_offsets.OffsetFetchRequest(
        group_id=GROUP,
        topics=(group_offsets.OffsetFetchRequestTopic(name=READ, partition_indexes=(0, 1)),),
        groups=(
            group_offsets.OffsetFetchRequestGroup(
                group_id=GROUP,
                topics=(
                    group_offsets.OffsetFetchRequestTopics(
                        name=READ, topic_id=world.read_id, partition_indexes=(0, 1)
                    ),
                ),
            ),
            group_offsets.OffsetFetchRequestGroup(group_id="nobody", topics=None),
        ),
    )


def find(world: World, version: int) -> Message:
    return find_coordinator.FindCoordinatorRequest(key=GROUP, coordinator_keys=(GROUP, "other"))


def joined(world: World, version: int) -> Message:
    return group_membership.JoinGroupRequest(
        group_id=f"joined-{version}",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id="",
        protocol_type="consumer",
        protocols=(group_membership.JoinGroupRequestProtocol(name="range", metadata=b"\x00\x01"),),
    )


def synced(world: World, version: int) -> Message:
    return group_membership.SyncGroupRequest(
        group_id=GROUP,
        generation_id=1,
        member_id="nobody",
        protocol_type="consumer",
        protocol_name="range",
        assignments=(),
    )


def deleted(world: World, version: int) -> Message:
    return topics.DeleteTopicsRequest(
        topics=(
            topics.DeleteTopicState(name=doomed(version)),
            topics.DeleteTopicState(name="missing"),
        ),
        topic_names=(doomed(version), "missing"),
        timeout_ms=TIMEOUT_MS,
    )


def described_configs(world: World, version: int) -> Message:
    resources = ((TOPIC, READ), (TOPIC, "missing"), (BROKER, str(world.broker_id)), (BROKER, ""))
    return configs.DescribeConfigsRequest(
        resources=tuple(
            configs.DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if kind == TOPIC else ("min.insync.replicas",),
            )
            for kind, name in resources
        ),
        include_synonyms=True,
    )


def altered(world: World, version: int) -> Message:
    config = configs.AlterableConfig(name="retention.ms", value="1000000")
    return configs.AlterConfigsRequest(
        resources=(
            configs.AlterConfigsResource(
                resource_type=TOPIC, resource_name=WRITTEN, configs=(config,)
            ),
        ),
        validate_only=False,
    )


def altered_incrementally(world: World, version: int) -> Message:
    config = configs.IncrementalAlterableConfig(name="flush.ms", config_operation=0, value="1000")
    return configs.IncrementalAlterConfigsRequest(
        resources=tuple(
            configs.IncrementalAlterConfigsResource(
                resource_type=TOPIC, resource_name=name, configs=(config,)
            )
            for name in (WRITTEN, "missing")
        ),
        validate_only=False,
    )


def reassigned(world: World, version: int) -> Message:
    parts = tuple(
        reassignments.ReassignablePartition(partition_index=each, replicas=(world.broker_id,))
        for each in (0, 9)
    )
    return reassignments.AlterPartitionReassignmentsRequest(
        topics=(reassignments.ReassignableTopic(name=READ, partitions=parts),)
    )


def described_partitions(world: World, version: int) -> Message:
    return cluster.DescribeTopicPartitionsRequest(
        topics=tuple(cluster.TopicRequest(name=each) for each in ("missing", READ, WRITTEN)),
        response_partition_limit=2,
    )


def updated_features(world: World, version: int) -> Message:
    """Return a request that changes nothing: it validates only, or names the present level (version
    0)."""
    update = update_features.FeatureUpdateKey(
        feature="metadata.version", max_version_level=26 if version else 27, upgrade_type=2
    )
    return update_features.UpdateFeaturesRequest(feature_updates=(update,), validate_only=True)


BUILDERS: dict[int, Build] = {
    ApiKey.PRODUCE: lambda world, version: produced(WRITTEN, world.topic_id, version),
    ApiKey.FETCH: fetched,
    ApiKey.LIST_OFFSETS: listed((0, -1), (1, -2), (9, -1)),
    ApiKey.METADATA: described_metadata(READ, "missing"),
    ApiKey.OFFSET_COMMIT: committed,
    ApiKey.OFFSET_FETCH: fetched_offsets,
    ApiKey.FIND_COORDINATOR: find,
    ApiKey.JOIN_GROUP: joined,
    ApiKey.HEARTBEAT: lambda world, version: group_membership.HeartbeatRequest(
        group_id=GROUP, generation_id=1, member_id="nobody"
    ),
    ApiKey.LEAVE_GROUP: lambda world, version: group_membership.LeaveGroupRequest(
        group_id=GROUP,
        member_id="nobody",
        members=(group_membership.MemberIdentity(member_id="nobody"),),
    ),
    ApiKey.SYNC_GROUP: synced,
    ApiKey.DESCRIBE_GROUPS: lambda world, version: group_admin.DescribeGroupsRequest(
        groups=(GROUP, "nobody"), include_authorized_operations=version >= 3
    ),
    ApiKey.LIST_GROUPS: lambda world, version: group_admin.ListGroupsRequest(),
    ApiKey.SASL_AUTHENTICATE: lambda world, version: sasl_authenticate.SaslAuthenticateRequest(
        auth_bytes=b"token"
    ),
    ApiKey.SASL_HANDSHAKE: lambda world, version: sasl_handshake.SaslHandshakeRequest(
        mechanism="PLAIN"
    ),
    ApiKey.API_VERSIONS: lambda world, version: api_versions.ApiVersionsRequest(
        client_software_name="test", client_software_version="1.0"
    ),
    ApiKey.CREATE_TOPICS: lambda world, version: create(f"made-{version}", 2),
    ApiKey.DELETE_TOPICS: deleted,
    ApiKey.DELETE_RECORDS: lambda world, version: topics.DeleteRecordsRequest(
        topics=(
            topics.DeleteRecordsTopic(
                name=WRITTEN,
                partitions=tuple(
                    topics.DeleteRecordsPartition(partition_index=each, offset=version)
                    for each in (0, 9)
                ),
            ),
        ),
        timeout_ms=TIMEOUT_MS,
    ),
    ApiKey.INIT_PRODUCER_ID: lambda world, version: init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=TIMEOUT_MS
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        lambda world, version: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=(
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=READ,
                    partitions=tuple(
                        offset_for_leader_epoch.OffsetForLeaderPartition(
                            partition=each, leader_epoch=epoch
                        )
                        for each, epoch in ((0, 0), (1, 5), (9, 0))
                    ),
                ),
            )
        )
    ),
    ApiKey.DESCRIBE_CONFIGS: described_configs,
    ApiKey.ALTER_CONFIGS: altered,
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda world, version: log_dirs.AlterReplicaLogDirsRequest(
        dirs=(
            log_dirs.AlterReplicaLogDir(
                path="/nowhere",
                topics=(log_dirs.AlterReplicaLogDirTopic(name=READ, partitions=(0, 9)),),
            ),
        )
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda world, version: log_dirs.DescribeLogDirsRequest(
        topics=(log_dirs.DescribableLogDirTopic(topic=READ, partitions=(0, 1)),)
    ),
    ApiKey.CREATE_PARTITIONS: lambda world, version: topics.CreatePartitionsRequest(
        topics=(topics.CreatePartitionsTopic(name=GROWN, count=2 + version, assignments=None),),
        timeout_ms=TIMEOUT_MS,
        validate_only=False,
    ),
    ApiKey.DELETE_GROUPS: lambda world, version: group_admin.DeleteGroupsRequest(
        groups_names=("nobody",)
    ),
    ApiKey.ELECT_LEADERS: lambda world, version: elect_leaders.ElectLeadersRequest(
        topic_partitions=(elect_leaders.TopicPartitions(topic=READ, partitions=(0, 9)),)
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: altered_incrementally,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: reassigned,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        lambda world, version: reassignments.ListPartitionReassignmentsRequest(topics=None)
    ),
    ApiKey.OFFSET_DELETE: lambda world, version: group_offsets.OffsetDeleteRequest(
        group_id=GROUP,
        topics=(
            group_offsets.OffsetDeleteRequestTopic(
                name=READ,
                partitions=(group_offsets.OffsetDeleteRequestPartition(partition_index=1),),
            ),
        ),
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda world, version: client_quotas.DescribeClientQuotasRequest(
        components=(), strict=False
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda world, version: client_quotas.AlterClientQuotasRequest(
        entries=(
            client_quotas.AlterationData(
                entity=(client_quotas.AlteredEntityData(entity_type="user", entity_name="u"),),
                ops=(
                    client_quotas.OpData(key="consumer_byte_rate", value=1e9, remove=False),
                    client_quotas.OpData(key="request_percentage", value=0.0, remove=True),
                ),
            ),
        ),
        validate_only=False,
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (
        lambda world, version: user_scram_credentials.DescribeUserScramCredentialsRequest(
            users=tuple(user_scram_credentials.UserName(name=each) for each in ("u", "v", "v"))
        )
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        lambda world, version: user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=(user_scram_credentials.ScramCredentialDeletion(name="v", mechanism=2),),
            upsertions=(
                user_scram_credentials.ScramCredentialUpsertion(
                    name="u",
                    mechanism=1,
                    iterations=4096,
                    salt=b"salt",
                    salted_password=b"salted",
                ),
            ),
        )
    ),
    ApiKey.DESCRIBE_ACLS: lambda world, version: acls.DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter=None,
        principal_filter="User:u",
        host_filter=None,
        operation=1,
        permission_type=1,
    ),
    ApiKey.CREATE_ACLS: lambda world, version: acls.CreateAclsRequest(
        creations=(
            acls.AclCreation(
                resource_type=2,
                resource_name=WRITTEN,
                principal="User:u",
                host="*",
                operation=3,
                permission_type=3,
            ),
        )
    ),
    ApiKey.DELETE_ACLS: lambda world, version: acls.DeleteAclsRequest(
        filters=(
            acls.DeleteAclsFilter(
                resource_type_filter=2,
                resource_name_filter=WRITTEN,
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            ),
        )
    ),
    ApiKey.DESCRIBE_QUORUM: lambda world, version: cluster.DescribeQuorumRequest(
        topics=(
            cluster.QuorumTopic(
                topic_name="__cluster_metadata",
                partitions=(cluster.QuorumPartition(partition_index=0),),
            ),
        )
    ),
    ApiKey.UPDATE_FEATURES: updated_features,
    ApiKey.DESCRIBE_CLUSTER: lambda world, version: cluster.DescribeClusterRequest(
        include_cluster_authorized_operations=True,
        endpoint_type=world.endpoint_type if version else BROKERS,
    ),
    ApiKey.DESCRIBE_PRODUCERS: lambda world, version: describe_producers.DescribeProducersRequest(
        topics=(describe_producers.TopicRequest(name=READ, partition_indexes=(0, 9)),)
    ),
    ApiKey.UNREGISTER_BROKER: lambda world, version: unregister_broker.UnregisterBrokerRequest(
        broker_id=77
    ),
    ApiKey.LIST_CONFIG_RESOURCES: (
        lambda world, version: list_config_resources.ListConfigResourcesRequest(
            resource_types=(TOPIC, BROKER, 8, 16, 32)
        )
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: described_partitions,
    ApiKey.ADD_RAFT_VOTER: lambda world, version: raft_voters.AddRaftVoterRequest(
        cluster_id="another",
        timeout_ms=TIMEOUT_MS,
        voter_id=9,
        voter_directory_id=Uuid(bytes(range(16))),
        listeners=(raft_voters.RaftVoterListener(name="CONTROLLER", host="h", port=1),),
    ),
    ApiKey.REMOVE_RAFT_VOTER: lambda world, version: raft_voters.RemoveRaftVoterRequest(
        cluster_id="another", voter_id=9, voter_directory_id=Uuid(bytes(range(16)))
    ),
}

MORE: tuple[tuple[int, Build], ...] = (
    (ApiKey.LIST_OFFSETS, listed((0, -2), (1, WHEN_MS))),
    (ApiKey.LIST_OFFSETS, listed((0, WHEN_MS + 1))),
    (ApiKey.LIST_OFFSETS, listed((0, WHEN_MS + 99))),
    (ApiKey.LIST_OFFSETS, listed((0, -3), (1, -3))),
    (ApiKey.LIST_OFFSETS, listed((0, -1), (0, -2), (1, -1))),
    (ApiKey.METADATA, described_metadata()),
    (
        ApiKey.SYNC_GROUP,
        lambda world, version: group_membership.SyncGroupRequest(
            group_id=GROUP, generation_id=1, member_id="nobody", assignments=()
        ),
    ),
    (
        ApiKey.UPDATE_FEATURES,
        lambda world, version: update_features.UpdateFeaturesRequest(
            feature_updates=(
                update_features.FeatureUpdateKey(feature="metadata.version", max_version_level=28),
            ),
        ),
    ),
    (
        ApiKey.LIST_CONFIG_RESOURCES,
        lambda world, version: list_config_resources.ListConfigResourcesRequest(
            resource_types=(99,)
        ),
    ),
    (
        ApiKey.LIST_CONFIG_RESOURCES,
        lambda world, version: list_config_resources.ListConfigResourcesRequest(),
    ),
)
"""Other things that can be asked."""
