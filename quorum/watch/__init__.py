"""The HTTP interface of a node: health, readiness, metrics, and the changes of the metadata.

Decisions:

- Every node serves HTTP on the port that other nodes use. Each role of the node adds its readiness
  checks and its metrics.
- A request reads the node's objects when it arrives. The node stores nothing for monitoring, except
  the few figures in `measures.py`, the marks and changes of `life_cycle.py`, and the last text of
  /metrics, which is reused for a short time.
- A metric that Kafka also has is named as jmx_exporter names Kafka's. Our own metrics begin with
  `quorate_`.
- A request never stops the node. The number of requests and their share of the CPU are bounded
  (docs/limits.md).
- All code runs on the node's event loop.

Inputs: GET requests, and the node's Raft state, log and metadata image. Outputs: /healthz, /readyz,
/metrics, /v1/changes, /v1/recent-changes, /v1/stages, /v1/targets.

Files in reading order:

- `endpoints.py`: the HTTP endpoints of a node, with /healthz, /readyz and /v1/targets.
- `quorum_reach.py`: the voters that a node reaches, for /readyz and its log.
- `http_dispatch.py`: dispatch of requests, and their bounds.
- `changes.py`: /v1/changes.
- `life_cycle.py`: /v1/stages and /v1/recent-changes; `stage_marks.py`: the times at which a stage
  reached an offset; `recent_changes.py`: the newest changes that a controller decided.
- `metrics.py`: /metrics, and the metrics of every node.
- `node_view.py`: the parts of a node that these modules read.
- `measures.py`: latencies and rates; `loop_lag.py`: the lag of the event loop.
- `declaration.py`: metrics as Prometheus sees them; `metric_table.py`: those of every node, and of
  TLS, SASL, authorizers and quotas; `request_times.py`: the times of requests by API and stage.
"""
