"""The client port of one listener: which handler serves which API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.broker.groups.coordinator import GroupCoordinator
from quorate.broker.kafka.auto_create import AutoCreation, internal_topics
from quorate.broker.kafka.cluster import ClusterHandler
from quorate.broker.kafka.fetch import FetchHandler
from quorate.broker.kafka.find_coordinator import FindCoordinatorHandler
from quorate.broker.kafka.forwarding import FORWARDED_API_KEYS, Forwarder, Forwarding
from quorate.broker.kafka.group_admin import GroupAdminHandler
from quorate.broker.kafka.group_membership import GroupMembershipHandler
from quorate.broker.kafka.group_offsets import GroupOffsetsHandler
from quorate.broker.kafka.list_config_resources import ListConfigResourcesHandler
from quorate.broker.kafka.list_offsets import ListOffsetsHandler
from quorate.broker.kafka.log_lookups import LogLookups
from quorate.broker.kafka.logs import LogsHandler, no_quotas
from quorate.broker.kafka.metadata import MetadataHandler
from quorate.broker.kafka.produce import ProduceHandler
from quorate.broker.kafka.producer_ids import ProducerIds
from quorate.broker.kafka.replicas import Replicas, TopicDirectory
from quorate.broker.kafka.suspects import Suspects
from quorate.config.node_config import NodeConfig
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.describe_configs import DescribeConfigsHandler
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.kafka.api_versions import ApiVersionsHandler, Features
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionQuotas
from quorate.quorum.rpc.kafka.node_resources import NodeResources
from quorate.quorum.rpc.kafka.sasl import no_sasl
from quorate.quorum.rpc.kafka.server import Handler, KafkaServer, RawHandler, ServerSettings
from quorate.quorum.seams import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the handlers stand on."""

    config: NodeConfig
    clock: Clock
    cluster_id: str
    image: Callable[[], MetadataImage]
    replicas: Replicas
    forwarder: Forwarder
    producer_ids: ProducerIds
    suspects: Suspects
    groups: GroupCoordinator
    connections: ConnectionQuotas
    resources: NodeResources
    features: Callable[[], Features]
    lookups: LogLookups = field(default_factory=LogLookups)


Handlers = dict[int, Handler]


def client_port(services: Services, listener: str) -> KafkaServer:
    config, image = services.config, services.image
    topics = TopicDirectory(image, listener)
    creation = AutoCreation(services.forwarder, internal_topics(config))
    metadata = MetadataHandler(
        cluster_id=services.cluster_id,
        listener=listener,
        image=image,
        suspects=services.suspects,
        auto_create=creation.create if config["auto.create.topics.enable"] else None,
    )
    cluster = ClusterHandler(cluster_id=services.cluster_id, listener=listener, image=image)
    offsets = ListOffsetsHandler(services.replicas, services.lookups)
    logs = LogsHandler(services.replicas, config.log_dir)
    coordinators = FindCoordinatorHandler(
        listener=listener, image=image, creation=creation, suspects=services.suspects
    )
    handlers: Handlers = {
        ApiKey.METADATA: metadata.handle,
        ApiKey.LIST_OFFSETS: offsets.list_offsets,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.epoch_end_offsets,
        ApiKey.INIT_PRODUCER_ID: services.producer_ids.handle,
        ApiKey.DESCRIBE_CONFIGS: DescribeConfigsHandler(node=config, image=image).handle,
        ApiKey.DESCRIBE_CLUSTER: cluster.describe_cluster,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: cluster.describe_topic_partitions,
        ApiKey.FIND_COORDINATOR: coordinators.handle,
        ApiKey.DELETE_RECORDS: logs.delete_records,
        ApiKey.DESCRIBE_LOG_DIRS: logs.describe_log_dirs,
        ApiKey.DESCRIBE_PRODUCERS: logs.describe_producers,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: no_quotas,
        ApiKey.SASL_HANDSHAKE: no_sasl,
        ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesHandler(image).handle,
        **group_handlers(services),
    }
    raw: dict[int, RawHandler] = {
        ApiKey.PRODUCE: ProduceHandler(services.replicas, topics).handle,
        ApiKey.FETCH: FetchHandler(services.replicas, topics, config["fetch.max.bytes"]).handle,
    }
    forwarding = Forwarding(services.forwarder)
    for key in FORWARDED_API_KEYS:
        raw[key] = forwarding.handle

    api_keys = (*handlers, *raw, ApiKey.API_VERSIONS)
    handlers[ApiKey.API_VERSIONS] = ApiVersionsHandler(api_keys, services.features).handle
    return KafkaServer(
        handlers,
        services.clock,
        raw_handlers=raw,
        settings=ServerSettings(max_request_bytes=config["socket.request.max.bytes"]),
        connections=services.connections,
        resources=services.resources,
    )


def group_handlers(services: Services) -> Handlers:
    members = GroupMembershipHandler(services.groups)
    offsets = GroupOffsetsHandler(services.groups, services.image)
    admin = GroupAdminHandler(services.groups)
    return {
        ApiKey.JOIN_GROUP: members.join,
        ApiKey.SYNC_GROUP: members.sync,
        ApiKey.HEARTBEAT: members.heartbeat,
        ApiKey.LEAVE_GROUP: members.leave,
        ApiKey.OFFSET_COMMIT: offsets.commit,
        ApiKey.OFFSET_FETCH: offsets.fetch,
        ApiKey.OFFSET_DELETE: offsets.delete,
        ApiKey.LIST_GROUPS: admin.list,
        ApiKey.DESCRIBE_GROUPS: admin.describe,
        ApiKey.DELETE_GROUPS: admin.delete,
    }
