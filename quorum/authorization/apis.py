"""The permissions that each API needs: one row for each API of brokers and controllers.

The brokers check the requests that they answer. The active controller checks the requests that only
it can decide, on its latest image, also if a broker forwards them. Produce and Fetch have no row,
because their requests are not decoded here. `broker/kafka/records/authorized_records.py` checks
them.

| column | meaning |
|---|---|
| API | the request |
| check | the operation and the resource, or the function that checks several |
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.quorum.authorization import group_checks, metadata_checks, topic_checks
from quorate.quorum.authorization.check import Check, Checked, free, on_cluster, on_group
from quorate.quorum.authorization.permits import DENIED, Permits
from quorate.quorum.authorization.refusals import (
    no_credentials,
    no_log_dirs,
    no_moves,
    no_producer_id,
    no_quotas,
)
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.acl_codes import Operation, ResourceType
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.schemas.configs import (
    AlterConfigsResourceResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsResourceResponse,
)
from quorate.quorum.protocol.schemas.init_producer_id import InitProducerIdRequest


def init_producer_id(
    permits: Permits, request: InitProducerIdRequest, version: int
) -> IncrementalWork[Checked]:
    """Require WRITE on the transactional id. Without one, require IDEMPOTENT_WRITE on the cluster
    or WRITE on any topic (KIP-679)."""
    name = request.transactional_id
    if name is not None:
        kind = ResourceType.TRANSACTIONAL_ID
        if permits.allows(Operation.WRITE, kind, name):
            return Checked(request)
        return Checked(request, answer=no_producer_id(DENIED[kind]))
    if permits.cluster(Operation.IDEMPOTENT_WRITE, audited=False):
        return Checked(request)
    if (yield from permits.any_topic(Operation.WRITE)):
        return Checked(request)
    permits.cluster(Operation.IDEMPOTENT_WRITE)  # for the audit log
    return Checked(request, answer=no_producer_id(DENIED[ResourceType.CLUSTER]))


describe_configs = topic_checks.on_configs(
    Operation.DESCRIBE_CONFIGS, "results", DescribeConfigsResult, configs=()
)
alter_configs = topic_checks.on_configs(
    Operation.ALTER_CONFIGS, "responses", AlterConfigsResourceResponse
)
incremental_alter_configs = topic_checks.on_configs(
    Operation.ALTER_CONFIGS, "responses", IncrementalAlterConfigsResourceResponse
)

BROKER_CHECKS: Mapping[int, Check] = {
    ApiKey.API_VERSIONS: free,
    ApiKey.SASL_HANDSHAKE: free,
    ApiKey.SASL_AUTHENTICATE: free,
    ApiKey.METADATA: metadata_checks.metadata,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: metadata_checks.describe_topic_partitions,
    ApiKey.DESCRIBE_CLUSTER: metadata_checks.describe_cluster,
    ApiKey.LIST_OFFSETS: topic_checks.list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: topic_checks.offset_for_leader_epoch,
    ApiKey.DELETE_RECORDS: topic_checks.delete_records,
    ApiKey.DESCRIBE_PRODUCERS: topic_checks.describe_producers,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.FIND_COORDINATOR: group_checks.find_coordinator,
    ApiKey.JOIN_GROUP: on_group(Operation.READ),
    ApiKey.SYNC_GROUP: on_group(Operation.READ),
    ApiKey.HEARTBEAT: on_group(Operation.READ),
    ApiKey.LEAVE_GROUP: on_group(Operation.READ),
    ApiKey.OFFSET_COMMIT: group_checks.offset_commit,
    ApiKey.OFFSET_DELETE: group_checks.offset_delete,
    ApiKey.OFFSET_FETCH: group_checks.offset_fetch,
    ApiKey.LIST_GROUPS: group_checks.list_groups,
    ApiKey.DESCRIBE_GROUPS: group_checks.describe_groups,
    ApiKey.DELETE_GROUPS: group_checks.delete_groups,
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(Operation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: on_cluster(Operation.DESCRIBE_CONFIGS, no_quotas),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(Operation.DESCRIBE, no_credentials),
    ApiKey.DESCRIBE_ACLS: on_cluster(Operation.DESCRIBE),
    ApiKey.DESCRIBE_LOG_DIRS: on_cluster(Operation.DESCRIBE, no_log_dirs),
    ApiKey.ALTER_REPLICA_LOG_DIRS: on_cluster(Operation.ALTER, no_moves),
}
"""The checks of a broker for the requests that it answers."""

FORWARDED_CHECKS: Mapping[int, Check] = {
    ApiKey.CREATE_TOPICS: topic_checks.create_topics,
    ApiKey.DELETE_TOPICS: topic_checks.delete_topics,
    ApiKey.CREATE_PARTITIONS: topic_checks.create_partitions,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.ALTER_CLIENT_QUOTAS: on_cluster(Operation.ALTER_CONFIGS),
    ApiKey.CREATE_ACLS: on_cluster(Operation.ALTER),
    ApiKey.DELETE_ACLS: on_cluster(Operation.ALTER),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: on_cluster(Operation.ALTER),
    ApiKey.ELECT_LEADERS: on_cluster(Operation.ALTER),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: on_cluster(Operation.ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: on_cluster(Operation.DESCRIBE),
    ApiKey.UNREGISTER_BROKER: on_cluster(Operation.ALTER),
    ApiKey.UPDATE_FEATURES: on_cluster(Operation.ALTER),
    ApiKey.ADD_RAFT_VOTER: on_cluster(Operation.ALTER),
    ApiKey.REMOVE_RAFT_VOTER: on_cluster(Operation.ALTER),
    ApiKey.DESCRIBE_QUORUM: on_cluster(Operation.DESCRIBE),
}
"""The checks of the active controller for the requests that it decides."""

CONTROLLER_CHECKS: Mapping[int, Check] = {
    ApiKey.API_VERSIONS: free,
    ApiKey.SASL_HANDSHAKE: free,
    ApiKey.SASL_AUTHENTICATE: free,
    ApiKey.DESCRIBE_CLUSTER: on_cluster(Operation.ALTER),
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.DESCRIBE_ACLS: on_cluster(Operation.DESCRIBE),
}
"""The checks of a controller for the requests of its clients that it answers from its own state."""
