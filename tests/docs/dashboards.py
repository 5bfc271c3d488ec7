"""The Grafana dashboards of config/deployment/dashboards, made from tables of panels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[2] / "config" / "deployment" / "dashboards"
COLUMNS, WIDTH, HEIGHT = 2, 12, 8
"""The panels in one row, and the size of a panel in Grafana's grid of 24 columns."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
NODE = "node {{node_id}}"


class Panel(NamedTuple):
    """One diagram: its title, its unit in Grafana, and (expression, legend) of each line."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]


def line(title: str, unit: str, expression: str, legend: str = NODE) -> Panel:
    """Return a panel with one expression."""
    return Panel(title, unit, ((expression, legend),))


def percentiles(title: str, metric: str, selector: str = "", by: str = "node_id") -> Panel:
    """Return a panel with the 50th and the 99th percentile of a histogram."""
    rate = f"sum by (le, {by}) (rate({metric}_bucket{selector}[$__rate_interval]))"
    lines = ((q, f"histogram_quantile({q}, {rate})") for q in (0.5, 0.99))
    return Panel(
        title, "s", tuple((expression, f"p{q * 100:g} {{{{{by}}}}}") for q, expression in lines)
    )


def per_second(metric: str, by: str, selector: str = "") -> str:
    """Return the expression of a counter's rate."""
    return f"sum by ({by}) (rate({metric}{selector}[$__rate_interval]))"


CONTROLLER = "kafka_controller_kafkacontroller_"
REPLICAS = "kafka_server_replicamanager_"
TRAFFIC = "kafka_server_brokertopicmetrics_"
RAFT = "kafka_server_raftmetrics_"
OF_ALL = '{topic=""}'

DASHBOARDS: dict[str, tuple[Panel, ...]] = {
    "cluster": (
        line("Nodes that answer", "short", 'sum by (role) (up{job="quorate"})', "{{role}}"),
        line("Active controllers", "short", f"sum({CONTROLLER}activecontrollercount)", "active"),
        Panel(
            "Unhealthy partitions",
            "short",
            (
                (f"max({CONTROLLER}offlinepartitionscount)", "offline"),
                (f"sum({REPLICAS}underminisrpartitioncount)", "under min ISR"),
                (f"sum({REPLICAS}underreplicatedpartitions)", "under-replicated"),
                (f"sum({REPLICAS}reassigningpartitions)", "reassigning"),
            ),
        ),
        Panel(
            "Brokers",
            "short",
            (
                (f"max({CONTROLLER}activebrokercount)", "active"),
                (f"max({CONTROLLER}fencedbrokercount)", "fenced"),
            ),
        ),
        line("Bytes in", "Bps", per_second(f"{TRAFFIC}bytesin_total", "node_id", OF_ALL)),
        line("Bytes out", "Bps", per_second(f"{TRAFFIC}bytesout_total", "node_id", OF_ALL)),
        line(
            "Changes of leaders",
            "cps",
            per_second("quorate_controller_leader_changes_total", "kind, cause"),
            "{{kind}}: {{cause}}",
        ),
        line(
            "Free space of the log directories",
            "percentunit",
            "quorate_log_directory_free_bytes / quorate_log_directory_volume_bytes",
            NODE + " {{logdirectory}}",
        ),
        line("CPU", "percentunit", "rate(process_cpu_seconds_total[$__rate_interval])"),
        line("Memory", "bytes", "process_resident_memory_bytes"),
    ),
    "quorum": (
        line("Role", "short", f"{RAFT}current_state", NODE + " {{current_state}}"),
        line("Epoch", "short", f"{RAFT}current_epoch"),
        line("Records committed", "cps", f"rate({RAFT}high_watermark[$__rate_interval])"),
        percentiles("Metadata flush", "quorate_metadata_flush_seconds"),
        percentiles("Elections", "quorate_raft_election_seconds"),
        line(
            "Ends of elections",
            "short",
            "increase(quorate_raft_elections_total[$__rate_interval])",
            NODE + " {{role}}",
        ),
        percentiles("Wait for the decision", "quorate_controller_queue_seconds"),
        percentiles("Decision", "quorate_controller_processing_seconds"),
        line("Requests that wait", "short", "quorate_controller_queued_requests"),
        line("Answers that wait for a commit", "short", "quorate_controller_uncommitted_answers"),
        percentiles("From commit to replay", "quorate_metadata_replay_lag_seconds"),
        line("Records not replayed", "short", "quorate_metadata_unreplayed_records"),
    ),
    "broker": (
        line(
            "Requests",
            "reqps",
            per_second("kafka_network_requestmetrics_requests_total", "request"),
            "{{request}}",
        ),
        percentiles(
            "Produce", "quorate_request_seconds", '{request="Produce",stage="total"}', "node_id"
        ),
        percentiles("Produce by stage", "quorate_request_seconds", '{request="Produce"}', "stage"),
        percentiles("Fetch by stage", "quorate_request_seconds", '{request="Fetch"}', "stage"),
        percentiles("Append", "quorate_log_append_seconds"),
        percentiles("Flush of partition logs", "quorate_log_flush_seconds"),
        percentiles("Lag of the event loop", "quorate_event_loop_lag_seconds"),
        line("Idle time of the event loop", "percentunit", f"{RAFT}poll_idle_ratio_avg"),
        line(
            "Delayed requests",
            "short",
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            NODE + " {{delayedoperation}}",
        ),
        line("Connections", "short", "kafka_server_socket_server_metrics_connections"),
        line(
            "Memory of messages",
            "bytes",
            "quorate_memory_used_bytes",
            NODE + " {{kind}}",
        ),
        line(
            "Failed requests",
            "cps",
            per_second("quorate_requests_failed_total", "node_id, request"),
            NODE + " {{request}}",
        ),
    ),
    "replication": (
        line("Under-replicated partitions", "short", f"{REPLICAS}underreplicatedpartitions"),
        line("Partitions under min ISR", "short", f"{REPLICAS}underminisrpartitioncount"),
        line("ISR shrinks", "cps", per_second(f"{REPLICAS}isrshrinks_total", "node_id")),
        line("ISR expansions", "cps", per_second(f"{REPLICAS}isrexpands_total", "node_id")),
        percentiles("AlterPartition round trip", "quorate_isr_round_trip_seconds"),
        line("ISR changes that wait", "short", "quorate_isr_proposals_waiting"),
        line("Largest lag", "short", "kafka_server_replicafetchermanager_maxlag"),
        line(
            "Lag by topic",
            "short",
            "max by (topic) (kafka_server_fetcherlagmetrics_consumerlag)",
            "{{topic}}",
        ),
        line(
            "Replicated bytes",
            "Bps",
            per_second(f"{TRAFFIC}replicationbytesin_total", "node_id", OF_ALL),
        ),
        line(
            "Bytes of reassignments",
            "Bps",
            per_second(f"{TRAFFIC}reassignmentbytesin_total", "node_id", OF_ALL),
        ),
        line("Leaders", "short", f"{REPLICAS}leadercount"),
        percentiles("From commit to action", "quorate_metadata_acting_lag_seconds"),
    ),
    "groups": (
        line(
            "Lag by group",
            "short",
            "sum by (group) (quorate:consumer_group_lag_records)",
            "{{group}}",
        ),
        line(
            "Lag by topic",
            "short",
            "sum by (group, topic) (quorate:consumer_group_lag_records)",
            "{{group}} {{topic}}",
        ),
        line(
            "Consumed records",
            "cps",
            "sum by (group) (rate(quorate_consumer_group_committed_offset[$__rate_interval]))",
            "{{group}}",
        ),
        line("Groups by coordinator", "short", "quorate_groups"),
        percentiles(
            "JoinGroup", "quorate_request_seconds", '{request="JoinGroup",stage="total"}', "node_id"
        ),
        percentiles(
            "OffsetCommit",
            "quorate_request_seconds",
            '{request="OffsetCommit",stage="total"}',
            "node_id",
        ),
        line("Shards that failed to load", "short", "quorate_groups_failed_shards"),
        line("Offsets without samples", "short", "quorate_metrics_left_out_group_offsets"),
    ),
}


def files() -> dict[Path, str]:
    """Return the text of each dashboard, by its file."""
    return {
        FOLDER / f"{name}.json": json.dumps(dashboard(name, panels), indent=1) + "\n"
        for name, panels in DASHBOARDS.items()
    }


def dashboard(name: str, panels: tuple[Panel, ...]) -> dict[str, Any]:
    """Return a dashboard in Grafana's format."""
    return {
        "uid": f"quorate-{name}",
        "title": f"Quorate: {name}",
        "tags": ["quorate"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_panel(index, panel) for index, panel in enumerate(panels)],
    }


def _panel(index: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(index, COLUMNS)
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for at, (expression, legend) in enumerate(panel.lines)
        ],
    }
