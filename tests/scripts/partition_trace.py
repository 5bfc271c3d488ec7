"""The records of the controller and the states of a replica as English sentences."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.broker.partition.isr_states import IsrState, PendingExpand, PendingShrink
from quorate.quorum.controller.state.messages import IsrChange
from quorate.quorum.metadata import image
from quorate.quorum.metadata.records import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.unit.partition.memory_log import MemoryPartitionLog


def ids(brokers: Sequence[int]) -> str:
    """Return broker ids as text, in the given order."""
    return ", ".join(map(str, brokers))


def leader_text(leader: int) -> str:
    """Return the leader as text."""
    return "no leader" if leader == NO_LEADER else f"leader {leader}"


def record_text(record: MetadataRecord) -> str:
    """Return the sentence of a record that the controller has written, or an empty text."""
    match record:
        case RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch):
            return f"the controller registers broker {broker_id} with broker epoch {epoch}"
        case BrokerRegistrationChangeRecord(broker_id=broker_id, fenced=fenced, cause=cause):
            change = {1: "fences", -1: "unfences"}.get(fenced, "begins the controlled shutdown of")
            return f"the controller {change} broker {broker_id} ({cause})"
        case PartitionChangeRecord(leader=leader, isr=isr, cause=cause):
            elr, last = record.eligible_leader_replicas, record.last_known_elr
            parts = [] if leader == NO_LEADER_CHANGE else [leader_text(leader)]
            parts += [] if isr is None else [f"ISR {ids(isr) or 'empty'}"]
            parts += [] if elr is None else [f"ELR {ids(elr) or 'empty'}"]
            parts += [f"last known leader {ids(last)}"] if last else []
            return f"the controller writes {', '.join(parts)} ({cause})"
        case _:
            return ""


def partition_text(value: image.Partition) -> str:
    """Return the state of a partition in the metadata log as text."""
    return (
        f"{leader_text(value.leader)}, leader epoch {value.leader_epoch}, "
        f"ISR {ids(value.isr) or 'empty'}, "
        + (f"ELR {ids(value.elr)}, " if value.elr else "")
        + f"partition epoch {value.partition_epoch}"
    )


def proposal_text(change: IsrChange) -> str:
    """Return the contents of an AlterPartition request as text."""
    members = ids([broker_id for broker_id, _ in change.isr])
    return (
        f"ISR {members} with leader epoch {change.leader_epoch} "
        f"and partition epoch {change.partition_epoch}"
    )


def isr_text(state: IsrState) -> str:
    """Return the predicate of a sentence about a leader whose ISR has entered this state."""
    match state:
        case PendingExpand():
            return f"wants to add {state.joining} to the ISR {ids(state.committed)}"
        case PendingShrink():
            return f"wants to remove {ids(state.leaving)} from the ISR {ids(state.committed)}"
        case _:
            return f"has the committed ISR {ids(state.committed)}"


def log_text(log: MemoryPartitionLog) -> str:
    """Return the offsets of a log by leader epoch as text."""
    ends: dict[int, tuple[int, int]] = {}
    for batch in log.batches:
        first = ends.get(batch.epoch, (batch.base_offset, 0))[0]
        ends[batch.epoch] = (first, batch.next_offset)
    spans = [
        (f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}")
        + f" of leader epoch {epoch}"
        for epoch, (first, end) in ends.items()
    ]
    return ", ".join(spans) or "an empty log"
