"""The rule of each request of the active controller, and the requests under a quota."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.quorum.controller.alter_partition import alter_partition
from quorate.quorum.controller.client_quotas import alter_client_quotas
from quorate.quorum.controller.configs import alter_configs, incremental_alter_configs
from quorate.quorum.controller.context import Context
from quorate.quorum.controller.controller_registration import register_controller
from quorate.quorum.controller.elect_leaders import elect_leaders
from quorate.quorum.controller.heartbeat import heartbeat
from quorate.quorum.controller.log_directories import assign_replicas_to_dirs
from quorate.quorum.controller.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
from quorate.quorum.controller.partitions import create_partitions
from quorate.quorum.controller.producer_ids import allocate_producer_ids
from quorate.quorum.controller.reassign import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from quorate.quorum.controller.registration import register_broker
from quorate.quorum.controller.result import (
    Result,
)
from quorate.quorum.controller.topics import create_topics, delete_topics
from quorate.quorum.controller.unregister import unregister_broker
from quorate.quorum.controller.update_features import update_features
from quorate.quorum.protocol.schemas.client_quotas import AlterClientQuotasRequest
from quorate.quorum.protocol.schemas.configs import (
    AlterConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from quorate.quorum.protocol.schemas.elect_leaders import ElectLeadersRequest
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
)
from quorate.quorum.protocol.schemas.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from quorate.quorum.protocol.schemas.update_features import UpdateFeaturesRequest

RULES: dict[type, Callable[[Context, Any], Result]] = {
    BrokerRegistrationRequest: register_broker,
    BrokerHeartbeatRequest: heartbeat,
    ControllerRegistrationRequest: register_controller,
    AlterPartitionRequest: alter_partition,
    AllocateProducerIdsRequest: allocate_producer_ids,
    AssignReplicasToDirsRequest: assign_replicas_to_dirs,
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    IncrementalAlterConfigsRequest: incremental_alter_configs,
    AlterConfigsRequest: alter_configs,
    ElectLeadersRequest: elect_leaders,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments,
    ListPartitionReassignmentsRequest: list_partition_reassignments,
    UnregisterBrokerRequest: unregister_broker,
    UpdateFeaturesRequest: update_features,
    AlterClientQuotasRequest: alter_client_quotas,
}
"""The rule of each request class. The request classes of clients are Kafka's schemas."""
STRICT_SINCE: dict[type, int] = {
    CreateTopicsRequest: 6,
    CreatePartitionsRequest: 3,
    DeleteTopicsRequest: 5,
}
"""The requests that the quota controller_mutation_rate bounds, and the first version whose clients
know its error (KIP-599)."""
