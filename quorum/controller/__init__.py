"""The pure rules of Kafka's active controller (KIP-500, KIP-631).

Inputs: requests of brokers and of clients, replayed records, changes of broker connections,
outcomes of probes, and the time. Output: a `Result` that holds records for the metadata log, the
response, and probes that the caller must send.

Decisions that hold for the whole package:

- A rule is a function of (`Context`, request). It reads the latest image, which includes records
  that are appended but not yet committed, and it returns records. It never changes the image, but
  it may change soft state (see below).
- A rule whose work grows with one broker or one request is a generator. The caller makes no other
  decision between two of its steps (decision_steps.py).
- Replay is the only way in which cluster state changes. The caller appends a result's records,
  replays them, and passes the next image to `Controller.replayed` before the next input.
- The response leaves the node only after its records, and everything appended before them, are
  committed. The caller enforces this order.
- Sessions, facts about broker connections, probes and timers are soft state. No record holds them.
  Each activation starts the sessions and the timers again and keeps the facts about connections.
- Work that follows from one broker grows with the partitions of that broker and not with the
  cluster, because `PartitionIndex` keeps reverse indexes. Only an unfencing looks at all partitions
  without a leader.
- The package knows no Raft, no sockets and no clock. The thread of the node's event loop owns one
  `Controller` and calls it without concurrency.

Files in reading order:

- controller.py, rules.py: the inputs, and the table that maps a request class to its rule
- context.py, result.py, decision_steps.py, settings.py, messages.py: a rule's input, its output
  (complete or in steps), the configuration, and the node-to-node messages
- registration.py, heartbeat.py, broker_states.py, sessions.py, hints.py: the life of a broker
  (docs/differences.md, "Failures are noticed sooner")
- broker_changes.py, elections.py, partition_change.py, partition_states.py: leaders and ISRs
- eligible_leaders.py, min_isr_configs.py: eligible leader replicas (KIP-966, part 1)
- unclean_elections.py, replica_log_queries.py, unclean_recovery.py: unclean elections (KIP-966,
  part 2)
- reassign.py, reassignment_completion.py: the start and the end of a reassignment
- alter_partition.py, elect_leaders.py: changes of one partition that a leader or an administrator
  requests
- topics.py, partitions.py, assignments.py, topic_names.py, directories.py, placement.py,
  placement_balance.py: new topics and partitions
- client_quotas.py: the quotas of clients
- configs.py, config_resources.py, topic_configs.py: dynamic configs
- controller_registration.py: the registration of the other controllers
- features.py, update_features.py, producer_ids.py, unregister.py: the remaining requests
- scheduled_elections.py, periodic_tasks.py: work that no request starts
- partition_index.py: the reverse indexes

Sources of the rules:

- Apache Kafka 4.1: QuorumController and its managers
- KIP-455 (reassignment), KIP-460 (ElectLeaders), KIP-497 (AlterPartition)
- KIP-841 (a fenced replica may not join an ISR), KIP-858 (directories)
- KIP-584 and KIP-778 (features), KIP-868 (metadata transactions)
- docs/differences.md: every departure from Kafka
"""
