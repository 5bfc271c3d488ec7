"""The oracle of the tables about replicas, brokers and epochs: `churn`, `reassignment_steps`,
`brokers` and `quorum_health`. It folds plain dictionaries, as `oracle.py` does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.analytics.oracle import Logged

Row = dict[str, Any]
Key = tuple[str, int]


class Replicas:
    """The runs of every replica in one state: in the ISR, out of it, or gone."""

    def __init__(self) -> None:
        self.now: dict[Key, dict[int, Row]] = {}
        self.runs: list[Row] = []

    def follow(self, who: Row, at: Logged, isr: Sequence[int], replicas: Sequence[int]) -> None:
        runs = self.now.setdefault((who["topic_id"], who["partition"]), {})
        for broker in {*replicas, *runs}:
            state = "in" if broker in isr else "out" if broker in replicas else "gone"
            old = runs.get(broker)
            if old is not None and old["state"] == state:
                continue
            if old is not None:
                old.update(next=state, end_offset=at.offset, end_ms=at.at_ms)
            runs[broker] = {
                "who": who, "broker": broker, "state": state, "next": None,
                "before": None if old is None else old["state"],
                "offset": at.offset, "at_ms": at.at_ms, "end_offset": None, "end_ms": None,
            }  # fmt: skip
            self.runs.append(runs[broker])

    def removed(self, key: Key, at: Logged) -> None:
        for run in self.now.pop(key).values():
            run.update(end_offset=at.offset, end_ms=at.at_ms)


def churn(replicas: Replicas, end_ms: int) -> list[Row]:
    rows: dict[tuple[str, int, int], Row] = {}
    for run in replicas.runs:
        if (run["before"], run["state"]) != ("in", "out"):
            continue
        key = (run["who"]["topic_id"], run["who"]["partition"], run["broker"])
        none = {"times_left": 0, "times_returned": 0, "out_ms": 0, "longest_out_ms": 0}
        row = rows.setdefault(key, {**run["who"], "broker": run["broker"], **none})
        lasted = max((end_ms if run["end_ms"] is None else run["end_ms"]) - run["at_ms"], 0)
        back = run["next"] == "in"
        row["times_left"] += 1
        row["times_returned"] += back
        row["out_ms"] += lasted
        row["longest_out_ms"] = max(row["longest_out_ms"], lasted)
        row.setdefault("first_left_ms", run["at_ms"])
        row["last_left_ms"] = run["at_ms"]
        flaps = row["times_left"] >= 3
        row["pattern"] = "flapping" if flaps else "recovered" if back else "one-way"
    return list(rows.values())


def reassignment_steps(replicas: Replicas, reassignments: Iterable[Row], end_ms: int) -> list[Row]:
    rows = []
    for moved in reassignments:
        steps = []
        for broker in moved["adding_replicas"]:
            joined = next(
                (run for run in replicas.runs if _during(run, moved, broker)),
                None,
            )
            offset = None if joined is None else max(joined["offset"], moved["start_offset"])
            at_ms = None
            if joined is not None:
                early = joined["offset"] < moved["start_offset"]
                at_ms = moved["start_ms"] if early else joined["at_ms"]
            until = next(each for each in (at_ms, moved["end_ms"], end_ms) if each is not None)
            names = ("topic", "topic_id", "partition", "start_offset", "start_ms", "ended")
            steps.append(
                {
                    **{name: moved[name] for name in names},
                    "broker": broker, "joined_offset": offset, "joined_ms": at_ms,
                    "wait_ms": max(until - moved["start_ms"], 0),
                }
            )  # fmt: skip
        longest = max((each["wait_ms"] for each in steps), default=0)
        rows += [{**each, "slowest": each["wait_ms"] == longest} for each in steps]
    return rows


def _during(run: Row, moved: Row, broker: int) -> bool:
    same = (run["who"]["topic_id"], run["who"]["partition"]) == (
        moved["topic_id"],
        moved["partition"],
    )
    ends_later = run["end_offset"] is None or run["end_offset"] > moved["start_offset"]
    begins = moved["end_offset"] is None or run["offset"] <= moved["end_offset"]
    return same and run["broker"] == broker and run["state"] == "in" and ends_later and begins


def brokers(sessions: Iterable[Row], partitions: Iterable[Row]) -> list[Row]:
    rows: dict[int, Row] = {}
    living = [each for each in partitions if each["removed_offset"] is None]
    for each in sessions:
        broker = each["broker"]
        held = [one for one in living if broker in one["replicas"]]
        row = rows.setdefault(
            broker,
            {
                "broker": broker, "first_registered_ms": each["registered_ms"], "sessions": 0,
                "times_fenced": 0, "times_shut_down": 0, "served_ms": 0, "replicas": len(held),
                "leads": sum(one["leader"] == broker for one in held),
                "in_isr": sum(broker in one["isr"] for one in held),
            },
        )  # fmt: skip
        served = each["unfenced_ms"] is not None
        changes = (each["end_ms"], each["unfenced_ms"], each["registered_ms"])
        row.update(
            broker_epoch=each["broker_epoch"],
            state=each["ended"] or ("active" if served else "registered"),
            last_change_ms=next(at for at in changes if at is not None),
            sessions=row["sessions"] + 1,
            times_fenced=row["times_fenced"] + (each["ended"] == "fenced"),
            times_shut_down=row["times_shut_down"] + (each["ended"] == "shutdown"),
            served_ms=row["served_ms"] + (each["duration_ms"] if served else 0),
        )
    return list(rows.values())


def quorum_health(records: Sequence[Logged]) -> list[Row]:
    rows: list[Row] = []
    for each in records:
        if not rows or rows[-1]["epoch"] != each.epoch:
            before = rows[-1] if rows else None
            if before is not None:
                before["duration_ms"] = max(each.at_ms - before["start_ms"], 0)
            rows.append(
                {
                    "epoch": each.epoch, "leader": None, "voters": None, "records": 0,
                    "start_offset": each.offset, "start_ms": each.at_ms,
                    "skipped_epochs": None if before is None else each.epoch - before["epoch"] - 1,
                    "gap_ms": None if before is None else max(each.at_ms - before["last_ms"], 0),
                }
            )  # fmt: skip
        row = rows[-1]
        if each.type == "LEADER_CHANGE":
            row.update(leader=each.said["leaderId"], voters=len(each.said["voters"]))
        row.update(records=row["records"] + 1, last_offset=each.offset, last_ms=each.at_ms)
    for row in rows[-1:]:
        row["duration_ms"] = max(records[-1].at_ms - row["start_ms"], 0)
    return rows
