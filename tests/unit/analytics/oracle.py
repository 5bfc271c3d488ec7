"""Every table in plain Python: one record after the other into dictionaries. The oracle of Spark's.

It shares nothing with the tables but the decoder, and nothing with replay: dumb on purpose.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.metadata.causes import DOCS
from quorate.quorum.metadata.framing import TYPE_NAMES, decode_versioned
from quorate.quorum.metadata.json_form import json_form
from quorate.quorum.protocol.codec import decode
from quorate.quorum.raft.control_records import LeaderChangeMessage, VotersRecord
from tests.unit.analytics.oracle_columns import share_with_a_leader, warnings
from tests.unit.analytics.oracle_replicas import (
    Replicas,
    brokers,
    churn,
    quorum_health,
    reassignment_steps,
)

Row = dict[str, Any]
UNSAID = "unknown"
CONTROL = {2: ("LEADER_CHANGE", LeaderChangeMessage), 6: ("KRAFT_VOTERS", VotersRecord)}
MERGED = (
    "isr", "leader", "replicas", "removingReplicas", "addingReplicas", "leaderRecoveryState",
    "eligibleLeaderReplicas", "lastKnownElr",
)  # fmt: skip
RESOURCES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}


@dataclass(frozen=True)
class Logged:
    offset: int
    epoch: int
    at_ms: int
    type: str
    said: dict[str, Any]


def logged(data: bytes) -> list[Logged]:
    """Return the records that took effect: none of an aborted or open transaction (KIP-868)."""
    kept: list[Logged] = []
    held: list[Logged] | None = None
    for each in every(data):
        if each.type == "BEGIN_TRANSACTION_RECORD":
            held = [each]
        elif held is None or each.type in ("LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"):
            kept.append(each)
        elif each.type == "ABORT_TRANSACTION_RECORD":
            held = None
        else:
            held.append(each)
            if each.type == "END_TRANSACTION_RECORD":
                kept += held
                held = None
    return sorted(kept, key=lambda each: each.offset)


def every(data: bytes) -> Iterator[Logged]:
    """Yield all records, also those without effect."""
    for position, header in batches(data):
        for record in records_of(data, position, header):
            assert record.value is not None
            if header.is_control:
                assert record.key is not None
                (kind,) = struct.unpack_from(">h", record.key, 2)
                name, cls = CONTROL.get(kind, ("KRAFT_VERSION", None))
                said = {} if cls is None else json_form(decode(cls, 0, record.value), 0)
            else:
                message, version = decode_versioned(record.value)
                name, said = TYPE_NAMES[type(message)], json_form(message, version)
            yield Logged(record.offset, header.leader_epoch, record.timestamp_ms, name, said)


class Oracle:
    """The expected rows of every table in `tables`, with the columns that are compared."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = {
            name: []
            for name in (
                "records", "topics", "partitions", "leadership", "isr", "elr", "sessions",
                "availability", "reassignments", "configs", "quorum", "causes", "warnings",
                "min_isr_windows", "churn", "reassignment_steps", "brokers", "quorum_health",
                "state_changes",
            )
        }  # fmt: skip
        self.topics: dict[str, Row] = {}
        self.partitions: dict[tuple[str, int], Row] = {}
        self.spells: dict[tuple[str, int], Row] = {}
        self.moving: dict[tuple[str, int], Row] = {}
        self.configs: dict[tuple[int, str, str], Row] = {}
        self.serving: dict[int, Row] = {}
        self.voters: list[int] = []
        self.watched: dict[tuple[str, int], Row] = {}
        self.replicas = Replicas()

    def fold(self, records: Sequence[Logged]) -> Oracle:
        end_ms = 0
        for each in records:
            self.tables["records"].append({"offset": each.offset, "type": each.type})
            end_ms = each.at_ms
            rule = getattr(self, each.type.lower(), None)
            if rule is not None:
                rule(each, each.said)
        self._finish(end_ms)
        tables = self.tables
        tables["churn"] = churn(self.replicas, end_ms)
        moved = tables["reassignments"]
        tables["reassignment_steps"] = reassignment_steps(self.replicas, moved, end_ms)
        tables["brokers"] = brokers(tables["sessions"], tables["partitions"])
        tables["quorum_health"] = quorum_health(records)
        return self

    # ------------------------------------------------------------------------ topics and partitions

    def topic_record(self, at: Logged, said: Row) -> None:
        row = {
            "topic": said["name"], "topic_id": said["topicId"], "partitions": 0,
            "created_offset": at.offset, "created_ms": at.at_ms,
            "removed_offset": None, "removed_ms": None,
        }  # fmt: skip
        self.topics[said["topicId"]] = row
        self.tables["topics"].append(row)

    def remove_topic_record(self, at: Logged, said: Row) -> None:
        topic = self.topics.pop(said["topicId"])
        topic.update(removed_offset=at.offset, removed_ms=at.at_ms)
        for key in [key for key in self.partitions if key[0] == topic["topic_id"]]:
            self.replicas.removed(key, at)
            seen = self.watched.pop(key)
            self.without_leader(seen, at.at_ms, False)
            if seen["row"] is not None:
                close(seen["row"], at, end_cause="removed")
            self.partitions.pop(key)["row"].update(removed_offset=at.offset, removed_ms=at.at_ms)
            close(self.spells.pop(key), at)
            if key in self.moving:
                close(self.moving.pop(key), at, ended="removed")
        for resource in [r for r in self.configs if r[:2] == (2, topic["topic"])]:
            close(self.configs.pop(resource), at, ended="removed")

    def partition_record(self, at: Logged, said: Row) -> None:
        key = (said["topicId"], said["partitionId"])
        self.topics[key[0]]["partitions"] += 1
        row: Row = {
            **self.who(key), "changes": 0, "created_offset": at.offset, "created_ms": at.at_ms,
            "removed_offset": None, "removed_ms": None,
        }  # fmt: skip
        self.tables["partitions"].append(row)
        new = {name: said.get(name, []) for name in MERGED}
        new["leaderRecoveryState"] = said.get("leaderRecoveryState", 0)
        self.partitions[key] = {
            "isr": [], "eligibleLeaderReplicas": [], "lastKnownElr": [],
            "leader_epoch": said["leaderEpoch"], "partition_epoch": said["partitionEpoch"],
            "replicas": new["replicas"], "addingReplicas": [], "removingReplicas": [], "row": row,
            "fresh": True,
        }  # fmt: skip
        self.caused(at, said, **self.who(key))
        self.change(key, at, new, said.get("cause") or UNSAID)

    def partition_change_record(self, at: Logged, said: Row) -> None:
        key = (said["topicId"], said["partitionId"])
        state = self.partitions[key]
        state["partition_epoch"] += 1
        state["leader_epoch"] += 1 if "leader" in said else 0
        state["row"]["changes"] += 1
        new = {name: said[name] for name in MERGED if said.get(name) is not None}
        self.caused(at, said, **self.who(key))
        self.change(key, at, new, said.get("cause") or UNSAID)

    def clear_elr_record(self, at: Logged, said: Row) -> None:
        for key, state in sorted(self.partitions.items()):
            wanted = said["topicName"] in ("", self.topics[key[0]]["topic"])
            if wanted and (state["eligibleLeaderReplicas"] or state["lastKnownElr"]):
                state["partition_epoch"] += 1
                state["row"]["changes"] += 1
                self.change(key, at, {"eligibleLeaderReplicas": [], "lastKnownElr": []}, UNSAID)

    def change(self, key: tuple[str, int], at: Logged, new: Row, cause: str) -> None:
        state = self.partitions[key]
        old = dict(state)
        state.update(new, fresh=False)
        event = {"offset": at.offset, "timestamp_ms": at.at_ms, "cause": cause, **self.who(key)}
        if "leader" in new:
            self.lead(key, at, state, cause)
        if set(old["isr"]) != set(state["isr"]):
            self.isr(event, old, state)
        if any(set(old[n]) != set(state[n]) for n in ("eligibleLeaderReplicas", "lastKnownElr")):
            before, after = old["eligibleLeaderReplicas"], state["eligibleLeaderReplicas"]
            row = {
                "elr": after, "last_known_elr": state["lastKnownElr"], "isr": state["isr"],
                "added": less(after, before), "removed": less(before, after),
            }  # fmt: skip
            self.tables["elr"].append({**event, **row})
        names = ("leader", "isr", "replicas")
        before = {f"{name}_before": None if old["fresh"] else old[name] for name in names}
        row = {
            **event, **before, "began": "created" if old["fresh"] else "changed",
            "leader": state["leader"], "isr": state["isr"], "replicas": state["replicas"],
            "adding_replicas": state["addingReplicas"], "elr": state["eligibleLeaderReplicas"],
            "removing_replicas": state["removingReplicas"],
            "leader_epoch": state["leader_epoch"], "partition_epoch": state["partition_epoch"],
        }  # fmt: skip
        self.tables["state_changes"].append(row)
        self.move(key, at, old, state, cause)
        self.watch(key, at, cause)
        self.replicas.follow(self.who(key), at, state["isr"], state["replicas"])
        state["row"].update(
            changed_offset=at.offset, changed_ms=at.at_ms,
            leader=state["leader"], isr=state["isr"], replicas=state["replicas"],
            leader_epoch=state["leader_epoch"], partition_epoch=state["partition_epoch"],
            adding_replicas=state["addingReplicas"], removing_replicas=state["removingReplicas"],
            elr=state["eligibleLeaderReplicas"], last_known_elr=state["lastKnownElr"],
            leader_recovery_state=state["leaderRecoveryState"],
        )  # fmt: skip

    def lead(self, key: tuple[str, int], at: Logged, state: Row, cause: str) -> None:
        leader = {"leader": state["leader"], "leader_epoch": state["leader_epoch"]}
        leader["began"] = "changed" if key in self.spells else "created"
        if key in self.spells:
            close(self.spells[key], at)
        self.spells[key] = {**self.who(key), **leader, **opened(at), "cause": cause}
        self.tables["leadership"].append(self.spells[key])

    def isr(self, event: Row, old: Row, state: Row) -> None:
        least = self.min_isr(event["topic"], state)
        size, below = len(state["isr"]), self.below(event["topic"], state)
        row = {
            "leader": state["leader"], "isr": state["isr"], "size": size, "min_isr": least,
            "added": less(state["isr"], old["isr"]), "removed": less(old["isr"], state["isr"]),
            "replication_factor": len(state["replicas"]), "below_min": below,
            "began": "created" if not old["isr"] and old["fresh"] else "changed",
        }  # fmt: skip
        self.tables["isr"].append({**event, **row})

    def min_isr(self, topic: str, state: Row) -> int | None:
        for resource in ((2, topic), (4, "")):
            config = self.configs.get((*resource, "min.insync.replicas"))
            if config is not None:
                return min(int(config["value"]), len(state["replicas"]))
        return None

    def below(self, topic: str, state: Row) -> bool | None:
        """Return None if the setting is not in the log and it decides."""
        size, least = len(state["isr"]), self.min_isr(topic, state)
        if size in (0, len(state["replicas"])):
            return size == 0
        return None if least is None else size < least

    def watch(self, key: tuple[str, int], at: Logged, cause: str) -> None:
        """Follow the times in which acks=all fails, after a change of the state or the setting."""
        state, topic = self.partitions[key], self.topics[key[0]]["topic"]
        seen = self.watched.setdefault(key, {"row": None, "first": True})
        offline = state["leader"] == -1
        self.without_leader(seen, at.at_ms, offline)
        if offline or self.below(topic, state):
            row: Row = seen["row"] or {
                **self.who(key), **opened(at), "offline_ms": 0,
                "smallest_isr": len(state["isr"]), "min_isr": self.min_isr(topic, state),
                "began": "created" if seen["first"] else "changed",
                "cause": cause, "end_cause": None, "kind": "",
            }  # fmt: skip
            if seen["row"] is None:
                self.tables["min_isr_windows"].append(row)
            kind = "offline" if offline else "below_min"
            row["smallest_isr"] = min(row["smallest_isr"], len(state["isr"]))
            row["kind"] = kind if row["kind"] in ("", kind) else "both"
            seen["row"] = row
        elif seen["row"] is not None:
            close(seen["row"], at, end_cause=cause)
            seen["row"] = None
        seen["first"] = False

    def without_leader(self, seen: Row, at_ms: int, offline: bool) -> None:
        """Note that a time without a leader begins, goes on or ends."""
        since_ms = seen.get("since_ms")
        if since_ms is None:
            seen["since_ms"] = at_ms if offline else None
        elif not offline:
            seen["row"]["offline_ms"] += max(at_ms - since_ms, 0)
            seen["since_ms"] = None

    def move(self, key: tuple[str, int], at: Logged, old: Row, new: Row, cause: str) -> None:
        target = less(new["replicas"], new["removingReplicas"])
        moving = bool(new["addingReplicas"] or new["removingReplicas"])
        before = self.moving.get(key)
        origin = old["replicas"] if before is None else less(old["replicas"], old["addingReplicas"])
        begun: Row = {
            **self.who(key), "from_replicas": origin, "to_replicas": target,
            "adding_replicas": new["addingReplicas"], "removing_replicas": new["removingReplicas"],
            **opened(at), "cause": cause, "end_cause": None, "ended": None,
        }  # fmt: skip
        if before is None:
            if not moving and new["replicas"] != old["replicas"]:
                close(begun, at, ended="completed", end_cause=cause)
                self.tables["reassignments"].append(begun)
                return
            if not moving:
                return
        elif set(target) == set(before["to_replicas"]):
            if not moving:
                close(self.moving.pop(key), at, ended="completed", end_cause=cause)
            return
        elif not moving and set(target) == set(origin):
            close(self.moving.pop(key), at, ended="cancelled", end_cause=cause)
            return
        else:
            close(before, at, ended="replaced", end_cause=cause)
        self.tables["reassignments"].append(begun)
        if moving:
            self.moving[key] = begun
        else:
            close(begun, at, ended="completed", end_cause=cause)
            del self.moving[key]

    def who(self, key: tuple[str, int]) -> Row:
        return {"topic": self.topics[key[0]]["topic"], "topic_id": key[0], "partition": key[1]}

    # ---------------------------------------------------------------- configs, quorum, causes

    def config_record(self, at: Logged, said: Row) -> None:
        key = (said["resourceType"], said["resourceName"], said["name"])
        if key in self.configs:
            ended = "unset" if said["value"] is None else "changed"
            close(self.configs.pop(key), at, ended=ended)
        if said["value"] is not None:
            resource = {"resource_type": RESOURCES[key[0]], "resource_name": key[1]}
            row = {**resource, "name": key[2], "value": said["value"], **opened(at), "ended": None}
            self.configs[key] = row
            self.tables["configs"].append(row)
        for partition in self.partitions if key[2] == "min.insync.replicas" else ():
            topic = self.topics[partition[0]]["topic"]
            if key[:2] in ((4, ""), (2, topic)):
                self.watch(partition, at, "config-changed")

    def leader_change(self, at: Logged, said: Row) -> None:
        self.voters = sorted(voter["voterId"] for voter in said["voters"])
        self.led(said["leaderId"], at)

    def kraft_voters(self, at: Logged, said: Row) -> None:
        before, self.voters = self.voters, sorted(voter["voterId"] for voter in said["voters"])
        if before != self.voters:
            self.led(self.tables["quorum"][-1]["leader"], at)

    def led(self, leader: int, at: Logged) -> None:
        if self.tables["quorum"]:
            close(self.tables["quorum"][-1], at)
        row = {"leader": leader, "epoch": at.epoch, "voters": self.voters, **opened(at)}
        self.tables["quorum"].append(row)

    def caused(self, at: Logged, said: Row, **about: Any) -> None:
        nothing = dict.fromkeys(("topic", "topic_id", "partition", "broker"))
        event = {"offset": at.offset, "timestamp_ms": at.at_ms, "type": at.type}
        name, *ends = (said.get("cause") or UNSAID).split(" ")
        old_end, new_end = [int(end) if end != "?" else None for end in ends] or [None, None]
        why = DOCS[(said.get("cause") and name) or ""]
        told = {"cause": name, "why": why, "old_end": old_end, "new_end": new_end}
        row = {**event, **nothing, **about, **told}
        self.tables["causes"].append(row)

    # ------------------------------------------------------------------------------ brokers

    def register_broker_record(self, at: Logged, said: Row) -> None:
        self.caused(at, said, broker=said["brokerId"])
        old = self.serving.get(said["brokerId"])
        if old is not None and old["ended"] is None:
            close(old, at, ended="replaced", cause=said.get("cause") or UNSAID)
        self.begin(said["brokerId"], said["brokerEpoch"], at.offset, at.at_ms)
        if not said["fenced"]:
            self.serving[said["brokerId"]].update(unfenced_offset=at.offset, unfenced_ms=at.at_ms)

    def begin(self, broker: int, epoch: int, offset: int, at_ms: int) -> None:
        row: Row = {
            "broker": broker, "broker_epoch": epoch,
            "registered_offset": offset, "registered_ms": at_ms,
            "unfenced_offset": None, "unfenced_ms": None, "end_offset": None, "end_ms": None,
            "ended": None, "cause": None, "leaving": False,
        }  # fmt: skip
        self.serving[broker] = row
        self.tables["sessions"].append(row)

    def broker_registration_change_record(self, at: Logged, said: Row) -> None:
        self.caused(at, said, broker=said["brokerId"])
        row = self.serving[said["brokerId"]]
        if said.get("fenced") == -1:
            if row["ended"] is not None:
                registered = row["registered_offset"], row["registered_ms"]
                self.begin(said["brokerId"], said["brokerEpoch"], *registered)
                row = self.serving[said["brokerId"]]
            row.update(unfenced_offset=at.offset, unfenced_ms=at.at_ms)
        row["leaving"] = row["leaving"] or said.get("inControlledShutdown") == 1
        if said.get("fenced") == 1 and row["ended"] is None:
            ended = "shutdown" if row["leaving"] else "fenced"
            close(row, at, ended=ended, cause=said.get("cause") or UNSAID)

    def unregister_broker_record(self, at: Logged, said: Row) -> None:
        self.caused(at, said, broker=said["brokerId"])
        row = self.serving.pop(said["brokerId"])
        if row["ended"] is None:
            close(row, at, ended="unregistered", cause=said.get("cause") or UNSAID)

    # ------------------------------------------------------------------------------ the end

    def _finish(self, end_ms: int) -> None:
        for seen in self.watched.values():
            self.without_leader(seen, end_ms, False)
        timed = ("leadership", "sessions", "reassignments", "configs", "quorum", "min_isr_windows")
        for name in timed:
            for row in self.tables[name]:
                starts = (row.get(each) for each in ("start_ms", "unfenced_ms", "registered_ms"))
                start = next(each for each in starts if each is not None)
                row["duration_ms"] = max((row["end_ms"] or end_ms) - start, 0)
                row.pop("leaving", None)
        for row in self.tables["min_isr_windows"]:
            row["offline_ms"] = min(row["offline_ms"], row["duration_ms"])
        for row in self.tables["topics"]:
            row["duration_ms"] = max((row["removed_ms"] or end_ms) - row["created_ms"], 0)
        rows: dict[tuple[str, int], Row] = {}
        for spell in self.tables["leadership"]:
            who = {name: spell[name] for name in ("topic", "topic_id", "partition")}
            none = {"total_ms": 0, "leaderless_ms": 0, "longest_ms": 0, "leader_epochs": 0}
            row = rows.setdefault((spell["topic_id"], spell["partition"]), {**who, **none})
            row["total_ms"] += spell["duration_ms"]
            windows = row.setdefault("windows", [])
            if spell["leader"] != -1:
                row["leader_epochs"] += 1
                row["lost"] = False
                continue
            row["leaderless_ms"] += spell["duration_ms"]
            if not row.get("lost"):
                none = {"start_ms": spell["start_ms"], "duration_ms": 0, "cause": spell["cause"]}
                windows.append(none)
            row["lost"] = True
            windows[-1]["end_ms"] = spell["end_ms"]
            windows[-1]["duration_ms"] += spell["duration_ms"]
            row["longest_ms"] = max(row["longest_ms"], windows[-1]["duration_ms"])
        for row in rows.values():
            row.pop("lost", None)
            row["available"] = share_with_a_leader(row)
            names = ("start_ms", "end_ms", "duration_ms", "cause")
            row["windows"] = [{name: each[name] for name in names} for each in row["windows"]]
        self.tables["availability"] += rows.values()

    def warn(self, records: list[Logged], proved: int) -> None:
        """Add the warnings about a sound log. `records` has all of it, `proved` is the end of its
        newest snapshot."""
        self.tables["warnings"] += warnings(records, proved, self.voters)


def opened(at: Logged) -> Row:
    return {"start_offset": at.offset, "start_ms": at.at_ms, "end_offset": None, "end_ms": None}


def close(row: Row, at: Logged, **how: Any) -> None:
    row.update(end_offset=at.offset, end_ms=at.at_ms, **how)


def less(some: list[int], others: list[int]) -> list[int]:
    return [each for each in some if each not in others]
