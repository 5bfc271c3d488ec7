"""The `quorate` command: it runs nodes and clusters, and administers them as Kafka's tools do.

Each command is a click command in the module of its name, or in a sub-package if it is large.
Options, output lines and exit codes follow those of Apache Kafka's tool, if Kafka has one. main.py
lists all commands. It imports a module only when its command runs, because the start must stay
under 100 ms.

Files in reading order:

- main.py, client/errors.py: the table of commands, and the exit codes.
- client/: the blocking Kafka client that all commands against a cluster share.
- server.py, node_process.py, log_format.py, line_limit.py: one node as a process.
- cluster_dir.py, cluster_processes.py, ports_in_use.py, supervisor.py, readiness.py, up.py,
  down.py: a local cluster of processes.
- storage.py, storage_verify.py, storage_declare.py, storage_epoch.py: data directories.
- topics.py, topic_view.py, delete_records.py, get_offsets.py, leader_election.py, log_dirs.py:
  topics and partitions.
- reassign_partitions.py, reassignment_plan.py, reassignments.py, partition_files.py: moves of
  replicas.
- configs.py, features.py, feature_updates.py, feature_tables.py,
  broker_api_versions.py: the cluster. cluster.py, cluster_description.py, broker_removal.py,
  decommission.py, drain_plan.py: its brokers.
- metadata_quorum.py, quorum_voters.py, force_voters.py: the metadata quorum.
- console_producer.py, console_consumer.py: records in and out.
- consumer_groups.py, group_view.py, group_resets.py, log_ends.py: consumer groups.
- status.py, cluster_status.py, partition_problems.py, status_watch.py, quorum_health.py,
  explanations.py, unclean_elections.py: the state of a cluster; status_changes.py, node_stages.py,
  changes_in_flight.py: the changes in flight.
- replica_verification.py, replica_fetches.py, replica_comparison.py: equality of replicas.
- dump_log.py, dump_lines.py: the content of log files.
- history*.py, archives.py, decompression.py: questions to a
  metadata log (quorum/analytics), which may be in an archive.
- state_changes.py, state_change_merge.py: the story of partitions from the logs of all nodes.
- shell/, chaos/, demo/: the metadata shell, failure scenarios, a demonstration."""
