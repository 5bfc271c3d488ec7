"""Kafka's error codes: name, retriable or not, and a default text.

Each row of ErrorCode has the number, the default text, and True if the error is retriable.
`retriable` is Kafka's own classification: a client that receives such an error sends the request
again. Servers do not use it. If a server has a text for the specific case, it answers with that
text instead of the default.
"""

from __future__ import annotations

import enum


class ErrorCode(enum.IntEnum):
    """Kafka's error codes. `message` is the default text. `retriable` is True if clients retry."""

    retriable: bool
    message: str

    def __new__(cls, code: int, message: str, retriable: bool = False) -> ErrorCode:
        error = int.__new__(cls, code)
        error._value_ = code
        error.message = message
        error.retriable = retriable
        return error

    @classmethod
    def of(cls, code: int) -> ErrorCode:
        """Return the member for `code`, or UNKNOWN_SERVER_ERROR if a newer server sent a code that
        this table lacks. Never raise."""
        known = cls._value2member_map_.get(code)
        return known if isinstance(known, cls) else cls.UNKNOWN_SERVER_ERROR

    UNKNOWN_SERVER_ERROR = -1, "The server failed unexpectedly; see its log."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = 1, "The offset lies outside the log of the partition."
    CORRUPT_MESSAGE = 2, "A record batch is damaged, too large, or lacks a key it must have.", True
    UNKNOWN_TOPIC_OR_PARTITION = 3, "There is no such topic or partition here.", True
    INVALID_FETCH_SIZE = 4, "The size to fetch is not valid."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment.", True
    NOT_LEADER_OR_FOLLOWER = 6, "This broker is not the leader, or not a replica.", True
    REQUEST_TIMED_OUT = 7, "The request was not completed in time.", True
    BROKER_NOT_AVAILABLE = 8, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, "The replica is not available for this partition.", True
    MESSAGE_TOO_LARGE = 10, "A record batch is larger than the server accepts."
    STALE_CONTROLLER_EPOCH = 11, "The controller moved to another node."
    OFFSET_METADATA_TOO_LARGE = 12, "The metadata of the committed offset is too large."
    NETWORK_EXCEPTION = 13, "The connection was lost before the response arrived.", True
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still loading its state.", True
    COORDINATOR_NOT_AVAILABLE = 15, "There is no coordinator at the moment.", True
    NOT_COORDINATOR = 16, "This broker is not the coordinator.", True
    INVALID_TOPIC_EXCEPTION = 17, "The topic name is not valid, or the topic must not be changed."
    RECORD_LIST_TOO_LARGE = 18, "The records are larger than a segment of the log."
    NOT_ENOUGH_REPLICAS = 19, "Fewer replicas are in sync than min.insync.replicas requires.", True
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "Appended, but fewer replicas are now in sync than required.",
        True,
    )
    INVALID_REQUIRED_ACKS = 21, "acks must be 0, 1 or -1 (all)."
    ILLEGAL_GENERATION = 22, "The generation is not the current one of the group."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member supports no protocol of the other members."
    INVALID_GROUP_ID = 24, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, "The group has no such member."
    INVALID_SESSION_TIMEOUT = (
        26,
        "The session timeout is outside group.{min,max}.session.timeout.ms.",
    )
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing: join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The data of the committed offset is too large."
    TOPIC_AUTHORIZATION_FAILED = 29, "Not authorized for the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "Not authorized for the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Not authorized for the cluster."
    INVALID_TIMESTAMP = 32, "A timestamp is outside the accepted range."
    UNSUPPORTED_SASL_MECHANISM = 33, "The SASL mechanism is not supported."
    ILLEGAL_SASL_STATE = 34, "The request does not fit the state of the SASL exchange."
    UNSUPPORTED_VERSION = 35, "The version of the request is not supported."
    TOPIC_ALREADY_EXISTS = 36, "A topic with this name already exists."
    INVALID_PARTITIONS = 37, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = (
        38,
        "The replication factor is below 1 or above the number of usable brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, "The replica assignment is not valid."
    INVALID_CONFIG = 40, "The configuration is not valid."
    NOT_CONTROLLER = 41, "This node is not the active controller.", True
    INVALID_REQUEST = 42, "The request contradicts itself or the protocol; see the server's log."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The message format of the log does not allow this."
    POLICY_VIOLATION = 44, "A policy of the cluster forbids this."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "A sequence number of the producer is missing."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The producer sent this sequence number before."
    INVALID_PRODUCER_EPOCH = 47, "The producer's epoch is older than the current one."
    INVALID_TXN_STATE = 48, "The transaction is not in a state that allows this."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id does not belong to the transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The timeout is above transaction.max.timeout.ms."
    CONCURRENT_TRANSACTIONS = 51, "Another operation on this transaction is in progress.", True
    TRANSACTION_COORDINATOR_FENCED = 52, "Another coordinator now manages the transaction."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Not authorized for the transactional id."
    SECURITY_DISABLED = 54, "Security is not enabled."
    OPERATION_NOT_ATTEMPTED = 55, "Not attempted, because another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, "The log directory of the partition failed.", True
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "SASL authentication failed."
    UNKNOWN_PRODUCER_ID = (
        59,
        "The broker has no state of the producer id, perhaps because its records were deleted.",
    )
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are not enabled."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The principal does not own the delegation token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        "Delegation tokens cannot be managed over this connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Not authorized for the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token is expired."
    INVALID_PRINCIPAL_TYPE = 67, "The type of the principal is not supported."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, "There is no such fetch session.", True
    INVALID_FETCH_SESSION_EPOCH = 71, "The epoch of the fetch session is not the next one.", True
    LISTENER_NOT_FOUND = (
        72,
        "The leader does not have the listener that was asked.",
        True,
    )
    TOPIC_DELETION_DISABLED = 73, "Topics cannot be deleted here (delete.topic.enable)."
    FENCED_LEADER_EPOCH = 74, "The leader epoch of the request is older than the broker's.", True
    UNKNOWN_LEADER_EPOCH = 75, "The leader epoch of the request is newer than the broker's.", True
    UNSUPPORTED_COMPRESSION_TYPE = 76, "The client cannot read the compression of the partition."
    STALE_BROKER_EPOCH = 77, "The broker has registered again since then."
    OFFSET_NOT_AVAILABLE = (
        78,
        "The new leader's high watermark has not caught up with the old one's yet.",
        True,
    )
    MEMBER_ID_REQUIRED = 79, "Join again with the member id in this response."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not available.", True
    GROUP_MAX_SIZE_REACHED = 81, "The group is full (group.max.size)."
    FENCED_INSTANCE_ID = 82, "Another member now uses this group.instance.id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "No replica that may lead is available.", True
    ELECTION_NOT_NEEDED = 84, "The requested leader already leads the partition.", True
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group is subscribed to the topic."
    INVALID_RECORD = 87, "The broker's checks refused a record."
    UNSTABLE_OFFSET_COMMIT = 88, "Offsets of an open transaction are pending.", True
    THROTTLING_QUOTA_EXCEEDED = 89, "The quota is used up.", True
    PRODUCER_FENCED = 90, "A newer producer uses the transactional id."
    RESOURCE_NOT_FOUND = 91, "The request names something that does not exist."
    DUPLICATE_RESOURCE = 92, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential does not meet the requirements."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver is not one of the expected voters."
    INVALID_UPDATE_VERSION = 95, "The version to update to is not valid."
    FEATURE_UPDATE_FAILED = 96, "The feature could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The forwarded principal could not be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, "There is no topic with this id here.", True
    DUPLICATE_BROKER_REGISTRATION = 101, "A broker that is alive is registered under this id."
    BROKER_ID_NOT_REGISTERED = 102, "No broker is registered under this id."
    INCONSISTENT_TOPIC_ID = (
        103,
        "The topic was created again and has another id.",
        True,
    )
    INCONSISTENT_CLUSTER_ID = 104, "The cluster id belongs to another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session mixes topic ids and names.", True
    INELIGIBLE_REPLICA = 107, "The new ISR contains a replica that is not eligible."
    NEW_LEADER_ELECTED = 108, "The change was made, and the partition has a new leader."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset is in tiered storage."
    FENCED_MEMBER_EPOCH = 110, "The member was fenced: give up all partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, "The instance id is still in use by another member."
    UNSUPPORTED_ASSIGNOR = 112, "The group does not support the assignor."
    STALE_MEMBER_EPOCH = 113, "The member's epoch is old: wait for the next heartbeat's."
    MISMATCHED_ENDPOINT_TYPE = (
        114,
        "Brokers were asked for at a controller, or the reverse.",
    )
    UNSUPPORTED_ENDPOINT_TYPE = 115, "The endpoint type is not supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no controller with this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is not the current one."
    TELEMETRY_TOO_LARGE = 118, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, "The controller does not accept the registration."
    TRANSACTION_ABORTABLE = 120, "The transaction failed and can be aborted."
    INVALID_RECORD_STATE = 121, "The state of the record does not allow an acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, "There is no such share session.", True
    INVALID_SHARE_SESSION_EPOCH = 123, "The epoch of the share session is not the next one.", True
    FENCED_STATE_EPOCH = 124, "The state epoch is not that of the share group."
    INVALID_VOTER_KEY = 125, "The voter key is not that of the replica that received it."
    DUPLICATE_VOTER = 126, "The replica is a voter already."
    VOTER_NOT_FOUND = 127, "The replica is not a voter."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, "The client's metadata is too old: bootstrap again."
    STREAMS_INVALID_TOPOLOGY = 130, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The topology epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, "The topology epoch is outdated."
    SHARE_SESSION_LIMIT_REACHED = 133, "There are too many share sessions.", True


class KafkaError(Exception):
    """The failure of a request, or of one item of it, such as a partition. The answer carries the
    error `code` and the text `message`."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        """Create an error. Without `message`, use the default text of `code`."""
        self.code = code
        self.message = message if message is not None else code.message
        super().__init__(f"{code.name}: {self.message}")

    @property
    def retriable(self) -> bool:
        """Return True if clients retry this error."""
        return self.code.retriable
