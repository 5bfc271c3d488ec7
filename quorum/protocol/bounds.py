"""The bounds of Kafka messages and stored records: bytes of one field, elements of one array.

Each declared field of a request or record that varies in size names one of these (`wire.py`). A
reader without a bound does not compile. A request beyond a bound is malformed: the server closes
its connection. Where Kafka answers an excess with an error (a topic name of 250 characters, 10,001
topics to delete), the bound here is wider, so that the handler gives Kafka's answer.

Invariant: whatever a request may hold, a record and every version of the response can hold.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """The greatest size of a field: `limit` is in bytes of a string, or in elements of an array.

    A writer clips a text whose bound is `clipped`, on the boundary of a character."""

    name: str
    limit: int
    clipped: bool = False


MAX_STRING_BYTES = 32_767
"""Kafka's own readers refuse longer strings in every version, and classic versions cannot say
them. The bound holds for every string, read or written: what arrives in a flexible version can
then leave in a classic one."""
MAX_TAGGED_FIELDS = 64
"""Tagged fields of one struct, known and unknown."""
MAX_TAGGED_BYTES = 1 << 20
MAX_ELEMENTS = 250_000
"""Array elements of one request, at all levels. Decoding so many takes about 0.15 s; the members of
a group may subscribe to 200,000 partitions."""
MAX_CONTROLLER_ELEMENTS = 20_200
"""Array elements of one request on which the active controller decides in one step, which takes
less than 0.05 s. 10,000 configs, Kafka's bound, of as many resources have 20,000."""
MAX_QUORUM_ELEMENTS = 1000
"""Array elements of a request about the quorum. A sensible one names one partition."""
MAX_ASSIGNMENT_ELEMENTS = 60_000
"""The same for a request that names replicas: 10,000 partitions, Kafka's bound, with four each."""

# --- bytes

TOPIC_NAME = Bound("topic name", MAX_STRING_BYTES)
GROUP_ID = Bound("group id", MAX_STRING_BYTES)
MEMBER_ID = Bound("member id", MAX_STRING_BYTES)
TRANSACTIONAL_ID = Bound("transactional id", MAX_STRING_BYTES)
RESOURCE_NAME = Bound("resource name", MAX_STRING_BYTES)
CONFIG_NAME = Bound("config name", MAX_STRING_BYTES)
CONFIG_VALUE = Bound("config value", MAX_STRING_BYTES)
OFFSET_METADATA = Bound("offset metadata", MAX_STRING_BYTES)
"""offset.metadata.max.bytes refuses less, with OFFSET_METADATA_TOO_LARGE."""
CLIENT_TEXT = Bound("client text", MAX_STRING_BYTES)
"""A text that is compared or quoted, and not kept."""
STORED_NAME = Bound("stored name", MAX_STRING_BYTES)
"""A string of a group's record or of Raft's own records."""
STORED_TEXT = Bound("stored text", 1 << 20)
"""A string of a metadata record. New ones come from requests and are shorter. Older versions stored
longer config values than requests may have today: they are still read, and written to snapshots."""
REGISTERED_TEXT = Bound("registered text", 1 << 20)
"""A name, a host or a rack of a registration. Older versions stored longer ones than any message
can say; replay cuts them (`metadata/registration_bounds.py`). A new registration is bounded."""
CLIENT_ID = Bound("client id", 1024)
"""Member ids are a client id, or a group instance id, and 37 characters more."""
GROUP_INSTANCE_ID = Bound("group instance id", 1024)
PROTOCOL_NAME = Bound("protocol name", 1024)
"""Types and names of group protocols, which a group and each of its members keep."""
SOFTWARE_NAME = Bound("client software", 1024)
"""Every connection keeps two of them."""
HOST = Bound("host", 1024)
LISTENER_NAME = Bound("listener name", 1024)
CLUSTER_ID = Bound("cluster id", 1024)
FEATURE_NAME = Bound("feature name", 1024)
MEMBER_METADATA = Bound("member metadata", 4 << 20)
"""A subscription or an assignment of one member."""
STORED_BYTES = Bound("stored bytes", 16 << 20)
RECORDS = Bound("records", (1 << 31) - 1)
"""The size of the request bounds them (socket.request.max.bytes)."""
ERROR_TEXT = Bound("error text", 1000, clipped=True)

# --- elements

TOPICS = Bound("topics", 100_000)
PARTITIONS = Bound("partitions", 200_000)
PRODUCED_TOPICS = Bound("produced topics", 20_000)
PRODUCED_PARTITIONS = Bound("produced partitions", 20_000)
"""The sum over all topics. A producer's request of 1 MB, its default, has room for 15,000."""
GROUPS = Bound("groups", 50_000)
KEYS = Bound("coordinator keys", 50_000)
MEMBERS = Bound("members", 10_000)
PROTOCOLS = Bound("protocols", 100)
RESOURCES = Bound("resources", 50_000)
CONFIGS = Bound("configs", 20_000)
"""Configs of one resource in a request."""
STORED_CONFIGS = Bound("stored configs", 1000)
"""Configs that one resource may have. Brokers may have unknown keys; there are 300 known ones."""
REPLICAS = Bound("replicas", 1000)
FILTERS = Bound("filters", 100)
FEATURES = Bound("features", 100)
LISTENERS = Bound("listeners", 100)
STORED_REPLICAS = Bound("stored replicas", 10_000)
"""A reassignment's partition has the replicas of two requests, and a cluster's placement its
brokers."""
STORED_ELEMENTS = Bound("stored elements", 100_000)
