"""The responses to a request that failed as a whole, for the APIs that brokers forward to the
active controller.

If a response has no top-level error code, every requested item gets the error. The responses of
ElectLeaders and AlterPartitionReassignments have both. An ElectLeaders request for all partitions
names no items, so its response in version 0 shows no error. `ERROR_RESPONSES` maps an API key to a
function that builds the response from the request, the error code and a text.
`../error_response.py` serves the other APIs.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas import (
    acls,
    client_quotas,
    cluster,
    configs,
    elect_leaders,
    raft_voters,
    reassignments,
    topics,
    unregister_broker,
    update_features,
    user_scram_credentials,
)
from quorate.quorum.protocol.wire import Message

Failure = Callable[[Message, ErrorCode, str], Message]


def _create_topics(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, topics.CreateTopicsRequest)
    return topics.CreateTopicsResponse(
        topics=tuple(
            topics.CreatableTopicResult(name=each.name, error_code=error, error_message=text)
            for each in request.topics
        )
    )


def _delete_topics(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, topics.DeleteTopicsRequest)
    by_name = [topics.DeleteTopicState(name=name) for name in request.topic_names]
    return topics.DeleteTopicsResponse(
        responses=tuple(
            topics.DeletableTopicResult(
                name=each.name, topic_id=each.topic_id, error_code=error, error_message=text
            )
            for each in (*request.topics, *by_name)
        )
    )


def _create_partitions(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, topics.CreatePartitionsRequest)
    return topics.CreatePartitionsResponse(
        results=tuple(
            topics.CreatePartitionsTopicResult(name=each.name, error_code=error, error_message=text)
            for each in request.topics
        )
    )


def _alter_configs(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, configs.AlterConfigsRequest)
    return configs.AlterConfigsResponse(
        responses=tuple(
            configs.AlterConfigsResourceResponse(
                error_code=error,
                error_message=text,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        )
    )


def _incremental_alter_configs(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, configs.IncrementalAlterConfigsRequest)
    return configs.IncrementalAlterConfigsResponse(
        responses=tuple(
            configs.IncrementalAlterConfigsResourceResponse(
                error_code=error,
                error_message=text,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in request.resources
        )
    )


def _describe_quorum(request: Message, error: ErrorCode, text: str) -> Message:
    return cluster.DescribeQuorumResponse(error_code=error, error_message=text, topics=())


def _elect_leaders(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, elect_leaders.ElectLeadersRequest)
    return elect_leaders.ElectLeadersResponse(
        error_code=error,
        replica_election_results=tuple(
            elect_leaders.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    elect_leaders.PartitionResult(
                        partition_id=each, error_code=error, error_message=text
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def _alter_reassignments(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, reassignments.AlterPartitionReassignmentsRequest)
    return reassignments.AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=text,
        responses=tuple(
            reassignments.ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    reassignments.ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=error, error_message=text
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _list_reassignments(request: Message, error: ErrorCode, text: str) -> Message:
    return reassignments.ListPartitionReassignmentsResponse(
        error_code=error, error_message=text, topics=()
    )


def _add_raft_voter(request: Message, error: ErrorCode, text: str) -> Message:
    return raft_voters.AddRaftVoterResponse(error_code=error, error_message=text)


def _remove_raft_voter(request: Message, error: ErrorCode, text: str) -> Message:
    return raft_voters.RemoveRaftVoterResponse(error_code=error, error_message=text)


def _unregister_broker(request: Message, error: ErrorCode, text: str) -> Message:
    return unregister_broker.UnregisterBrokerResponse(error_code=error, error_message=text)


def _update_features(request: Message, error: ErrorCode, text: str) -> Message:
    return update_features.UpdateFeaturesResponse(error_code=error, error_message=text)


def _alter_client_quotas(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, client_quotas.AlterClientQuotasRequest)
    return client_quotas.AlterClientQuotasResponse(
        entries=tuple(
            client_quotas.AlteredData(
                error_code=error,
                error_message=text,
                entity=tuple(
                    client_quotas.EntityData(
                        entity_type=part.entity_type, entity_name=part.entity_name
                    )
                    for part in each.entity
                ),
            )
            for each in request.entries
        )
    )


def _alter_user_scram_credentials(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, user_scram_credentials.AlterUserScramCredentialsRequest)
    names = dict.fromkeys(each.name for each in request.deletions)
    names |= dict.fromkeys(each.name for each in request.upsertions)
    return user_scram_credentials.AlterUserScramCredentialsResponse(
        results=tuple(
            user_scram_credentials.AlterUserScramCredentialsResult(
                user=name, error_code=error, error_message=text
            )
            for name in names
        )
    )


def _create_acls(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, acls.CreateAclsRequest)
    result = acls.AclCreationResult(error_code=error, error_message=text)
    return acls.CreateAclsResponse(results=(result,) * len(request.creations))


def _delete_acls(request: Message, error: ErrorCode, text: str) -> Message:
    assert isinstance(request, acls.DeleteAclsRequest)
    result = acls.DeleteAclsFilterResult(error_code=error, error_message=text)
    return acls.DeleteAclsResponse(filter_results=(result,) * len(request.filters))


ERROR_RESPONSES: dict[int, Failure] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKey.ALTER_CLIENT_QUOTAS: _alter_client_quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _alter_user_scram_credentials,
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.DESCRIBE_QUORUM: _describe_quorum,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_reassignments,
    ApiKey.UNREGISTER_BROKER: _unregister_broker,
    ApiKey.ADD_RAFT_VOTER: _add_raft_voter,
    ApiKey.REMOVE_RAFT_VOTER: _remove_raft_voter,
    ApiKey.UPDATE_FEATURES: _update_features,
}
