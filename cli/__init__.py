"""The `quorate` command: it runs nodes and clusters, and administers them as Kafka's tools do.

Each command is a click command in the module of its name; a sub-package if it is large. Options,
output lines and exit codes follow Apache Kafka's tools where such a tool exists. main.py lists all
commands and imports a module only when its command runs, so that the start stays under 100 ms. No
command keeps state except in the directory of a local cluster (cluster_dir.py).

Files in reading order:

- main.py, errors.py: the table of commands, and the exit codes.
- client/: the blocking Kafka client that all commands against a cluster share.
- server.py, line_limit.py, readiness.py: one node as a process.
- cluster_dir.py, node_process.py, supervisor.py, up.py: a local cluster of processes.
- storage*.py: format, describe, verify and repair data directories.
- topics.py, topic_view.py, expanding.py, reassign*.py, leader_election.py, delete_records.py,
  get_offsets.py, log_dirs.py: topics and partitions.
- configs.py, features.py, feature_updates.py, cluster.py, broker_api_versions.py: cluster settings.
- metadata_quorum.py, quorum_voters.py, force_voters.py: the metadata quorum.
- console_producer.py, console_consumer.py, consumer_groups.py, group_*.py: clients and groups.
- status.py, status_watch.py, explanations.py: the state of a cluster at a glance.
- replica_*.py, dump_log.py, dump_lines.py: comparison of replicas, content of log files.
- history*.py, archives.py: questions to a metadata log (quorum/analytics).
- shell/, chaos/, demo/: the metadata shell, failure scenarios, a demonstration."""
