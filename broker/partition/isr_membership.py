"""The rules by which a leader proposes that a replica joins or leaves the ISR.

- A follower may join when it has caught up (`has_caught_up`) and its broker is eligible
  (`is_isr_eligible`).
- A member leaves when it has not been caught up within replica.lag.time.max.ms (`lagging`).

`replica_state.py` records the progress that the rules compare. `leadership.py` applies the rules
and proposes one change at a time (`isr_states.py`). The controller decides, and checks the
eligibility again (`quorum/controller/partitions/alter_partition.py`). `docs/protocol/isr.md` states
the reasons (rules 5 to 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quorate.broker.partition.replica_state import UNKNOWN_BROKER_EPOCH, ReplicaState
from quorate.quorum.directory_ids import is_online
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import Broker


def has_caught_up(replica: ReplicaState, high_watermark: int, epoch_start_offset: int) -> bool:
    """Return True if the follower has all committed records.

    It must have reached the leader's high watermark and the start of the leader epoch. Otherwise it
    could be elected without records that are committed above this leader's high watermark, which
    may lag at the start of an epoch (KAFKA-7128)."""
    return replica.end_offset >= max(high_watermark, epoch_start_offset)


def is_isr_eligible(replica: ReplicaState, broker: Broker | None, directory: Uuid) -> bool:
    """Return True if the controller would accept the replica in the ISR (KIP-841, KIP-858,
    KIP-903).

    `broker` is the registration of the replica's broker in the latest image, or None, and
    `directory` is the replica's log directory there. The broker must be active, the directory
    online, and the follower's last fetch must come from the registered incarnation."""
    return (
        broker is not None
        and broker.active
        and is_online(directory, broker.log_dirs)
        and replica.broker_epoch in (UNKNOWN_BROKER_EPOCH, broker.epoch)
    )


def lagging(
    followers: Iterable[int],
    replicas: Mapping[int, ReplicaState],
    end_offset: int,
    now_ms: int,
    lag_time_max_ms: int,
) -> tuple[int, ...]:
    """Return the members of the ISR that must leave it, in the order of `followers`.

    `followers` are the members without the leader. A member must leave if it is below the log end
    `end_offset` and has not been caught up within `lag_time_max_ms` (KAFKA-1546), or if it is not
    in `replicas`."""
    return tuple(
        each
        for each in followers
        if each not in replicas or not replicas[each].caught_up(end_offset, now_ms, lag_time_max_ms)
    )
