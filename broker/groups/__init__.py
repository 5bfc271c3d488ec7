"""The group coordinator: consumer groups of Kafka's classic protocol, and their committed offsets.

Decisions:

- One shard coordinates the groups of one partition of __consumer_offsets. The leader of the
  partition owns the shard. A group id is mapped to its partition by Java's string hash, as in
  Kafka.
- A shard is rebuilt from the log of its partition. No other state survives a restart or a change of
  leader.
- A record is applied when it is appended. A response that depends on it is sent when the record is
  committed (acks=all).
- The rules do not know about replication: they write to the interface in `journal.py`.
- All code runs on the broker's event loop. No call blocks.

Inputs: requests of clients, timers, and the committed metadata image, which says which partitions
this broker leads. Outputs: responses, and records appended to __consumer_offsets.

Files in reading order:

- `coordinator.py`, `shard_context.py`: the shards of this broker; loading, routing, and rebuilding
  after a failure.
- `partition_of.py`: the partition that stores a group.
- `shard.py`: the requests to the groups of one partition.
- `state.py`, `group.py`, `member.py`, `subscription.py`: one group and its members.
- `rebalance.py`, `joining.py`, `membership.py`: the join phase, the sync phase and sessions.
- `offsets.py`, `offset_requests.py`, `expiration.py`: committed offsets.
- `records.py`, `group_record.py`, `journal.py`, `replicated_journal.py`, `loading.py`: the log.
- `background.py`, `guarded.py`: long work in steps, and work that raises.
- `responses.py`, `descriptions.py`, `reply.py`, `client_errors.py`, `settings.py`: support.

Sources: KIP-134 (initial rebalance delay), KIP-211 (offset expiration), KIP-345 (static members),
KIP-389 (group.max.size), KIP-394 (MEMBER_ID_REQUIRED), KIP-496 (OffsetDelete), KIP-814 (skipped
assignment). The groups of KIP-848 and later protocols are not supported. Departures from Kafka are
listed in docs/differences.md.
"""
