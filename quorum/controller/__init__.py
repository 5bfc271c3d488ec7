"""The pure rules of Kafka's active controller (KIP-500, KIP-631).

Inputs: requests of brokers and of clients, replayed records, changes of broker connections,
outcomes of probes, and the time. Output: a `Result` that holds records for the metadata log, the
response, and probes that the caller must send.

Decisions that hold for the whole package:

- A rule is a function of (`Context`, request). It reads the latest image, which includes records
  that are appended but not yet committed, and it returns records. It never changes the image, but
  it may change soft state (see below).
- A rule whose work grows with one broker or one request is a generator. The caller makes no other
  decision between two of its steps (state/decision_steps.py).
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

In reading order:

- controller.py, rules.py: the inputs, and the table that maps a request class to its rule.
  periodic_tasks.py: the schedule of the work that no request starts.
- state/: what a rule gets and returns: the indexes of the image, and the soft state.
- brokers/: the life of a broker, and the leaders and ISRs that follow from it.
- partitions/: the leader, the ISR and the replicas of existing partitions.
- topics/: new topics and partitions.
- configs/, features/, clients/: what administrators set.

Sources of the rules:

- Apache Kafka 4.1: QuorumController and its managers
- KIP-455 (reassignment), KIP-460 (ElectLeaders), KIP-497 (AlterPartition)
- KIP-841 (a fenced replica may not join an ISR), KIP-858 (directories)
- KIP-584 and KIP-778 (features), KIP-868 (metadata transactions)
- docs/differences.md: every departure from Kafka
"""
