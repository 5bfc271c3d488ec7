"""Builds the server of a client listener: maps each API to its handler."""

from __future__ import annotations

from quorate.broker.kafka.admin.alter_configs import AlterConfigsHandler
from quorate.broker.kafka.admin.alter_replica_log_dirs import AlterReplicaLogDirsHandler
from quorate.broker.kafka.admin.describe_log_dirs import DescribeLogDirsHandler
from quorate.broker.kafka.cluster.auto_create import AutoCreation, internal_topics, topic_of_clients
from quorate.broker.kafka.cluster.client_quotas import DescribeClientQuotasHandler
from quorate.broker.kafka.cluster.describe_cluster import DescribeClusterHandler
from quorate.broker.kafka.cluster.describe_quorum import DescribeQuorumHandler
from quorate.broker.kafka.cluster.describe_scram import DescribeScramHandler
from quorate.broker.kafka.cluster.describe_topic_partitions import DescribeTopicPartitionsHandler
from quorate.broker.kafka.cluster.list_config_resources import ListConfigResourcesHandler
from quorate.broker.kafka.cluster.metadata import MetadataHandler
from quorate.broker.kafka.groups.find_coordinator import FindCoordinatorHandler
from quorate.broker.kafka.groups.group_admin import GroupAdminHandler
from quorate.broker.kafka.groups.group_membership import GroupMembershipHandler
from quorate.broker.kafka.groups.offset_commit import OffsetCommitHandler
from quorate.broker.kafka.groups.offset_delete import OffsetDeleteHandler
from quorate.broker.kafka.groups.offset_fetch import OffsetFetchHandler
from quorate.broker.kafka.records.authorized_records import checked
from quorate.broker.kafka.records.delete_records import DeleteRecordsHandler
from quorate.broker.kafka.records.describe_producers import DescribeProducersHandler
from quorate.broker.kafka.records.fetch import FetchHandler
from quorate.broker.kafka.records.list_offsets import ListOffsetsHandler
from quorate.broker.kafka.records.metered import MeteredFetchHandler, MeteredProduceHandler
from quorate.broker.kafka.records.produce import ProduceHandler
from quorate.broker.kafka.sasl_listener import require_authentication
from quorate.broker.kafka.services import Services
from quorate.broker.kafka.shared.forwarding import FORWARDED_API_KEYS, Forwarding
from quorate.broker.kafka.shared.replicas import TopicDirectory
from quorate.quorum.authorization.apis import BROKER_CHECKS
from quorate.quorum.authorization.metadata_checks import metadata_without_creation
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.node.controller.describe_configs import DescribeConfigsHandler
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.kafka.acls import ACL_HANDLERS
from quorate.quorum.rpc.kafka.api_versions import ApiVersionsHandler
from quorate.quorum.rpc.kafka.authorization import PortAuthorizer
from quorate.quorum.rpc.kafka.clear_credentials import ClearCredentials
from quorate.quorum.rpc.kafka.describe_acls import DescribeAclsHandler
from quorate.quorum.rpc.kafka.metering import Metering
from quorate.quorum.rpc.kafka.sasl import sasl_handlers
from quorate.quorum.rpc.kafka.server import Handler, KafkaServer, RawHandler, ServerSettings

Handlers = dict[int, Handler]


def client_port(services: Services, listener: str) -> KafkaServer:
    """Return the server of one listener, with a handler for each API that a broker offers.

    ApiVersions lists exactly these APIs.
    """
    topics = TopicDirectory(services.image, listener)
    handlers: Handlers = {
        **metadata_handlers(services, listener),
        **log_handlers(services),
        **group_handlers(services),
        ApiKey.INIT_PRODUCER_ID: services.producer_ids.handle,
        **sasl_handlers(services.clock),
        **ACL_HANDLERS,
    }
    config, replicas = services.config, services.replicas
    produce = ProduceHandler(replicas, topics)
    fetch = FetchHandler(replicas, topics, config["fetch.max.bytes"])
    authorizer = services.authorizer
    raw: dict[int, RawHandler] = records_handlers(authorizer, produce, fetch)
    forwarding = Forwarding(
        services.forwarder,
        config["controller.socket.timeout.ms"],
        listener=listener,
        must_check=None if authorizer is None else authorizer.controller_must_check,
    )
    for key in FORWARDED_API_KEYS:
        raw[key] = forwarding.handle
    permits = None if authorizer is None else authorizer.permits
    alter_configs = AlterConfigsHandler(
        node=config,
        image=services.image,
        forwarding=forwarding,
        try_tls=services.try_tls,
        permits=permits,
    ).handle
    raw[ApiKey.DESCRIBE_QUORUM] = DescribeQuorumHandler(
        lost=services.lost_quorum, forwarding=forwarding, permits=permits
    ).handle
    credentials = ClearCredentials(services.clock)
    raw[ApiKey.ALTER_USER_SCRAM_CREDENTIALS] = credentials.noted(forwarding.handle)
    raw[ApiKey.ALTER_CONFIGS] = raw[ApiKey.INCREMENTAL_ALTER_CONFIGS] = alter_configs
    if authorizer is None:
        del raw[ApiKey.CREATE_ACLS], raw[ApiKey.DELETE_ACLS]
    else:
        del handlers[ApiKey.CREATE_ACLS], handlers[ApiKey.DELETE_ACLS]
        handlers[ApiKey.DESCRIBE_ACLS] = DescribeAclsHandler(services.image).handle
        checks = dict(BROKER_CHECKS)
        if not config["auto.create.topics.enable"]:
            checks[ApiKey.METADATA] = metadata_without_creation
        handlers = authorizer.guarded(handlers, checks)

    api_keys = (*handlers, *raw, ApiKey.API_VERSIONS)
    handlers[ApiKey.API_VERSIONS] = ApiVersionsHandler(api_keys, services.features).handle
    server = KafkaServer(
        handlers,
        services.clock,
        raw_handlers=raw,
        settings=ServerSettings(max_request_bytes=config["socket.request.max.bytes"]),
        quotas=services.connections,
        resources=services.resources,
    )
    clients = services.quotas.clients
    metered = records_handlers(
        authorizer,
        MeteredProduceHandler(replicas, topics),
        MeteredFetchHandler(replicas, topics, config["fetch.max.bytes"], clients),
    )
    services.quotas.add(Metering(server, clients, metered))
    require_authentication(server, services, listener)
    return server


def records_handlers(
    authorizer: PortAuthorizer | None, produce: ProduceHandler, fetch: FetchHandler
) -> dict[int, RawHandler]:
    """Return the handlers of Produce and Fetch, behind their checks if there is an authorizer."""
    if authorizer is None:
        return {ApiKey.PRODUCE: produce.handle, ApiKey.FETCH: fetch.handle}
    return {
        ApiKey.PRODUCE: checked(produce, authorizer.permits),
        ApiKey.FETCH: checked(fetch, authorizer.permits),
    }


def metadata_handlers(services: Services, listener: str) -> Handlers:
    """Return the handlers that answer from the committed metadata image."""
    config, image = services.config, services.image
    cluster_id = services.cluster_id
    creation = AutoCreation(
        services.forwarder,
        topic_of_clients(config),
        internal_topics(config),
        config["request.timeout.ms"],
    )
    metadata = MetadataHandler(
        cluster_id=cluster_id,
        listener=listener,
        image=image,
        suspects=services.suspects,
        auto_create=creation.create if config["auto.create.topics.enable"] else None,
    )
    cluster = DescribeClusterHandler(cluster_id=cluster_id, listener=listener, image=image)
    coordinators = FindCoordinatorHandler(
        listener=listener,
        image=image,
        creation=creation,
        suspects=services.suspects,
        refusals=LogLimit(services.clock),
    )
    topics = DescribeTopicPartitionsHandler(
        listener=listener,
        image=image,
        max_partitions=config["max.request.partition.size.limit"],
    )
    return {
        ApiKey.METADATA: metadata.handle,
        ApiKey.DESCRIBE_CONFIGS: DescribeConfigsHandler(node=config, image=image).handle,
        ApiKey.DESCRIBE_CLUSTER: cluster.handle,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: topics.handle,
        ApiKey.FIND_COORDINATOR: coordinators.handle,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: DescribeClientQuotasHandler(image).handle,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DescribeScramHandler(image).handle,
        ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesHandler(image).handle,
    }


def log_handlers(services: Services) -> Handlers:
    """Return the handlers that answer from the replicas on this broker, except Produce and
    Fetch."""
    replicas = services.replicas
    offsets = ListOffsetsHandler(replicas, services.lookups)
    log_dirs = DescribeLogDirsHandler(replicas)
    return {
        ApiKey.LIST_OFFSETS: offsets.list_offsets,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.epoch_end_offsets,
        ApiKey.DELETE_RECORDS: DeleteRecordsHandler(replicas).handle,
        ApiKey.ALTER_REPLICA_LOG_DIRS: AlterReplicaLogDirsHandler(replicas).handle,
        ApiKey.DESCRIBE_LOG_DIRS: log_dirs.handle,
        ApiKey.DESCRIBE_PRODUCERS: DescribeProducersHandler(replicas).handle,
    }


def group_handlers(services: Services) -> Handlers:
    """Return the handlers that the group coordinator serves."""
    groups, image = services.groups, services.image
    members = GroupMembershipHandler(groups)
    admin = GroupAdminHandler(groups)
    return {
        ApiKey.JOIN_GROUP: members.join,
        ApiKey.SYNC_GROUP: members.sync,
        ApiKey.HEARTBEAT: members.heartbeat,
        ApiKey.LEAVE_GROUP: members.leave,
        ApiKey.OFFSET_COMMIT: OffsetCommitHandler(groups, image).handle,
        ApiKey.OFFSET_FETCH: OffsetFetchHandler(groups, image).handle,
        ApiKey.OFFSET_DELETE: OffsetDeleteHandler(groups, image).handle,
        ApiKey.LIST_GROUPS: admin.list,
        ApiKey.DESCRIBE_GROUPS: admin.describe,
        ApiKey.DELETE_GROUPS: admin.delete,
    }
