"""The metrics of a controller. `quorum/watch/declaration.py` explains the names."""

from __future__ import annotations

from quorate.quorum.watch.declaration import Counter, Durations, Gauge

CONTROLLER = "kafka_controller_kafkacontroller_"
STATS = "kafka_controller_controllerstats_"

# --- the cluster

ACTIVE = Gauge(f"{CONTROLLER}activecontrollercount", "1 on the active controller, else 0.")
ACTIVE_BROKERS = Gauge(f"{CONTROLLER}activebrokercount", "Registered brokers that are not fenced.")
FENCED_BROKERS = Gauge(f"{CONTROLLER}fencedbrokercount", "Registered brokers that are fenced.")
SHUTTING_DOWN_BROKERS = Gauge(
    f"{CONTROLLER}controlledshutdownbrokercount", "Registered brokers in a controlled shutdown."
)
BROKER_STATE = Gauge(
    f"{CONTROLLER}brokerregistrationstate",
    "The state of each registered broker: 10 fenced, 20 in a controlled shutdown, 30 active.",
    ("broker",),
)
SINCE_HEARTBEAT = Gauge(
    f"{CONTROLLER}timesincelastheartbeatreceivedms",
    "The time since the last heartbeat of each unfenced broker, ms, on the active controller.",
    ("broker",),
)
IGNORED_STATIC_VOTERS = Gauge(
    f"{CONTROLLER}ignoredstaticvoters",
    "1 if controller.quorum.voters is set and the metadata log has the voters.",
)
TOPICS = Gauge(f"{CONTROLLER}globaltopiccount", "Topics.")
PARTITIONS = Gauge(f"{CONTROLLER}globalpartitioncount", "Partitions.")
OFFLINE_PARTITIONS = Gauge(f"{CONTROLLER}offlinepartitionscount", "Partitions without a leader.")
IMBALANCED_PARTITIONS = Gauge(
    f"{CONTROLLER}preferredreplicaimbalancecount",
    "Partitions whose leader is not their preferred one.",
)
BROKER_UNREPLAYED = Gauge(
    "quorate_controller_broker_unreplayed_records",
    "Metadata records that the broker had not replayed at its last heartbeat.",
    ("broker",),
)

# --- this controller

LAST_APPLIED_OFFSET = Gauge(f"{CONTROLLER}lastappliedrecordoffset", "The last record replayed.")
LAST_APPLIED_TIMESTAMP = Gauge(
    f"{CONTROLLER}lastappliedrecordtimestamp", "The time of the last record replayed, ms."
)
LAST_APPLIED_LAG = Gauge(
    f"{CONTROLLER}lastappliedrecordlagms", "The age of the last record replayed, ms."
)
LAST_COMMITTED_OFFSET = Gauge(
    f"{CONTROLLER}lastcommittedrecordoffset", "The last record known to be committed."
)
METADATA_ERRORS = Gauge(
    f"{CONTROLLER}metadataerrorcount", "Errors in the metadata. One stops the node."
)
NEW_CONTROLLERS = Gauge(
    f"{CONTROLLER}newactivecontrollerscount",
    "Active controllers that this node has seen take office.",
)
EXPIRED_SESSIONS = Gauge(
    f"{CONTROLLER}timedoutbrokerheartbeatcount",
    "Broker sessions that expired while this node was active.",
)
OPERATIONS = Gauge(f"{CONTROLLER}eventqueueoperationsstartedcount", "Requests and events decided.")
OPERATIONS_TIMED_OUT = Gauge(
    f"{CONTROLLER}eventqueueoperationstimedoutcount",
    "Requests that waited longer than their timeout, or found the queue full.",
)
FAILED_REQUESTS = Counter(
    "quorate_controller_failed_requests_total",
    "Requests refused because a rule or its records failed in an unexpected way.",
)
QUEUED_REQUESTS = Gauge(
    "quorate_controller_queued_requests",
    "Requests that wait for the decision of the active controller.",
)
OLDEST_QUEUED_REQUEST = Gauge(
    "quorate_controller_oldest_queued_request_seconds",
    "Age of the oldest request that waits for the decision.",
)
QUEUE_TIME = Durations(
    "quorate_controller_queue_seconds", "Wait of a request for the decision of the controller."
)
PROCESSING_TIME = Durations(
    "quorate_controller_processing_seconds",
    "Time of the decision of a request, or of the first step of a long decision.",
)
REQUEST_TIME = Durations(
    "quorate_controller_request_seconds",
    "Requests of clients to the controller's port, as a whole and by stage (request_times.py).",
    ("request", "stage"),
)
UNCOMMITTED_ANSWERS = Gauge(
    "quorate_controller_uncommitted_answers", "Answers that wait for a commit."
)
MUTATIONS_THROTTLED = Counter(
    "quorate_controller_mutations_throttled_total",
    "Requests that controller_mutation_rate throttled.",
)
MUTATION_THROTTLE_TIME = Counter(
    "quorate_controller_mutation_throttle_seconds_total",
    "The sum of the throttle times under controller_mutation_rate.",
)

# --- elections of leaders of partitions

LEADER_CHANGES = Counter(
    "quorate_controller_leader_changes_total",
    "Changes of leaders that this controller has appended: clean, unclean or lost, with the cause.",
    ("kind", "cause"),
)
UNCLEAN_ELECTIONS = Counter(
    f"{STATS}uncleanleaderelections_total", "Leaders elected that may lack committed records."
)
ELR_ELECTIONS = Counter(
    f"{STATS}electionfromeligibleleaderreplicas_total",
    "Leaders elected from the eligible leader replicas, without data loss.",
)
