"""The tables as a dumb fold over the same records in plain Python: the oracle for Spark's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.batches import metadata_batches
from quorate.quorum.metadata.image import Partition
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.replay import merge

Row = dict[str, Any]
Logged = tuple[int, int, MetadataRecord]
Key = tuple[Uuid, int]


def logged(data: bytes) -> list[Logged]:
    """(offset, time, record) of everything that took effect."""
    records = [
        (batch.base_offset + index, batch.timestamp_ms, record)
        for batch in metadata_batches(data)
        for index, record in enumerate(batch.records)
    ]
    return list(_effective(records))


def _effective(records: Iterable[Logged]) -> Iterator[Logged]:
    held: list[Logged] | None = None
    for each in records:
        record = each[2]
        if isinstance(record, BeginTransactionRecord):
            held = []
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            yield from held if isinstance(record, EndTransactionRecord) and held else ()
            held = None
        elif held is None:
            yield each
        else:
            held.append(each)


@dataclass
class Tables:
    end_ms: int
    leadership: list[Row] = field(default_factory=list)
    isr: list[Row] = field(default_factory=list)
    sessions: list[Row] = field(default_factory=list)
    _names: dict[Uuid, str] = field(default_factory=dict)
    _partitions: dict[Key, Partition] = field(default_factory=dict)
    _spells: dict[Key, Row] = field(default_factory=dict)
    _serving: dict[int, Row] = field(default_factory=dict)
    _min_isr: dict[str, int] = field(default_factory=dict)

    def fold(self, records: Iterable[Logged]) -> Tables:
        for offset, at_ms, record in records:
            name = f"_{type(record).__name__}"
            getattr(self, name, lambda *_: None)(offset, at_ms, record)
        for row in (*self.leadership, *self.sessions):
            started = ("start_ms", "unfenced_ms", "registered_ms")
            start = next(row[name] for name in started if row.get(name) is not None)
            end = self.end_ms if row["end_ms"] is None else row["end_ms"]
            row["duration_ms"] = max(end - start, 0)
        return self

    def _TopicRecord(self, offset: int, at_ms: int, record: TopicRecord) -> None:  # noqa: N802
        self._names[record.topic_id] = record.name

    def _RemoveTopicRecord(  # noqa: N802
        self, offset: int, at_ms: int, record: RemoveTopicRecord
    ) -> None:
        for key in [key for key in self._partitions if key[0] == record.topic_id]:
            self._close(self._spells.pop(key), offset, at_ms)
            del self._partitions[key]
        self._min_isr.pop(self._names[record.topic_id], None)

    def _PartitionRecord(  # noqa: N802
        self, offset: int, at_ms: int, record: PartitionRecord
    ) -> None:
        key = (record.topic_id, record.partition_id)
        self._set(
            offset,
            at_ms,
            key,
            Partition(
                replicas=record.replicas,
                isr=record.isr,
                leader=record.leader,
                leader_epoch=record.leader_epoch,
            ),
            record.cause,
            named=True,
        )

    def _PartitionChangeRecord(  # noqa: N802
        self, offset: int, at_ms: int, record: PartitionChangeRecord
    ) -> None:
        key = (record.topic_id, record.partition_id)
        state = merge(self._partitions[key], record)
        self._set(offset, at_ms, key, state, record.cause, named=record.leader != -2)

    def _set(
        self, offset: int, at_ms: int, key: Key, new: Partition, cause: str, *, named: bool
    ) -> None:
        old = self._partitions.get(key)
        self._partitions[key] = new
        base: Row = {
            "topic": self._names[key[0]],
            "partition": key[1],
            "cause": cause or "unknown",
        }
        if named:
            if key in self._spells:
                self._close(self._spells[key], offset, at_ms)
            self._spells[key] = {
                **base,
                "leader": new.leader,
                "leader_epoch": new.leader_epoch,
                "start_offset": offset,
                "start_ms": at_ms,
                "end_offset": None,
                "end_ms": None,
            }
            self.leadership.append(self._spells[key])
        before = old.isr if old else ()
        if set(before) != set(new.isr):
            wanted = self._min_isr.get(base["topic"], self._min_isr.get("", 1))
            least = min(wanted, len(new.replicas))
            self.isr.append(
                {
                    **base,
                    "offset": offset,
                    "timestamp_ms": at_ms,
                    "leader": new.leader,
                    "isr": list(new.isr),
                    "added": [each for each in new.isr if each not in before],
                    "removed": [each for each in before if each not in new.isr],
                    "size": len(new.isr),
                    "replication_factor": len(new.replicas),
                    "min_isr": least,
                    "below_min": len(new.isr) < least,
                }
            )

    @staticmethod
    def _close(row: Row, offset: int, at_ms: int) -> None:
        row.update(end_offset=offset, end_ms=at_ms)

    def _ConfigRecord(self, offset: int, at_ms: int, record: ConfigRecord) -> None:  # noqa: N802
        if record.name != "min.insync.replicas":
            return
        if record.value is None:
            self._min_isr.pop(record.resource_name, None)
        else:
            self._min_isr[record.resource_name] = int(record.value)

    def _RegisterBrokerRecord(  # noqa: N802
        self, offset: int, at_ms: int, record: RegisterBrokerRecord
    ) -> None:
        old = self._serving.get(record.broker_id)
        if old is not None and old["ended"] is None:
            old.update(end_offset=offset, end_ms=at_ms, ended="replaced")
            old["cause"] = record.cause or "unknown"
        self._begin(record.broker_id, record.broker_epoch, offset, at_ms)

    def _begin(self, broker: int, epoch: int, offset: int, at_ms: int) -> None:
        row = {
            "broker": broker,
            "broker_epoch": epoch,
            "registered_offset": offset,
            "registered_ms": at_ms,
            "unfenced_offset": None,
            "unfenced_ms": None,
            "end_offset": None,
            "end_ms": None,
            "ended": None,
            "cause": None,
            "leaving": False,
        }
        self._serving[broker] = row
        self.sessions.append(row)

    def _BrokerRegistrationChangeRecord(  # noqa: N802
        self, offset: int, at_ms: int, record: BrokerRegistrationChangeRecord
    ) -> None:
        row = self._serving[record.broker_id]
        if record.fenced == -1:
            if row["ended"] is not None:
                registered = row["registered_offset"], row["registered_ms"]
                self._begin(record.broker_id, record.broker_epoch, *registered)
                row = self._serving[record.broker_id]
            row.update(unfenced_offset=offset, unfenced_ms=at_ms)
        row["leaving"] = row["leaving"] or record.in_controlled_shutdown == 1
        if record.fenced == 1 and row["ended"] is None:
            ended = "shutdown" if row["leaving"] else "fenced"
            row.update(end_offset=offset, end_ms=at_ms, ended=ended)
            row["cause"] = record.cause or "unknown"

    def _UnregisterBrokerRecord(  # noqa: N802
        self, offset: int, at_ms: int, record: UnregisterBrokerRecord
    ) -> None:
        row = self._serving.pop(record.broker_id)
        if row["ended"] is None:
            row.update(end_offset=offset, end_ms=at_ms, ended="unregistered")
            row["cause"] = record.cause or "unknown"

    @property
    def availability(self) -> list[Row]:
        rows: dict[tuple[str, int], Row] = {}
        for spell in self.leadership:
            key = (spell["topic"], spell["partition"])
            row = rows.setdefault(
                key, {"total_ms": 0, "leaderless_ms": 0, "longest_ms": 0, "leader_epochs": 0}
            )
            row["total_ms"] += spell["duration_ms"]
            if spell["leader"] == -1:
                row["leaderless_ms"] += spell["duration_ms"]
                row["longest_ms"] = max(row["longest_ms"], spell["duration_ms"])
            else:
                row["leader_epochs"] += 1
        return [
            {"topic": topic, "partition": partition, **row}
            for (topic, partition), row in rows.items()
        ]
