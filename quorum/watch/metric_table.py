"""The metrics of every node, of its TLS listeners, of SASL, authorizers and quotas.

`declaration.py` explains the names.
"""

from __future__ import annotations

from quorate.quorum.watch.declaration import Counter, Durations, Gauge

RAFT = "kafka_server_raftmetrics_"
SOCKET_SERVER = "kafka_server_socket_server_metrics_"
CLIENT = ("user", "client_id")
LISTENER = ("listener",)
KIND = ("kind",)

# --- the metadata quorum

CURRENT_STATE = Gauge(
    f"{RAFT}current_state",
    "The role in the metadata quorum. The value is always 1.",
    ("current_state",),
)
CURRENT_LEADER = Gauge(f"{RAFT}current_leader", "Id of the quorum's leader, -1: not known.")
CURRENT_VOTE = Gauge(
    f"{RAFT}current_vote", "Id of the node that this node voted for in this epoch, -1: none."
)
CURRENT_EPOCH = Gauge(f"{RAFT}current_epoch", "Epoch of the metadata quorum.")
HIGH_WATERMARK = Gauge(f"{RAFT}high_watermark", "Records below it are committed.")
LOG_END_OFFSET = Gauge(f"{RAFT}log_end_offset", "Offset of the next record of the metadata log.")
LOG_END_EPOCH = Gauge(f"{RAFT}log_end_epoch", "Epoch of the last record of the metadata log.")
UNKNOWN_VOTER_CONNECTIONS = Gauge(
    f"{RAFT}number_unknown_voter_connections", "Voters without a connection."
)
APPEND_RECORDS_RATE = Gauge(
    f"{RAFT}append_records_rate", "Records appended per second as the leader."
)
FETCH_RECORDS_RATE = Gauge(
    f"{RAFT}fetch_records_rate", "Records fetched per second from the leader."
)
COMMIT_LATENCY_AVG = Gauge(f"{RAFT}commit_latency_avg", "Average from append to commit, ms.")
COMMIT_LATENCY_MAX = Gauge(f"{RAFT}commit_latency_max", "Maximum from append to commit, ms.")
ELECTION_LATENCY_AVG = Gauge(f"{RAFT}election_latency_avg", "Average without a leader, ms.")
ELECTION_LATENCY_MAX = Gauge(f"{RAFT}election_latency_max", "Maximum without a leader, ms.")
POLL_IDLE_RATIO_AVG = Gauge(
    f"{RAFT}poll_idle_ratio_avg", "Share of time in which the node's event loop did not compute."
)
ELECTIONS = Counter(
    "quorate_raft_elections_total",
    "Ends of elections of the metadata quorum, by the role of this node after them.",
    ("role",),
)
ELECTION_TIME = Durations(
    "quorate_raft_election_seconds", "Time without a leader of the metadata quorum."
)
METADATA_FLUSH_TIME = Durations(
    "quorate_metadata_flush_seconds",
    "Time of a flush of the metadata log, with the wait for the disk's thread.",
)
LOOP_LAG = Durations(
    "quorate_event_loop_lag_seconds", "Time by which a timer of the event loop fires too late."
)
CLAIMS_REFUSED = Counter(
    "quorate_raft_claims_refused_total",
    "Claims of other nodes that contradict this node's log or election.",
)

# --- the metadata image

UNREPLAYED_RECORDS = Gauge(
    "quorate_metadata_unreplayed_records",
    "Committed metadata records that this node has not replayed.",
)
REPLAY_LAG = Durations(
    "quorate_metadata_replay_lag_seconds",
    "Time from the moment at which this node knows of a commit to its replay.",
)
METADATA_VERSION = Gauge(
    "kafka_server_metadataloader_currentmetadataversion", "The finalized metadata.version."
)
CONTROLLER_ID = Gauge(
    "kafka_server_metadataloader_currentcontrollerid",
    "The active controller as this node knows it, -1: none.",
)
SNAPSHOTS_LOADED = Gauge(
    "kafka_server_metadataloader_handleloadsnapshotcount",
    "Snapshots that were loaded since the node started.",
)
SNAPSHOT_BYTES = Gauge(
    "kafka_server_snapshotemitter_latestsnapshotgeneratedbytes", "Size of the latest snapshot."
)
SNAPSHOT_AGE = Gauge(
    "kafka_server_snapshotemitter_latestsnapshotgeneratedagems",
    "Age of the last record in the latest snapshot, ms. NaN: there is none.",
)

# --- the work and the memory of peers

MEMORY_USED = Gauge(
    "quorate_memory_used_bytes", "Bytes that connections hold, above 16 KiB each.", KIND
)
MEMORY_LIMIT = Gauge(
    "quorate_memory_limit_bytes", "Bytes that all connections together may hold.", KIND
)
MEMORY_HOLDERS = Gauge(
    "quorate_memory_holding_connections", "Connections that hold more than 16 KiB.", KIND
)
MEMORY_CLOSED = Counter(
    "quorate_memory_closed_connections_total",
    "Connections closed because the budget was used up, or held for too long.",
    KIND,
)
WORK_CPU = Counter("quorate_work_cpu_seconds_total", "CPU time of sliced requests.")
WORK_SLICES = Counter("quorate_work_slices_total", "Slices of sliced requests.")
WORK_CUT_OFF = Counter("quorate_work_cut_off_total", "Requests cut off because of their CPU time.")
WORK_WAITING = Gauge("quorate_work_waiting", "Connections whose sliced work waits.")
REQUESTS_REFUSED = Counter(
    "quorate_requests_refused_total",
    "Kafka requests that closed their connection, because they were malformed or are not served.",
    ("request",),
)
NODE_LINKS_REFUSED = Counter(
    "quorate_node_links_refused_total",
    "Links that this node accepted or opened, and that one end refused in the handshake of nodes.",
    ("direction",),
)
NODE_LINKS_DISPLACED = Counter(
    "quorate_node_links_displaced_total",
    "Links of nodes that were closed to make room, `silent` or `useful` after a valid request.",
    ("link",),
)
NODE_REQUESTS_FAILED = Counter(
    "quorate_node_requests_failed_total",
    "Requests of other nodes that failed by an exception that no handler expected.",
    ("message",),
)

# --- TLS

TLS_HANDSHAKES = Counter("quorate_tls_handshakes_total", "Complete TLS handshakes.", LISTENER)
TLS_EXPIRY = Gauge(
    "quorate_tls_certificate_expiry_seconds",
    "End of validity of the certificate in use, in seconds since 1970.",
    LISTENER,
)
TLS_RELOADS = Counter(
    "quorate_tls_reloads_total", "Changed certificates that are in use now.", LISTENER
)
TLS_FAILED_RELOADS = Counter(
    "quorate_tls_failed_reloads_total", "Changed certificates that could not be used.", LISTENER
)
TLS_FAILED_HANDSHAKES = Counter(
    "quorate_tls_failed_handshakes_total",
    "Failed TLS handshakes, by reason.",
    ("listener", "reason"),
)

# --- SASL

SASL_SUCCESSFUL = Counter(
    f"{SOCKET_SERVER}successful_authentication_total",
    "Authentications of clients by SASL, and repeated ones.",
    LISTENER,
)
SASL_FAILED = Counter(
    f"{SOCKET_SERVER}failed_authentication_total",
    "Failed authentications of clients by SASL.",
    LISTENER,
)
SASL_EXPIRED = Counter(
    f"{SOCKET_SERVER}expired_connections_killed_total",
    "Connections that were closed because a request came after the session.",
    LISTENER,
)
TOKEN_KEYS = Gauge(
    "quorate_oauthbearer_keys", "Keys that can verify tokens of OAUTHBEARER.", LISTENER
)
KEY_REFRESHES = Counter(
    "quorate_oauthbearer_key_refreshes_total",
    "Attempts to read the keys that verify tokens, which succeeded.",
    LISTENER,
)
FAILED_KEY_REFRESHES = Counter(
    "quorate_oauthbearer_failed_key_refreshes_total",
    "Attempts to read the keys that verify tokens, which failed.",
    LISTENER,
)

# --- authorizers. Both roles of a combined node have their own.

BROKER_ACLS = Gauge("quorate_broker_authorizer_acls", "ACLs (acls-total-count).")
BROKER_DECISIONS = Counter(
    "quorate_broker_authorizer_decisions_total",
    "Decisions about operations of clients, without those that only filter a list.",
    ("result",),
)
CONTROLLER_ACLS = Gauge("quorate_controller_authorizer_acls", "ACLs (acls-total-count).")
CONTROLLER_DECISIONS = Counter(
    "quorate_controller_authorizer_decisions_total",
    "Decisions about operations of clients, without those that only filter a list.",
    ("result",),
)

# --- quotas of clients. A label is empty if clients with all its values share the quota.

QUOTA_THROTTLED = Counter(
    "quorate_quota_throttled_total",
    "Requests, or new connections, that were throttled.",
    ("quota",),
)
QUOTA_THROTTLE_TIME = Counter(
    "quorate_quota_throttle_seconds_total", "The sum of the throttle times.", ("quota",)
)
QUOTA_CLIENTS_LEFT_OUT = Gauge(
    "quorate_metrics_left_out_quota_clients",
    "Clients with a quota that have no samples of their own (metrics.per.partition).",
    ("quota",),
)
PRODUCE_RATE = Gauge(
    "kafka_server_produce_byte_rate", "The use that producer_byte_rate bounds.", CLIENT
)
PRODUCE_THROTTLE = Gauge(
    "kafka_server_produce_throttle_time",
    "The average throttle time under producer_byte_rate, ms.",
    CLIENT,
)
FETCH_RATE = Gauge(
    "kafka_server_fetch_byte_rate", "The use that consumer_byte_rate bounds.", CLIENT
)
FETCH_THROTTLE = Gauge(
    "kafka_server_fetch_throttle_time",
    "The average throttle time under consumer_byte_rate, ms.",
    CLIENT,
)
REQUEST_TIME = Gauge(
    "kafka_server_request_request_time", "The use that request_percentage bounds.", CLIENT
)
REQUEST_THROTTLE = Gauge(
    "kafka_server_request_throttle_time",
    "The average throttle time under request_percentage, ms.",
    CLIENT,
)
