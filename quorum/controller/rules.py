"""The rule of each request of the active controller, and the requests under a quota."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorate.quorum.controller.brokers.heartbeat import heartbeat
from quorate.quorum.controller.brokers.log_directories import assign_replicas_to_dirs
from quorate.quorum.controller.brokers.producer_ids import allocate_producer_ids
from quorate.quorum.controller.brokers.registration import register_broker
from quorate.quorum.controller.brokers.unregister import unregister_broker
from quorate.quorum.controller.clients.acls import create_acls, delete_acls
from quorate.quorum.controller.clients.authorized import authorized
from quorate.quorum.controller.clients.client_quotas import alter_client_quotas
from quorate.quorum.controller.clients.scram_credentials import alter_user_scram_credentials
from quorate.quorum.controller.configs.alter_configs import alter_configs, incremental_alter_configs
from quorate.quorum.controller.features.controller_registration import register_controller
from quorate.quorum.controller.features.update_features import update_features
from quorate.quorum.controller.partitions.alter_partition import alter_partition
from quorate.quorum.controller.partitions.elect_leaders import elect_leaders
from quorate.quorum.controller.partitions.reassign import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from quorate.quorum.controller.state.context import Caller, Context
from quorate.quorum.controller.state.decision_steps import DecisionSteps, Outcome
from quorate.quorum.controller.state.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
from quorate.quorum.controller.state.result import Result
from quorate.quorum.controller.topics.new_partitions import create_partitions
from quorate.quorum.controller.topics.topics import create_topics, delete_topics
from quorate.quorum.protocol.schemas.acls import CreateAclsRequest, DeleteAclsRequest
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
from quorate.quorum.protocol.schemas.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from quorate.quorum.quotas.mutation_quotas import MutationQuota, MutationQuotas

RULES: dict[type, Callable[[Context, Any], Outcome]] = {
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
    CreateAclsRequest: create_acls,
    DeleteAclsRequest: delete_acls,
    AlterUserScramCredentialsRequest: alter_user_scram_credentials,
}
"""The rule of each request class. The request classes of clients are Kafka's schemas."""
STRICT_SINCE: dict[type, int] = {
    CreateTopicsRequest: 6,
    CreatePartitionsRequest: 3,
    DeleteTopicsRequest: 5,
}
"""The requests that the quota controller_mutation_rate bounds, and the first version whose clients
know its error (KIP-599)."""


def decide(
    context: Context, quotas: MutationQuotas, request: object, caller: Caller | None
) -> Outcome:
    """Apply the rule of the request's class. `caller` is None for a node's request, which has no
    quota. Raise KeyError for an unknown class.

    If this controller has an authorizer, a client's request needs permissions."""
    if caller is None or caller.client is None or context.permits is None:
        return apply(context, quotas, request, caller)
    permits = context.permits(caller, context.image)
    return authorized(
        permits, request, caller.version, lambda rest: apply(context, quotas, rest, caller)
    )


def apply(
    context: Context, quotas: MutationQuotas, request: object, caller: Caller | None
) -> Outcome:
    """Apply the rule of the request's class under the quota of the caller."""
    rule, strict_since = RULES[type(request)], STRICT_SINCE.get(type(request))
    if caller is None or strict_since is None or not context.image.client_quotas:
        return rule(context, request)
    quota = quotas.of_request(
        context.image.client_quotas,
        caller.client_id,
        context.now_ms,
        strict=caller.version >= strict_since,
        user=caller.user,
    )
    return under_quota(context, quotas, request, quota)


def under_quota(
    context: Context, quotas: MutationQuotas, request: object, quota: MutationQuota
) -> DecisionSteps:
    """Decide the request with `quota`, and add its throttle time to the response."""
    context.mutation_quota = quota
    try:
        outcome = RULES[type(request)](context, request)
        result = outcome if isinstance(outcome, Result) else (yield from outcome)
    finally:
        context.mutation_quota = MutationQuota()
    quotas.note(quota)
    response: Any = result.response
    return replace(result, response=replace(response, throttle_time_ms=quota.throttle_ms))
