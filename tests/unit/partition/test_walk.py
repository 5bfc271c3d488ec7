"""A seeded random walk over three replicas: no acknowledged record is lost while one ISR member
lives.

The controller is a value with compare-and-set. Metadata reaches each replica late or never. Answers
to ISR changes are lost. Processes die with their unflushed records, and return with a new broker
epoch and outside of the ISR. `check` runs after every step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from quorate.broker.partition.isr_states import PendingExpand
from quorate.broker.partition.partition import Partition
from quorate.quorum.controller.state.messages import IsrChange
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.unit.partition.harness import Brokers, batch, fetch, partition, result, value
from tests.unit.partition.memory_log import MemoryPartitionLog

IDS = (1, 2, 3)
MIN_ISR = 2
LAG_MS = 100


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.brokers = Brokers()
        self.truth = value(1, 1, IDS)
        self.replicas: dict[int, Partition] = {}
        self.proposals: list[tuple[int, Partition, IsrChange]] = []
        self.acked: dict[int, bytes] = {}  # offset -> batch, below a watermark with acks=all
        self.waiting: list[tuple[Partition, int, int, bytes]] = []
        self.visible = 0  # the largest offset a consumer has seen
        self.written = 0
        for broker_id in IDS:
            self.boot(broker_id, MemoryPartitionLog())

    def boot(self, broker_id: int, log: MemoryPartitionLog) -> None:
        self.replicas[broker_id] = partition(
            broker_id,
            self.brokers,
            log,
            min_insync_replicas=MIN_ISR,
            replica_lag_time_max_ms=LAG_MS,
        )
        self.hear(broker_id)

    # --- steps

    def hear(self, broker_id: int) -> None:
        """Let the replica replay the metadata log up to its end."""
        replica = self.replicas[broker_id]
        if self.truth.leader == broker_id:
            replica.make_leader(self.truth, self.now_ms)
        else:
            replica.make_follower(self.truth)

    def produce(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        self.written += 1
        data = batch(1, b"%d" % self.written)
        try:
            appended = replica.append_as_leader(data, -1, now_ms=self.now_ms, wall_ms=1000)
        except KafkaError as error:
            assert error.code in (
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.NOT_ENOUGH_REPLICAS,
            )
            return
        self.waiting.append((replica, appended.base_offset, appended.end_offset, bytes(data)))

    def replicate(self, broker_id: int) -> None:
        follower = self.replicas[broker_id]
        leader = self.replicas.get(follower.leader_id)
        if follower.leadership is not None or leader is None or leader is follower:
            return
        if leader.leader_error(follower.leader_epoch):
            return
        log = follower.log
        try:
            diverging = fetch(
                leader,
                broker_id,
                log.end_offset,
                last_fetched_epoch=log.last_epoch,
                broker_epoch=self.brokers.brokers[broker_id].epoch,
                now_ms=self.now_ms,
            )
        except KafkaError as error:
            assert error.code in (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_OUT_OF_RANGE)
            return
        self.collect(leader)
        if self.random.random() < 0.1:
            return  # the answer is lost
        if diverging is not None:
            self.truncate(follower, diverging)
            return
        data = leader.log.read(log.end_offset, self.random.choice((1, 1 << 20)))
        if data:
            follower.append_as_follower(data, wall_ms=1000)
        follower.leader_high_watermark(leader.high_watermark)

    def truncate(self, follower: Partition, diverging: EpochOffset) -> None:
        before = follower.high_watermark
        follower.truncate(diverging)
        assert follower.log.end_offset >= before, "truncated below its own high watermark"

    def elect(self) -> None:
        leader = self.random.choice(self.truth.isr)
        self.truth = replace(
            self.truth,
            leader=leader,
            leader_epoch=self.truth.leader_epoch + 1,
            partition_epoch=self.truth.partition_epoch + 1,
        )

    def lose_power(self, broker_id: int) -> None:
        """Restart a broker with fewer records, a new broker epoch, and outside of the ISR, as the
        controller does after an unclean shutdown."""
        if self.truth.isr == (broker_id,):
            return
        if broker_id in self.truth.isr:
            isr = tuple(each for each in self.truth.isr if each != broker_id)
            self.change(isr=isr)
            if self.truth.leader == broker_id:
                self.elect()
        self.brokers.change(broker_id, epoch=self.brokers.brokers[broker_id].epoch + 10)
        log = self.replicas[broker_id].log
        assert isinstance(log, MemoryPartitionLog)
        log.truncate_to(self.random.randrange(log.end_offset + 1))
        self.boot(broker_id, log)

    def restart(self, broker_id: int) -> None:
        """Restart a broker cleanly: it keeps everything except its high watermark."""
        log = self.replicas[broker_id].log
        assert isinstance(log, MemoryPartitionLog)
        self.boot(broker_id, log)

    def change(self, isr: tuple[int, ...]) -> None:
        self.truth = replace(self.truth, isr=isr, partition_epoch=self.truth.partition_epoch + 1)

    def propose(self) -> None:
        for broker_id, replica in self.replicas.items():
            leadership = replica.leadership
            if leadership is None or leadership.proposal is None:
                continue
            if not any(each is replica for _, each, _ in self.proposals):
                self.proposals.append((broker_id, replica, leadership.proposal))
                leadership.proposal = None

    def rule(self) -> None:
        if not self.proposals:
            return
        chosen = self.random.randrange(len(self.proposals))
        broker_id, replica, change = self.proposals.pop(chosen)
        if self.replicas[broker_id] is not replica:
            return  # of an earlier incarnation: STALE_BROKER_EPOCH, and nobody is there to hear it
        error = self.refusal(change)
        if error:
            answer = result(change, error)
        else:
            self.change(isr=tuple(each for each, _ in change.isr))
            answer = result(change, partition_epoch=self.truth.partition_epoch)
        if self.random.random() < 0.7:
            replica.isr_answered(change, answer, self.now_ms)
        elif self.random.random() < 0.5:
            unknown = result(change, ErrorCode.UNKNOWN_SERVER_ERROR)
            replica.isr_answered(change, unknown, self.now_ms)

    def refusal(self, change: IsrChange) -> int:
        if change.leader_epoch != self.truth.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if change.partition_epoch != self.truth.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for broker_id, epoch in change.isr:
            if epoch not in (-1, self.brokers.brokers[broker_id].epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        return 0

    def wait(self) -> None:
        self.now_ms += self.random.choice((1, 10, LAG_MS))
        for replica in self.replicas.values():
            replica.check_followers(self.now_ms)
            replica.check_joining(self.now_ms)

    def step(self) -> None:
        some = self.random.choice(IDS)
        choices: list[tuple[int, Callable[[], None]]] = [
            (30, partial(self.replicate, some)),
            (20, partial(self.produce, some)),
            (14, partial(self.hear, some)),
            (8, self.wait),
            (12, self.rule),
            (3, self.elect),
            (2, partial(self.restart, some)),
            (1, partial(self.lose_power, some)),
        ]
        weights, actions = zip(*choices, strict=True)
        self.random.choices(actions, weights)[0]()
        self.propose()
        for replica in self.replicas.values():
            self.collect(replica)
        self.check()

    # --- the oracle

    def collect(self, leader: Partition) -> None:
        """Note the records that are acknowledged now."""
        still = []
        for replica, base_offset, end_offset, data in self.waiting:
            error = replica.acks_all_error(end_offset)
            if error is None:
                still.append((replica, base_offset, end_offset, data))
            elif not error and replica.log.end_offset >= end_offset:
                before = self.acked.setdefault(base_offset, data)
                assert before == data, f"two records were acknowledged at {base_offset}"
        self.waiting = [each for each in still if each[0] in self.replicas.values()]

    def check(self) -> None:
        """Check that every member of the committed ISR has all acknowledged records, because any of
        them may be elected, and that the replicas are equal below the lowest high watermark."""
        contents = {each: batches_of(replica) for each, replica in self.replicas.items()}
        for broker_id in self.truth.isr:
            for offset, data in self.acked.items():
                found = contents[broker_id].get(offset)
                assert found == data, f"{broker_id} of ISR {self.truth.isr} lost {offset}"
        for replica in self.replicas.values():
            assert replica.high_watermark <= replica.log.end_offset
        low = min(replica.high_watermark for replica in self.replicas.values())
        agreed = [
            {offset: data for offset, data in content.items() if offset < low}
            for content in contents.values()
        ]
        assert agreed[0] == agreed[1] == agreed[2], f"replicas differ below {low}"

    def settle(self) -> None:
        """Deliver all metadata and answers. The replicas must become equal."""
        self.truth = replace(self.truth, partition_epoch=self.truth.partition_epoch + 1)
        for _ in range(60):
            for broker_id in IDS:
                self.hear(broker_id)
                self.replicate(broker_id)
            self.wait()
            self.propose()
            self.rule()
        contents = [batches_of(replica) for replica in self.replicas.values()]
        assert contents[0] == contents[1] == contents[2]
        assert sorted(self.truth.isr) == list(IDS)
        acked = len(self.acked)
        self.produce(self.truth.leader)
        for broker_id in IDS * 10:  # some answers are lost
            self.replicate(broker_id)
        assert len(self.acked) == acked + 1, "the partition takes writes again"


def batches_of(replica: Partition) -> dict[int, bytes]:
    data = bytes(replica.log.read(0, 1 << 30))
    return {
        header.base_offset: data[position : position + header.size_bytes]
        for position, header in batches(data)
    }


@pytest.mark.parametrize("seed", range(60))
def test_walk(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(250):
        walk.step()
    walk.settle()


def test_the_walk_notices_an_isr_that_forgets_the_joining_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ablation: without the maximal ISR, some seed must lose an acknowledged record."""
    monkeypatch.setattr(PendingExpand, "maximal", property(lambda self: self.committed))
    monkeypatch.setattr(
        "quorate.broker.partition.leadership.Leadership._joining_soon", lambda *_: False
    )
    with pytest.raises(AssertionError):
        for seed in range(300):
            test_walk(seed)


def test_the_walk_notices_truncation_to_the_high_watermark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ablation: with the truncation before KIP-101, some seed must lose an acknowledged record."""

    def restart(self: Walk, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        log = replica.log
        assert isinstance(log, MemoryPartitionLog)
        log.truncate_to(replica.high_watermark)
        self.boot(broker_id, log)

    monkeypatch.setattr(Walk, "restart", restart)
    with pytest.raises(AssertionError):
        for seed in range(100):
            test_walk(seed)
