"""Kafka's APIs by key, and the APIs that this project speaks: versions, first flexible version,
schema module.

Minimum versions are those of Kafka 4.1 (KIP-896). A schema module is imported when its API is first
used, so the import of this table is cheap.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from quorate.quorum.protocol.wire import Message

_SCHEMAS = "quorate.quorum.protocol.schemas"


class ApiKey(enum.IntEnum):
    """The keys of all of Kafka's APIs, including those that this project does not serve."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


@dataclass(frozen=True)
class Api:
    """One API that this project speaks, and its versions, from `min_version` to `max_version`. Each
    port serves a part of these APIs.

    `flexible_since` is the first flexible version (KIP-482). `advertised_min` is lower than
    `min_version` for Produce only."""

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    flexible_since: int
    module: str
    advertised_min: int

    @cached_property
    def request(self) -> type[Message]:
        """Return the class of the request. The first access imports its schema module."""
        return self._declared("Request")

    @cached_property
    def response(self) -> type[Message]:
        """Return the class of the response. The first access imports its schema module."""
        return self._declared("Response")

    def serves(self, version: int) -> bool:
        """Return True if requests of `version` are served."""
        return self.min_version <= version <= self.max_version

    def request_header_version(self, version: int) -> int:
        """Return the version of the request header, 1 or 2, for a version of this API."""
        return 2 if version >= self.flexible_since else 1

    def response_header_version(self, version: int) -> int:
        """Return the version of the response header, 0 or 1, for a version of this API.

        ApiVersions always has version 0, because it is answered before the versions are agreed
        (KIP-511)."""
        if self.key == ApiKey.API_VERSIONS:
            return 0
        return 1 if version >= self.flexible_since else 0

    def _declared(self, suffix: str) -> type[Message]:
        message: type[Message] = getattr(
            import_module(f"{_SCHEMAS}.{self.module}"), self.name + suffix
        )
        return message


NEVER_FLEXIBLE = 1 << 15
"""The `flexible_since` of an API without flexible versions: no version is as high."""


def _api(
    key: ApiKey, module: str, versions: tuple[int, int], flexible_since: int, advertised: int = -1
) -> Api:
    name = "".join(word.capitalize() for word in key.name.split("_"))
    low, high = versions
    return Api(key, name, low, high, flexible_since, module, low if advertised < 0 else advertised)


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        # If v0 is missing, librdkafka before 2.8 takes the broker for an old one and never
        # compresses (KAFKA-18659). Requests below v3 are refused nevertheless.
        _api(ApiKey.PRODUCE, "produce", (3, 13), 9, advertised=0),
        _api(ApiKey.FETCH, "fetch", (4, 18), 12),
        _api(ApiKey.LIST_OFFSETS, "list_offsets", (1, 10), 6),
        _api(ApiKey.METADATA, "metadata", (0, 13), 9),
        _api(ApiKey.OFFSET_COMMIT, "group_offsets", (2, 10), 8),
        _api(ApiKey.OFFSET_FETCH, "group_offsets", (1, 10), 6),
        _api(ApiKey.FIND_COORDINATOR, "find_coordinator", (0, 6), 3),
        _api(ApiKey.JOIN_GROUP, "group_membership", (0, 9), 6),
        _api(ApiKey.HEARTBEAT, "group_membership", (0, 4), 4),
        _api(ApiKey.LEAVE_GROUP, "group_membership", (0, 5), 4),
        _api(ApiKey.SYNC_GROUP, "group_membership", (0, 5), 4),
        _api(ApiKey.DESCRIBE_GROUPS, "group_admin", (0, 6), 5),
        _api(ApiKey.LIST_GROUPS, "group_admin", (0, 5), 3),
        _api(ApiKey.SASL_HANDSHAKE, "sasl_handshake", (0, 1), NEVER_FLEXIBLE),
        _api(ApiKey.API_VERSIONS, "api_versions", (0, 4), 3),
        _api(ApiKey.CREATE_TOPICS, "topics", (2, 7), 5),
        _api(ApiKey.DELETE_TOPICS, "topics", (1, 6), 4),
        _api(ApiKey.DELETE_RECORDS, "topics", (0, 2), 2),
        _api(ApiKey.INIT_PRODUCER_ID, "init_producer_id", (0, 5), 2),
        _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, "offset_for_leader_epoch", (2, 4), 4),
        _api(ApiKey.DESCRIBE_ACLS, "acls", (1, 3), 2),
        _api(ApiKey.CREATE_ACLS, "acls", (1, 3), 2),
        _api(ApiKey.DELETE_ACLS, "acls", (1, 3), 2),
        _api(ApiKey.DESCRIBE_CONFIGS, "configs", (1, 4), 4),
        _api(ApiKey.ALTER_CONFIGS, "configs", (0, 2), 2),
        _api(ApiKey.ALTER_REPLICA_LOG_DIRS, "log_dirs", (1, 2), 2),
        _api(ApiKey.DESCRIBE_LOG_DIRS, "log_dirs", (1, 4), 2),
        _api(ApiKey.SASL_AUTHENTICATE, "sasl_authenticate", (0, 2), 2),
        _api(ApiKey.CREATE_PARTITIONS, "topics", (0, 3), 2),
        _api(ApiKey.DELETE_GROUPS, "group_admin", (0, 2), 2),
        _api(ApiKey.ELECT_LEADERS, "elect_leaders", (0, 2), 2),
        _api(ApiKey.INCREMENTAL_ALTER_CONFIGS, "configs", (0, 1), 1),
        _api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "reassignments", (0, 1), 0),
        _api(ApiKey.LIST_PARTITION_REASSIGNMENTS, "reassignments", (0, 0), 0),
        _api(ApiKey.OFFSET_DELETE, "group_offsets", (0, 0), NEVER_FLEXIBLE),
        _api(ApiKey.DESCRIBE_CLIENT_QUOTAS, "client_quotas", (0, 1), 1),
        _api(ApiKey.ALTER_CLIENT_QUOTAS, "client_quotas", (0, 1), 1),
        _api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "user_scram_credentials", (0, 0), 0),
        _api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "user_scram_credentials", (0, 0), 0),
        _api(ApiKey.DESCRIBE_QUORUM, "cluster", (0, 2), 0),
        _api(ApiKey.UPDATE_FEATURES, "update_features", (0, 2), 0),
        _api(ApiKey.DESCRIBE_CLUSTER, "cluster", (0, 2), 0),
        _api(ApiKey.DESCRIBE_PRODUCERS, "describe_producers", (0, 0), 0),
        _api(ApiKey.UNREGISTER_BROKER, "unregister_broker", (0, 0), 0),
        _api(ApiKey.ADD_RAFT_VOTER, "raft_voters", (0, 0), 0),
        _api(ApiKey.REMOVE_RAFT_VOTER, "raft_voters", (0, 0), 0),
        _api(ApiKey.LIST_CONFIG_RESOURCES, "list_config_resources", (0, 1), 0),
        _api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "cluster", (0, 0), 0),
    )
}


def is_flexible(api_key: int, version: int) -> bool:
    """Return True if `version` of a served API is flexible (KIP-482). Raise KeyError for another
    API."""
    return version >= APIS[api_key].flexible_since
