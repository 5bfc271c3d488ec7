"""One run: a cluster is started, used and hurt, healed, asked, stopped, and read from its disks."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quorate.quorum.log.files.names import PartitionName, partition_of
from tests.clients.cluster import run_quorate
from tests.clients.librdkafka import admin, consumer, create_topic, read_all
from tests.sim.checks.invariants import Violation
from tests.sim.clients.history import Place, Promises, value_of
from tests.system import disks
from tests.system.admin_load import Admin
from tests.system.faults import Step, schedule
from tests.system.load import Client, Reader, Worker, Writer, placed, wait_until, working
from tests.system.nodes import HurtCluster

TOPICS = ("orders", "audit")
PARTITIONS = 3
REPLICAS = 3
GROUP = "workers"
HEAL_S = 60.0
ANSWER_S = 10.0
POLL_S = 0.1
PART_S = 40.0
"""A longer run has parts of this length. After each part no fault is left, and the cluster has to
acknowledge a record before the next part. Otherwise the faults of a run, or a slow machine, could
keep it stuck from the beginning to the end."""
OPTIONS = {
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 2000,
    "log.segment.bytes": 1 << 20,
    "internal.metadata.log.segment.bytes": 100_000,
    "metadata.log.max.record.bytes.between.snapshots": 60_000,
    "metadata.max.retention.bytes": 300_000,
}
"""Sessions end, ISRs shrink, and metadata logs are cut within a run."""


def say_on_stdout(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    seed: int
    seconds: float
    steps: Counter[str]
    acknowledged: int
    amid_faults: int
    longest_stall_s: float
    implied: int
    read: int
    admin_done: int
    admin_refused: int
    raft_epochs: int
    partition_epochs: int
    snapshots: int
    healed_s: float
    effects: Counter[str]
    duplicates: int

    def __str__(self) -> str:
        steps = ", ".join(
            f"{count} x {name}"
            + (f" ({self.effects[name]} noticed)" if name in self.effects else "")
            for name, count in sorted(self.steps.items())
        )
        return (
            f"seed {self.seed}, {self.seconds:.0f} s: {steps}; {self.acknowledged:,} records "
            f"acknowledged ({self.implied:,} by implication, {self.amid_faults:,} amid the faults, "
            f"with {self.longest_stall_s:.1f} s without any at most), {self.read:,} read along, "
            f"{self.duplicates:,} duplicates; "
            f"admin: {self.admin_done} done, {self.admin_refused} without a good answer; "
            f"{self.raft_epochs} controller epochs, {self.partition_epochs} leader epochs, "
            f"{self.snapshots} snapshots compared; whole after {self.healed_s:.1f} s"
        )


def run(
    seed: int, seconds: float, say: Callable[[str], None], cluster: HurtCluster, in_flight: int = 1
) -> Report:
    """Run one seed on a new cluster, which the caller stops. Raise AssertionError on a failure.

    Each writer has at most `in_flight` requests in flight. With more than one, librdkafka may write
    records twice and in another order (its issue 4953). Then only lost records are a failure."""
    cluster.start(*(f"--override={key}={value}" for key, value in OPTIONS.items()))
    bootstrap = cluster.bootstrap
    creator = admin(bootstrap)
    for topic in TOPICS:
        create_topic(creator, topic, PARTITIONS, REPLICAS)
    places = [(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
    writers = [Writer(f"writer{number}", bootstrap, places, in_flight) for number in range(2)]
    reader = Reader("reader", bootstrap, places)
    worker = Worker("worker", bootstrap, TOPICS[0], GROUP)
    operator = Admin("operator", bootstrap, seed)
    parts = planned(seed, seconds, cluster)
    with working([reader, worker]):
        with working([*writers, operator]):
            progress = Progress(writers)
            for part in parts:
                hurt(cluster, part, [*writers, reader, worker, operator], progress, say)
                progress.wait()
            begin_s = time.monotonic()
        say(f"all is acknowledged after {time.monotonic() - begin_s:.1f} s")
        wait_whole(cluster, say)
        healed_s = time.monotonic() - begin_s
        say(f"whole after {healed_s:.1f} s")
        final = read_to_end(bootstrap, places)
        wait_until(
            lambda: all(len(reader.read[place]) >= len(final[place]) for place in places),
            "the reader gets everything",
            HEAL_S,
        )
    cluster.require_all_running()
    duplicates = compare(final, writers, reader, worker, exactly_once=in_flight == 1)
    compare_commits(bootstrap, worker)
    operator.compare()
    high_watermark = metadata_high_watermark(cluster)
    cluster.stop()
    cluster.require_nothing_broken()
    steps = [step for part in parts for step in part]
    cluster.require_effects(steps)
    found = disks.check(cluster, high_watermark)
    return Report(
        seed=seed,
        seconds=seconds,
        steps=Counter(step.action.value for step in steps),
        acknowledged=sum(writer.history.acknowledged for writer in writers),
        amid_faults=progress.acknowledged,
        longest_stall_s=progress.longest_stall_s,
        implied=sum(writer.implied for writer in writers),
        read=sum(map(len, reader.read.values())),
        admin_done=operator.done,
        admin_refused=operator.refused,
        raft_epochs=len(found.raft_leaders),
        partition_epochs=len(found.leaders),
        snapshots=len(found.snapshots),
        healed_s=healed_s,
        effects=Counter({kind.value: count for kind, count in cluster.effects.items()}),
        duplicates=duplicates,
    )


def planned(seed: int, seconds: float, cluster: HurtCluster) -> list[Sequence[Step]]:
    """Return the faults of a run in parts of about PART_S each."""
    entry = cluster.entry()
    count = max(1, round(seconds / PART_S))
    return [
        schedule(
            seed * count + number,
            seconds / count,
            [node["id"] for node in entry["controllers"]],
            [node["id"] for node in entry["brokers"]],
            disks_and_links=cluster.disks_and_links,
        )
        for number in range(count)
    ]


def hurt(
    cluster: HurtCluster,
    steps: Sequence[Step],
    clients: Sequence[Client],
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    begin_s = time.monotonic()
    for step in steps:
        while (left_s := begin_s + step.at_s - time.monotonic()) > 0:
            time.sleep(min(left_s, 0.2))
            progress.look()
            for client in clients:
                client.check()
        say(f"{step} ({progress.acknowledged:,} acknowledged)")
        cluster.act(step.action, step.node_id, step.peers)


@dataclass(slots=True)
class Progress:
    """The records that the writers got acknowledged while the faults lasted."""

    writers: Sequence[Writer]
    begin_s: float = field(default_factory=time.monotonic)
    acknowledged: int = 0
    longest_stall_s: float = 0.0
    """The longest time without an acknowledgement of any writer."""
    _moved_s: float = 0.0

    def look(self) -> None:
        acknowledged = sum(each.history.acknowledged for each in self.writers)
        at_s = time.monotonic() - self.begin_s
        if acknowledged > self.acknowledged:
            self.acknowledged, self._moved_s = acknowledged, at_s
        self.longest_stall_s = max(self.longest_stall_s, at_s - self._moved_s)

    def wait(self) -> None:
        """Wait until another record is acknowledged. Raise AssertionError if none is in time."""
        before = self.acknowledged

        def moved() -> bool:
            self.look()
            return self.acknowledged > before

        wait_until(moved, "a record is acknowledged", HEAL_S)


# -- healed ------------------------------------------------------------------------------------


def missing(cluster: HurtCluster) -> str:
    """Return the first part that is incomplete, or "" if none is.

    A part is an ISR, the directory of a replica, or a copy of the metadata log."""
    cluster.require_all_running()
    described = admin(cluster.bootstrap).list_topics(timeout=ANSWER_S).topics
    wanted: dict[int, set[PartitionName]] = {n["id"]: set() for n in cluster.entry()["brokers"]}
    for name, topic in described.items():
        for index, partition in topic.partitions.items():
            out = set(partition.replicas) - set(partition.isrs)
            if out:
                return f"{name}-{index}: {sorted(out)} not in sync, leader {partition.leader}"
            for broker_id in partition.replicas:
                wanted[broker_id].add(PartitionName(name, index))
    for node in cluster.entry()["brokers"]:
        differing = hosted(Path(node["log_dir"])) ^ wanted[node["id"]]
        if differing:
            return f"broker {node['id']} has {min(differing)} wrongly, or wrongly not"
    return "" if metadata_high_watermark(cluster) else "a copy of the metadata log"


def wait_whole(cluster: HurtCluster, say: Callable[[str], None]) -> None:
    deadline_s = time.monotonic() + HEAL_S
    before = ""
    while what := missing(cluster):
        assert time.monotonic() < deadline_s, f"not whole within {HEAL_S:.0f} s: {what}"
        if what != before:
            say(f"  missing: {what}")
        before = what
        time.sleep(POLL_S)


def hosted(log_dir: Path) -> set[PartitionName]:
    """Directories of replicas, without those that are being deleted."""
    names = (partition_of(each.name) for each in log_dir.iterdir() if each.is_dir())
    return {name for name in names if name is not None and name.topic != "__cluster_metadata"}


def metadata_high_watermark(cluster: HurtCluster) -> int:
    """Return the offset that every node has, or 0 while one is missing."""
    done = run_quorate(
        *("metadata-quorum", "--bootstrap-server", cluster.bootstrap),
        *("describe", "--replication", "--format", "json"),
    )
    rows = json.loads(done.stdout) if done.returncode == 0 else []
    if len(rows) < len(cluster.nodes()):
        return 0
    ends = sorted(int(row["LogEndOffset"]) for row in rows)
    return max(0, ends[0])


def read_to_end(bootstrap: str, places: Sequence[Place]) -> dict[Place, list[bytes]]:
    found: dict[Place, list[bytes]] = {place: [] for place in places}
    for message in read_all(bootstrap, places):
        place, offset, value = placed(message)
        assert offset == len(found[place]), f"{place}: offset {offset} after {len(found[place])}"
        found[place].append(value)
    return found


# -- told and there ----------------------------------------------------------------------------


def compare(
    final: dict[Place, list[bytes]],
    writers: Sequence[Writer],
    reader: Reader,
    worker: Worker,
    *,
    exactly_once: bool,
) -> int:
    """Raise if the records are not those that the clients were told. Return the number of records
    that are there again. It is 0 if each record is required to be there once, and in order."""
    duplicates = 0
    for place, values in final.items():
        for writer in writers:
            promises = writer.history.of(writer.name, place)
            assert len(promises.acknowledged) == promises.sent, f"{place}: {writer.name}"
            if exactly_once:
                writer.history.check(place, enumerate(values))
            else:
                require_nothing_lost(writer.name, place, promises, values)
        sent = sum(writer.history.of(writer.name, place).sent for writer in writers)
        duplicates += len(values) - sent
        assert len(values) == sent or not exactly_once, f"{place}: {len(values)}, {sent} were sent"
        assert reader.read[place] == values[: len(reader.read[place])], f"{place}: taken back"
    for place, read in worker.read.items():
        for offset, value in read.items():
            assert final[place][offset] == value, f"{place}: offset {offset} was {value!r}"
    return duplicates


def require_nothing_lost(
    writer: str, place: Place, promises: Promises, values: Sequence[bytes]
) -> None:
    """Raise Violation if an acknowledged record is not at its offset, or nowhere if its offset is
    not known."""
    present = set(values)
    for number, offset in promises.acknowledged.items():
        value = value_of(writer, number)
        at_place = values[offset : offset + 1] == [value] if offset >= 0 else value in present
        if not at_place:
            raise Violation(f"{place}: {writer}:{number} acknowledged at {offset} is lost")


def compare_commits(bootstrap: str, worker: Worker) -> None:
    from confluent_kafka import TopicPartition

    asked = consumer(bootstrap, group_id=GROUP)
    try:
        told = asked.committed([TopicPartition(*place) for place in worker.acknowledged], 30)
    finally:
        asked.close()
    for each in told:
        place = (each.topic, each.partition)
        allowed = {worker.acknowledged[place], *worker.perhaps.get(place, ())}
        assert each.offset in allowed, f"{place}: committed {each.offset}, acknowledged {allowed}"
