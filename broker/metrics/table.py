"""The metrics of a broker. `quorum/watch/declaration.py` explains the names."""

from __future__ import annotations

from quorate.quorum.watch.declaration import Counter, Durations, Gauge, Summary

REPLICA_MANAGER = "kafka_server_replicamanager_"
TOPICS = "kafka_server_brokertopicmetrics_"
REQUESTS = "kafka_network_requestmetrics_"
BROKER_METADATA = "kafka_server_brokermetadatametrics_"
CLEANER = "kafka_log_logcleaner_"
CLEANER_MANAGER = "kafka_log_logcleanermanager_"
PARTITION = ("topic", "partition")
TOPIC = ("topic",)
DIRECTORY = ("logdirectory",)
REQUEST = ("request",)

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

# --- requests of clients

CLIENT_REQUESTS = Counter(f"{REQUESTS}requests_total", "Requests of clients.", REQUEST)
CLIENT_REQUEST_TIME = Summary(f"{REQUESTS}totaltimems", "From receipt to answer, ms.", REQUEST)
CLIENT_REQUEST_STAGES = Durations(
    "quorate_request_seconds",
    "Requests of clients, as a whole (stage total) and by stage: queue, local, remote, response, "
    "throttle. A stage has only the requests that waited in it.",
    ("request", "stage"),
)
PURGATORY_SIZE = Gauge(
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "Requests that wait for replicas, records or the end of their timeout.",
    ("delayedoperation",),
)
REQUESTS_FAILED = Counter(
    "quorate_requests_failed_total",
    "Requests that failed by an exception that no handler expected.",
    REQUEST,
)
CONNECTIONS = Gauge("kafka_server_socket_server_metrics_connections", "Connections of clients.")
FETCH_SESSION_BYTES = Gauge(
    "quorate_fetch_sessions_bytes", "Estimated bytes of the consumers' fetch sessions."
)
FETCH_SESSION_MAX_BYTES = Gauge(
    "quorate_fetch_sessions_max_bytes", "Maximum bytes of the consumers' fetch sessions."
)
FETCH_SESSIONS_ENDED = Counter(
    "quorate_fetch_sessions_ended_total", "Fetch sessions that ended for lack of memory."
)

# --- groups

FAILED_SHARDS = Gauge(
    "quorate_groups_failed_shards", "Partitions of __consumer_offsets that could not be loaded."
)
GROUPS = Gauge("quorate_groups", "Groups that this broker coordinates.")
GROUP_OFFSETS_LEFT_OUT = Gauge(
    "quorate_metrics_left_out_group_offsets",
    "Committed offsets of groups that have no samples of their own (metrics.per.partition).",
)
COMMITTED_OFFSET = Gauge(
    "quorate_consumer_group_committed_offset",
    "Committed offset of a group, on its coordinator.",
    ("group", *PARTITION),
)
GROUP_LAG = Gauge(
    "quorate_consumer_group_lag_records",
    "Records between the committed offset of a group and the high watermark, on its coordinator, "
    "for partitions that have a replica there.",
    ("group", *PARTITION),
)
REBUILT_SHARDS = Counter(
    "quorate_groups_rebuilt_shards_total",
    "Partitions of __consumer_offsets whose groups were loaded again after a failure.",
)

# --- logs

FLUSHES = Summary(
    "kafka_log_logflushstats_logflushrateandtimems",
    "Time of a flush of a partition log, ms, with the wait for the disk's thread.",
)
FLUSH_TIME = Durations(
    "quorate_log_flush_seconds",
    "Time of a flush of a partition log, with the wait for the disk's thread.",
)
APPEND_TIME = Durations(
    "quorate_log_append_seconds",
    "Time of an append of a batch by the leader, with the checks of the batch. One of 16 appends "
    "is measured.",
)
DIRECTORY_FREE = Gauge(
    "quorate_log_directory_free_bytes", "Free bytes of the volume of a log directory.", DIRECTORY
)
DIRECTORY_SIZE = Gauge(
    "quorate_log_directory_volume_bytes", "Size of the volume of a log directory.", DIRECTORY
)
OFFLINE_DIRECTORIES = Gauge(
    "kafka_log_logmanager_offlinelogdirectorycount", "Log directories that have failed."
)
DIRECTORY_OFFLINE = Gauge(
    "kafka_log_logmanager_logdirectoryoffline", "1 if the log directory has failed.", DIRECTORY
)
UNCONFIRMED_DIRECTORIES = Gauge(
    "kafka_server_assignmentsmanager_queuedreplicatodirassignments",
    "Replicas whose log directory the controller has not confirmed.",
)
RECOMPRESSED_BATCHES = Counter(
    "quorate_recompressed_batches_total",
    "Batches that the leader rewrote with the codec of their topic (compression.type).",
)
RECOMPRESSION_BYTES = Gauge(
    "quorate_recompression_waiting_bytes", "Bytes of batches that wait for a recompression."
)

# --- the log cleaner

BUFFER_UTILIZATION = Gauge(
    f"{CLEANER}max_buffer_utilization_percent",
    "Share of the map of offsets that the last cleaning used.",
)
RECOPY_PERCENT = Gauge(
    f"{CLEANER}cleaner_recopy_percent",
    "Bytes written for each 100 bytes that the last cleaning read.",
)
MAX_CLEAN_TIME = Gauge(f"{CLEANER}max_clean_time_secs", "Duration of the last cleaning in seconds.")
MAX_COMPACTION_DELAY = Gauge(
    f"{CLEANER}max_compaction_delay_secs",
    "Longest time by which a log exceeds max.compaction.lag.ms, in seconds.",
)
MAX_DIRTY_PERCENT = Gauge(
    f"{CLEANER_MANAGER}max_dirty_percent",
    "Highest share of dirty bytes of all compacted logs.",
)
TIME_SINCE_CLEANING = Gauge(
    f"{CLEANER_MANAGER}time_since_last_run_seconds",
    "Time since the end of the last cleaning, or since the start.",
)
UNCLEANABLE_PARTITIONS = Gauge(
    f"{CLEANER_MANAGER}uncleanable_partitions",
    "Logs that are not compacted because they are damaged.",
    DIRECTORY,
)
UNCLEANABLE_BYTES = Gauge(
    f"{CLEANER_MANAGER}uncleanable_partitions_bytes",
    "Bytes of the logs that are not compacted because they are damaged.",
    DIRECTORY,
)
CLEANINGS = Counter("quorate_log_cleaner_cleanings_total", "Cleanings of one log.")
CLEANED_BYTES = Counter("quorate_log_cleaner_read_bytes_total", "Bytes that cleanings have read.")
