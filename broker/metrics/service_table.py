"""The metrics of a broker's requests, groups and logs. `quorum/watch/declaration.py` explains the
names."""

from __future__ import annotations

from quorate.quorum.watch.declaration import Counter, Durations, Gauge, Summary

REQUESTS = "kafka_network_requestmetrics_"
CLEANER = "kafka_log_logcleaner_"
CLEANER_MANAGER = "kafka_log_logcleanermanager_"
GROUP_PARTITION = ("group", "topic", "partition")
DIRECTORY = ("logdirectory",)
REQUEST = ("request",)

# --- requests of clients

CLIENT_REQUESTS = Counter(f"{REQUESTS}requests_total", "Requests of clients.", REQUEST)
CLIENT_REQUEST_BYTES = Counter(
    "quorate_request_bytes_total", "Bytes of the requests of clients.", REQUEST
)
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
GROUPS_BYTES = Gauge(
    "quorate_groups_held_bytes", "Bytes that the members of all groups of this broker hold."
)
GROUPS_MAX_BYTES = Gauge(
    "quorate_groups_max_bytes", "Maximum bytes that the members of all groups may hold."
)
GROUPS_EVICTED = Counter(
    "quorate_groups_evicted_total", "Groups that lost all members for lack of memory."
)
GROUP_OFFSETS_LEFT_OUT = Gauge(
    "quorate_metrics_left_out_group_offsets",
    "Committed offsets of groups that have no samples of their own (metrics.per.partition).",
)
COMMITTED_OFFSET = Gauge(
    "quorate_consumer_group_committed_offset",
    "Committed offset of a group, on its coordinator.",
    GROUP_PARTITION,
)
GROUP_LAG = Gauge(
    "quorate_consumer_group_lag_records",
    "Records between the committed offset of a group and the high watermark, on its coordinator, "
    "for partitions that have a replica there.",
    GROUP_PARTITION,
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
