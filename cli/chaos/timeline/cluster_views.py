"""The state of a cluster as its brokers answer it, where the metadata log is out of reach. Pure.

Answers of several brokers are merged into a view. The differences between a view and the states
become events. A view shows states, not records: changes that revert between two views are missed,
and no cause is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quorate.cli.chaos.timeline.cluster_states import ClusterStates, Moves
from quorate.cli.chaos.timeline.timeline import SERVING, Event
from quorate.quorum.protocol.schemas.metadata import MetadataResponse


@dataclass(frozen=True, slots=True)
class PartitionView:
    """The leader of a partition, or -1, its leader epoch and its ISR."""

    leader: int
    epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The partitions of one topic by number, and the brokers that are unfenced."""

    partitions: Mapping[int, PartitionView]
    unfenced: frozenset[int]


def merged(answers: Sequence[MetadataResponse], topic: str) -> ClusterView | None:
    """Return the view that several brokers agree on, or None without an answer.

    Of two answers about a partition, that with the higher leader epoch counts, because a broker
    with stale metadata answers too. At the same epoch the ISR holds the brokers that all answers
    contain. A broker is unfenced if all answers list it, because Metadata lists no fenced brokers.
    """
    if not answers:
        return None
    partitions: dict[int, PartitionView] = {}
    for answer in answers:
        found = [each for each in answer.topics if each.name == topic and not each.error_code]
        for each in (partition for one in found for partition in one.partitions):
            view = PartitionView(each.leader_id, each.leader_epoch, tuple(each.isr_nodes))
            known = partitions.get(each.partition_index)
            partitions[each.partition_index] = view if known is None else newest(known, view)
    listed = [frozenset(node.node_id for node in answer.brokers) for answer in answers]
    return ClusterView(partitions, frozenset.intersection(*listed))


def newest(one: PartitionView, other: PartitionView) -> PartitionView:
    """Return the view with the higher epoch. Views of the same epoch are merged."""
    if one.epoch != other.epoch:
        return max(one, other, key=lambda each: each.epoch)
    isr = tuple(each for each in one.isr if each in other.isr)
    return PartitionView(max(one.leader, other.leader), one.epoch, isr)


def differences(
    states: ClusterStates, view: ClusterView, brokers: Sequence[int], ms: int
) -> Iterator[Event]:
    """Let the states be those of the view at `ms`, and yield an event for each difference.

    An older leader epoch than the known one is ignored."""
    for broker in brokers:
        serves = broker in view.unfenced
        if serves != (states.state(broker) == SERVING):
            yield states.fence(ms, broker, not serves, "")
    moves = Moves()
    for partition, seen in sorted(view.partitions.items()):
        new = partition not in states.isr
        now = states.leadership.now(partition)
        if seen.epoch < states.epochs.get(partition, -1):
            continue
        shrunk = not new and set(seen.isr) != set(states.isr[partition])
        if now is None or (now.epoch, now.leader) != (seen.epoch, seen.leader):
            states.lead(ms, partition, seen.leader, seen.epoch, "")
            if not new:
                moves.leader(ms, "", partition, seen.leader)
        elif shrunk:
            moves.isr(ms, "", partition, seen.isr)
        states.shrink_or_expand(partition, seen.isr)
    yield from moves.events()
