"""The metrics of a broker's state, replicas and traffic. `quorum/watch/declaration.py` explains the
names."""

from __future__ import annotations

from quorate.quorum.watch.declaration import Counter, Durations, Gauge

REPLICA_MANAGER = "kafka_server_replicamanager_"
TOPICS = "kafka_server_brokertopicmetrics_"
BROKER_METADATA = "kafka_server_brokermetadatametrics_"
PARTITION = ("topic", "partition")
TOPIC = ("topic",)

# --- the broker

BROKER_STATE = Gauge("kafka_server_kafkaserver_brokerstate", "The state of the broker, 3: running.")
LAST_APPLIED_OFFSET = Gauge(
    f"{BROKER_METADATA}last_applied_record_offset", "The last metadata record replayed."
)
LAST_APPLIED_TIMESTAMP = Gauge(
    f"{BROKER_METADATA}last_applied_record_timestamp",
    "The time of the last metadata record replayed, ms.",
)
LAST_APPLIED_LAG = Gauge(
    f"{BROKER_METADATA}last_applied_record_lag_seconds",
    "The age of the last metadata record replayed.",
)
LOAD_ERRORS = Gauge(
    f"{BROKER_METADATA}metadata_load_errors", "Errors in the metadata. One stops the node."
)
APPLY_ERRORS = Gauge(
    f"{BROKER_METADATA}metadata_apply_errors",
    "Errors when the broker acted on the metadata. One stops the node.",
)
UNACTED_RECORDS = Gauge(
    "quorate_metadata_unacted_records",
    "Replayed metadata records that this broker has not acted on.",
)

ACTING_LAG = Durations(
    "quorate_metadata_acting_lag_seconds",
    "Time from the moment at which this broker knows of a commit until it has acted on it.",
)

# --- replicas

PARTITION_COUNT = Gauge(f"{REPLICA_MANAGER}partitioncount", "Replicas here.")
LEADER_COUNT = Gauge(f"{REPLICA_MANAGER}leadercount", "Replicas here that lead.")
UNDER_REPLICATED = Gauge(
    f"{REPLICA_MANAGER}underreplicatedpartitions",
    "Partitions led here that have fewer in-sync replicas than replicas.",
)
UNDER_MIN_ISR = Gauge(
    f"{REPLICA_MANAGER}underminisrpartitioncount",
    "Partitions led here below min.insync.replicas.",
)
AT_MIN_ISR = Gauge(
    f"{REPLICA_MANAGER}atminisrpartitioncount",
    "Partitions led here that have just min.insync.replicas.",
)
PRODUCER_IDS = Gauge(
    f"{REPLICA_MANAGER}produceridcount", "Idempotent producers whose state is in memory."
)
OFFLINE_REPLICAS = Gauge(
    f"{REPLICA_MANAGER}offlinereplicacount", "Replicas that belong here and are not open yet."
)
REASSIGNING = Gauge(
    f"{REPLICA_MANAGER}reassigningpartitions", "Partitions led here that are being reassigned."
)
ISR_SHRINKS = Counter(f"{REPLICA_MANAGER}isrshrinks_total", "Accepted ISR shrinks.")
ISR_EXPANDS = Counter(f"{REPLICA_MANAGER}isrexpands_total", "Accepted ISR expansions.")
FAILED_ISR_UPDATES = Counter(f"{REPLICA_MANAGER}failedisrupdates_total", "Rejected ISR changes.")
ISR_PROPOSALS_WAITING = Gauge(
    "quorate_isr_proposals_waiting",
    "ISR changes that this broker proposed and that have no result yet.",
)
ISR_PROPOSALS_IN_FLIGHT = Gauge(
    "quorate_isr_proposals_in_flight", "Proposed ISR changes that the request in flight carries."
)
ISR_PROPOSALS_OLDEST = Gauge(
    "quorate_isr_proposals_oldest_seconds", "Age of the oldest proposed ISR change."
)
ISR_ROUND_TRIP = Durations(
    "quorate_isr_round_trip_seconds",
    "Time from an AlterPartition request of this broker to the controller's response.",
)
ISR_REQUESTS_REPEATED = Counter(
    "quorate_isr_requests_repeated_total",
    "AlterPartition requests that failed as a whole and were sent again.",
)

# --- moves between log directories

MOVES = Gauge(
    "quorate_replica_moves",
    "Moves of replicas between log directories, by stage. A move in the stage assigning waits for "
    "the controller to record its target.",
    ("stage",),
)
MOVES_LAG = Gauge(
    "kafka_server_replicaalterlogdirsmanager_maxlag",
    "The largest number of records that a future log is behind the log that it replaces.",
)
MOVES_ENDED = Counter(
    "quorate_replica_moves_ended_total",
    "Moves that ended in their target (moved), or because of an error (failed).",
    ("result",),
)
MOVES_COPIED = Counter("quorate_replica_moves_copied_bytes_total", "Bytes copied by moves.")

# --- partitions

PARTITIONS_LEFT_OUT = Gauge(
    "quorate_metrics_left_out_partitions",
    "Partitions hosted here that have no samples of their own (metrics.per.partition).",
)
REPLICAS = Gauge("kafka_cluster_partition_replicascount", "Replicas, on the leader.", PARTITION)
IN_SYNC_REPLICAS = Gauge(
    "kafka_cluster_partition_insyncreplicascount", "In-sync replicas, on the leader.", PARTITION
)
IS_UNDER_REPLICATED = Gauge(
    "kafka_cluster_partition_underreplicated", "1 if under-replicated, on the leader.", PARTITION
)
IS_UNDER_MIN_ISR = Gauge(
    "kafka_cluster_partition_underminisr", "1 if below the min ISR, on the leader.", PARTITION
)
IS_AT_MIN_ISR = Gauge(
    "kafka_cluster_partition_atminisr", "1 if at the min ISR, on the leader.", PARTITION
)
LOG_SIZE = Gauge("kafka_log_log_size", "Bytes on disk.", PARTITION)
LOG_SEGMENTS = Gauge("kafka_log_log_numlogsegments", "Segments.", PARTITION)
LOG_END_OFFSET = Gauge("kafka_log_log_logendoffset", "Log end offset.", PARTITION)
HIGH_WATERMARK = Gauge(
    "quorate_partition_high_watermark", "Records below it are committed.", PARTITION
)
LOG_START_OFFSET = Gauge("kafka_log_log_logstartoffset", "Log start offset.", PARTITION)

# --- traffic. The sample with an empty topic is the sum for the broker.

MESSAGES_IN = Counter(f"{TOPICS}messagesin_total", "Records appended by producers.", TOPIC)
BYTES_IN = Counter(f"{TOPICS}bytesin_total", "Bytes appended by producers.", TOPIC)
BYTES_OUT = Counter(f"{TOPICS}bytesout_total", "Bytes read by consumers.", TOPIC)
PRODUCE_REQUESTS = Counter(f"{TOPICS}totalproducerequests_total", "Requested appends.", TOPIC)
FETCH_REQUESTS = Counter(f"{TOPICS}totalfetchrequests_total", "Requested reads.", TOPIC)
FAILED_PRODUCES = Counter(f"{TOPICS}failedproducerequests_total", "Rejected appends.", TOPIC)
FAILED_FETCHES = Counter(f"{TOPICS}failedfetchrequests_total", "Rejected reads.", TOPIC)
REPLICATION_BYTES_IN = Counter(
    f"{TOPICS}replicationbytesin_total", "Bytes fetched from leaders.", TOPIC
)
REPLICATION_BYTES_OUT = Counter(
    f"{TOPICS}replicationbytesout_total", "Bytes read by followers.", TOPIC
)
REASSIGNMENT_BYTES_IN = Counter(
    f"{TOPICS}reassignmentbytesin_total",
    "Bytes fetched by replicas that a reassignment adds.",
    TOPIC,
)
KEYLESS_RECORDS = Counter(
    f"{TOPICS}nokeycompactedtopicrecords_total",
    "Records without a key that compacted topics refused.",
    TOPIC,
)
REJECTED_BYTES = Counter(
    f"{TOPICS}bytesrejected_total", "Bytes of batches of producers that are too large.", TOPIC
)
DAMAGED_BATCHES = Counter(
    f"{TOPICS}invalidmessagecrcrecords_total",
    "Batches of producers that fail their CRC.",
    TOPIC,
)

# --- followers

MAX_LAG = Gauge(
    "kafka_server_replicafetchermanager_maxlag",
    "Records behind the leader's high watermark, the most of all partitions.",
    ("clientid",),
)
FETCHER_LAG = Gauge(
    "kafka_server_fetcherlagmetrics_consumerlag",
    "Records behind the leader's high watermark.",
    ("clientid", *PARTITION),
)
LEADER_THROTTLED_RATE = Gauge(
    "kafka_server_leaderreplication_byte_rate",
    "Bytes per second of the throttled replicas of this broker as a leader.",
)
FOLLOWER_THROTTLED_RATE = Gauge(
    "kafka_server_followerreplication_byte_rate",
    "Bytes per second of the throttled replicas of this broker as a follower.",
)
