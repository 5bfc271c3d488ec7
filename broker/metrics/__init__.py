"""The metrics that a broker adds to /metrics.

Decisions:

- A scrape reads the broker's objects. Nothing is stored for metrics except counters and histograms.
- A metric of partitions has one sample for each partition that is hosted here, up to
  `metrics.per.partition` of them. Metrics of topics and of groups have the same bound. Sums for the
  broker always cover everything.
- All modules are imported at the first scrape, because they import prometheus_client.

Input: a running broker (`MetricSources`). Output: metric families.

Files in reading order:

- `replica_table.py`, `service_table.py`: the declaration of each metric.
- `scrape.py`: all metrics of a broker.
- `replicas.py`: replicas, ISRs and partitions; `traffic.py`: topics and fetchers; `requests.py`:
  requests of clients; `groups.py`: groups and their lag; `logs.py`: log directories;
  `cleaner.py`: the log cleaner.
"""
