"""The `quorate` command: it runs nodes and clusters, and administers them as Kafka's tools do.

Each command is a click command in the module of its name, or in command.py of its folder. Options,
output lines and exit codes follow those of Apache Kafka's tool, if Kafka has one. main.py lists all
commands. It imports a module only when its command runs, because the start must stay under 100 ms.

- main.py, suggesting_group.py, examples.py, completion.py: the table of commands, and what all of
  them have. client/ has their blocking Kafka client, with the exit codes in errors.py. terminal/
  has tables and progress.
- nodes/: `server`, `up` and `down`, the processes of nodes. storage/: their directories.
- topics/, delete_records.py, get_offsets.py, log_ends.py, leader_election.py, log_dirs.py: topics
  and partitions.
- reassign/: moves of replicas. replica_verification/: equality of replicas.
- configs/, features/, cluster/, broker_api_versions.py: the cluster and its brokers.
  metadata_quorum/: its controllers.
- console_producer.py, console_consumer.py: records in and out. groups/: consumer groups.
- status/: the state of a cluster, with causes.
- dump_log/, shell/: the content of files. history/, state_changes/: what happened.
- chaos/, demo/: failure scenarios, and a demonstration."""
