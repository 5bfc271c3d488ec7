"""The rules of one partition replica, as pure code: append, replicate, truncate, and change the
ISR.

Decisions: may a batch be appended, is a record committed, is a follower in sync, where must a
follower truncate, is a producer's batch new.

Inputs: requests of clients and followers, the metadata image's state of the partition, answers of
the controller, and the time. Outputs: appends and truncations of a log, the high watermark, errors,
and at most one proposed ISR change.

In reading order:

- `partition.py`: one replica and the work of its leader; `local_replica.py`: the work of a
  follower.
- `leadership.py`: the followers, the ISR and the high watermark of one leadership;
  `isr_membership.py`: the rules by which a follower joins and leaves the ISR; `isr_states.py`: the
  states of the ISR; `replica_state.py`: the progress of one follower.
- `truncation.py`: the offset at which two logs diverge.
- `validation.py`: the checks of a client's batch.
- `producer_state.py`: the sequence numbers of idempotent producers; `partition_producers.py`: these
  states while they are loaded.
- `settings.py`, `partition_log.py`: what an operator sets, and what a log offers.

Sources: KIP-101 and KIP-279 (truncation), KIP-497 (AlterPartition), KIP-966 (high watermark and min
ISR), KIP-98 and KIP-360 (idempotent producers). `docs/protocol/isr.md` and
`docs/protocol/log-divergence.md` state the rules with their tests.
"""
