"""The rules by which a leader names the replica that a consumer should read from (KIP-392).

`replica.selector.class` names a rule. Without one, every consumer reads from the leader.

| selector                      | choice                                                           |
|-------------------------------|------------------------------------------------------------------|
| Kafka's RackAwareReplica-     | the leader if it is in the consumer's rack, otherwise the        |
| Selector                      | follower there with the highest log end offset                   |
| quorate.LeastLoadedReplica-   | the follower to which this leader has sent the fewest readers,   |
| Selector                      | in the consumer's rack if a replica is there, otherwise anywhere |

Invariant: only a member of the committed ISR whose log contains the consumer's offset is named. A
follower that lags could not serve the consumer, and the leader would name it again and again
(KAFKA-14372).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from quorate.broker.partition.leadership import Leadership

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEAST_LOADED = "quorate.LeastLoadedReplicaSelector"


class Follower(NamedTuple):
    """A follower that can serve a consumer. `caught_up_ms` is the time at which it last had
    everything that the leader had, or -1."""

    broker_id: int
    rack: str | None
    end_offset: int
    caught_up_ms: int


Selector = Callable[[Sequence[Follower], str | None, str, Mapping[int, int]], int | None]
"""A function from the followers, the rack of the leader, the rack of the consumer ("" if it has
none), and the number of readers sent to each broker, to a follower's broker id, or None for the
leader."""


def readable_followers(
    leadership: Leadership, offset: int, rack_of: Callable[[int], tuple[bool, str | None]]
) -> list[Follower]:
    """Return the members of the committed ISR whose log contains `offset`, without the leader.

    `rack_of` returns True with the rack of a broker that the consumer can reach, or False. The
    offsets of a follower are those of its last fetch."""
    found = []
    for broker_id in leadership.isr.committed:
        replica = leadership.replicas.get(broker_id)
        if replica is None or not 0 <= replica.start_offset <= offset <= replica.end_offset:
            continue
        reachable, rack = rack_of(broker_id)
        if reachable:
            caught_up_ms = replica.last_caught_up_ms
            found.append(
                Follower(
                    broker_id,
                    rack,
                    replica.end_offset,
                    -1 if caught_up_ms is None else caught_up_ms,
                )
            )
    return found


def rack_aware(
    followers: Sequence[Follower],
    leader_rack: str | None,
    rack: str,
    readers: Mapping[int, int],
) -> int | None:
    """Return the most caught-up follower in the consumer's rack, or None if the leader is in that
    rack, no follower is, or the consumer has no rack."""
    if not rack or leader_rack == rack:
        return None
    near = [each for each in followers if each.rack == rack]
    if not near:
        return None
    return max(near, key=lambda each: (each.end_offset, each.caught_up_ms)).broker_id


def least_loaded(
    followers: Sequence[Follower],
    leader_rack: str | None,
    rack: str,
    readers: Mapping[int, int],
) -> int | None:
    """Return the follower with the fewest readers, or None if there is no follower to choose from.

    If a replica is in the consumer's rack, the choice is limited to that rack. The leader is chosen
    only if no follower can be, because the leader already serves the producers and the followers.
    The more caught-up follower wins a tie."""
    near = [each for each in followers if rack and each.rack == rack]
    if not near and rack and leader_rack == rack:
        return None
    choice = near or followers
    if not choice:
        return None
    best = min(
        choice,
        key=lambda each: (readers.get(each.broker_id, 0), -each.end_offset, each.broker_id),
    )
    return best.broker_id


SELECTORS: Mapping[str, Selector] = {RACK_AWARE: rack_aware, LEAST_LOADED: least_loaded}
"""The selectors by the value of replica.selector.class."""
