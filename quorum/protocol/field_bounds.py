"""The bounds of Kafka messages and stored records: bytes of one field, or elements of one array.

Each declared field of variable size in a request or record names one of these bounds (`wire.py`).
Without a bound, the compilation of the reader raises TypeError. Responses need no bounds. A request
that exceeds a bound is malformed, and the server closes its connection.

Kafka answers some excesses with an error, for example a topic name of 250 characters or 10,001
topics to delete. The bound here is wider in such cases, so that the handler can give Kafka's
answer.

Invariant: a record and every version of the response can hold every value that a request may hold.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest size of a field: `limit` is in bytes of one value, or in elements of an array.

    If the bound is `clipped`, a writer shortens a longer text at the boundary of a character."""

    name: str
    limit: int
    clipped: bool = False


MAX_STRING_BYTES = 32_767
"""Kafka's own readers refuse longer strings in every version, and classic versions cannot encode
them. The bound holds for every string of a request or response, so that a string that arrives in a
flexible version can leave in a classic one. Only STORED_TEXT and REGISTERED_TEXT of records are
longer."""
MAX_TAGGED_FIELDS = 64
"""The tagged fields of one struct, known and unknown."""
MAX_TAGGED_BYTES = 1 << 20
"""The bytes of one tagged field of a declared message."""
MAX_ELEMENTS = 250_000
"""The array elements of one request, at all levels. Decoding this number takes about 0.15 s. The
members of a group may subscribe to 200,000 partitions."""
MAX_CONTROLLER_ELEMENTS = 20_200
"""The array elements of one request to the active controller, which decides it in one step of less
than 0.05 s. The largest request that Kafka accepts, 10,000 configs of as many resources, has
20,000."""
MAX_QUORUM_ELEMENTS = 1000
"""The array elements of a request about the quorum. Such a request needs one partition."""
MAX_ASSIGNMENT_ELEMENTS = 60_000
"""The array elements of a request that names replicas: 10,000 partitions, Kafka's bound, with four
replicas each."""

# --- bytes

TOPIC_NAME = Bound("topic name", MAX_STRING_BYTES)
GROUP_ID = Bound("group id", MAX_STRING_BYTES)
MEMBER_ID = Bound("member id", MAX_STRING_BYTES)
TRANSACTIONAL_ID = Bound("transactional id", MAX_STRING_BYTES)
RESOURCE_NAME = Bound("resource name", MAX_STRING_BYTES)
CONFIG_NAME = Bound("config name", MAX_STRING_BYTES)
CONFIG_VALUE = Bound("config value", MAX_STRING_BYTES)
OFFSET_METADATA = Bound("offset metadata", MAX_STRING_BYTES)
"""The handler applies offset.metadata.max.bytes, and answers OFFSET_METADATA_TOO_LARGE."""
CLIENT_TEXT = Bound("client text", MAX_STRING_BYTES)
"""A text that is compared or quoted, and not stored."""
STORED_NAME = Bound("stored name", MAX_STRING_BYTES)
"""A string of a group's record or of a control record of Raft."""
STORED_TEXT = Bound("stored text", 1 << 20)
"""A string of a metadata record. New strings come from requests and are shorter. Older versions
stored longer config values, which are still read and written to snapshots."""
REGISTERED_TEXT = Bound("registered text", 1 << 20)
"""A name, a host or a rack of a registration. Older versions stored longer ones than any message
can hold. Replay cuts them (`metadata/registration_bounds.py`). New registrations are checked."""
CLIENT_ID = Bound("client id", 1024)
"""Far below MAX_STRING_BYTES, because a member id is a client id or a group instance id, followed
by 37 characters."""
GROUP_INSTANCE_ID = Bound("group instance id", 1024)
PROTOCOL_NAME = Bound("protocol name", 1024)
"""The types and names of group protocols. A group and each of its members store them."""
SOFTWARE_NAME = Bound("client software", 1024)
"""Every connection stores two of them."""
HOST = Bound("host", 1024)
LISTENER_NAME = Bound("listener name", 1024)
QUOTA_NAME = Bound("name of a quota's user or client id", 1024)
"""As long as a CLIENT_ID, because no client can have a longer one."""
USER_NAME = Bound("user name", 1024)
"""The name of a user with SCRAM credentials. Every node stores it."""
SCRAM_BYTES = Bound("SCRAM salt or key", 1024)
SASL_TOKEN = Bound("SASL token", 100 << 20)
"""sasl.server.max.receive.size bounds the whole request. 100 MiB is the largest request."""
CLUSTER_ID = Bound("cluster id", 1024)
FEATURE_NAME = Bound("feature name", 1024)
MEMBER_METADATA = Bound("member metadata", 4 << 20)
"""The subscription or the assignment of one member."""
STORED_BYTES = Bound("stored bytes", 16 << 20)
RECORDS = Bound("records", (1 << 31) - 1)
"""The size of the request bounds the records (socket.request.max.bytes)."""
ERROR_TEXT = Bound("error text", 1000, clipped=True)

# --- elements

TOPICS = Bound("topics", 100_000)
PARTITIONS = Bound("partitions", 200_000)
LOG_DIRS = Bound("log directories", 10_000)
"""The handler answers LOG_DIR_NOT_FOUND for each partition of an unknown one."""
PRODUCED_TOPICS = Bound("produced topics", 20_000)
PRODUCED_PARTITIONS = Bound("produced partitions", 20_000)
"""The sum over all topics. A request of 1 MB, a producer's default, has room for 15,000."""
GROUPS = Bound("groups", 50_000)
KEYS = Bound("coordinator keys", 50_000)
MEMBERS = Bound("members", 10_000)
PROTOCOLS = Bound("protocols", 100)
RESOURCES = Bound("resources", 50_000)
CONFIGS = Bound("configs", 20_000)
"""The configs of one resource in a request."""
STORED_CONFIGS = Bound("stored configs", 1000)
"""The configs that one resource may have. 300 keys are known, and brokers may have unknown ones."""
REPLICAS = Bound("replicas", 1000)
FILTERS = Bound("filters", 100)
QUOTA_ENTITIES = Bound("quota entities", 10_000)
QUOTAS = Bound("quotas of one entity", 100)
"""Five quotas are known. The bound is wider, so that the handler can name an unknown one."""
FEATURES = Bound("features", 100)
LISTENERS = Bound("listeners", 100)
STORED_REPLICAS = Bound("stored replicas", 10_000)
"""A partition in reassignment has the replicas of two requests. The placement of a cluster names
all of its brokers."""
STORED_ELEMENTS = Bound("stored elements", 100_000)
