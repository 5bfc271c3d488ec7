"""Random histories of brokers, connections, probes, topics, ISRs and takeovers.

Each seed is one history. `check` states the rules that are checked after every step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.hints import Hints
from quorate.quorum.controller.state.partition_index import PartitionIndex
from quorate.quorum.controller.state.result import ProbeBroker
from quorate.quorum.controller.state.settings import NEW_CLUSTER_FEATURES, ControllerSettings
from quorate.quorum.incremental_work import finished
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import MetadataImage, Partition, Topic
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from tests.unit.controller.harness import (
    CLUSTER_ID,
    SESSION_MS,
    WITHOUT_ELR,
    Driver,
    probes_of,
    registration,
)

BROKERS = (1, 2, 3, 4)
STEPS = 600
CAUSED = (
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    BrokerRegistrationChangeRecord,
)


class History(Driver):
    """One random history. Probes give true results, late or never."""

    def __init__(self, seed: int, *, elr: bool = False) -> None:
        self.elr = elr
        super().__init__(
            ControllerSettings(
                features=NEW_CLUSTER_FEATURES if elr else WITHOUT_ELR,
                cluster_id=CLUSTER_ID,
                node_id=3000,
                max_idle_interval_ms=5000,
                imbalance_check_interval_ms=3000,
                unclean_election_interval_ms=7000,
            )
        )
        self.random = random.Random(seed)
        self.incarnation = dict.fromkeys(BROKERS, 0)
        self.alive: dict[int, bool] = dict.fromkeys(BROKERS, False)
        self.served_ms = dict.fromkeys(BROKERS, 0)
        self.left: set[int] = set()
        self.steps: list[tuple[int, Callable[[], None]]] = [
            (4, self.start_one),
            (12, self.beat),
            (1, self.kill),
            (1, self.cut),
            (1, self.ask_to_leave),
            (2, self.create_one),
            (8, self.propose),
            (6, self.probe),
            (4, self.wait),
            (1, self.take_over),
        ]

    def step(self) -> None:
        weights = [weight for weight, _ in self.steps]
        (chosen,) = self.random.choices([step for _, step in self.steps], weights)
        before, length = self.image, len(self.log)
        chosen()
        self.check(before, length)

    def append(self, records: Sequence[MetadataRecord]) -> None:
        for record in records:
            if isinstance(record, PartitionChangeRecord) and record.cause == Cause.UNCLEAN_ELECTION:
                self.check_unclean(record)
        super().append(records)

    # ------------------------------------------------------------------------------------ the steps

    def pick(self, *, alive: bool) -> int | None:
        some = [broker for broker in BROKERS if self.alive[broker] == alive]
        return self.random.choice(some) if some else None

    def start_one(self) -> None:
        broker = self.pick(alive=False)
        if broker is None:
            return
        self.incarnation[broker] += 1
        known = self.image.brokers.get(broker)
        previous = known.epoch if known is not None and self.random.random() < 0.5 else -1
        response = self.handle(
            registration(broker, self.incarnation[broker], previous_broker_epoch=previous)
        )
        if response.error == 0:
            self.alive[broker] = True
            self.connect(broker)

    def beat(self) -> None:
        for broker in BROKERS:
            if self.alive[broker] and self.random.random() < 0.8:
                behind = self.random.choice((0, 0, 0, 1, 3))
                if not self.heartbeat(broker, offset=len(self.log) - 1 - behind).fenced:
                    self.served_ms[broker] = self.now_ms
                if self.broker(broker).active:
                    self.left.discard(broker)

    def kill(self) -> None:
        broker = self.pick(alive=True)
        if broker is not None:
            self.alive[broker] = False
            if self.random.random() < 0.8:
                self.disconnect(broker)

    def cut(self) -> None:
        """Break the connection of a broker that is alive. It may reconnect."""
        broker = self.pick(alive=True)
        if broker is not None:
            self.disconnect(broker)
            if self.random.random() < 0.7:
                self.connect(broker)

    def disconnect(self, broker: int) -> None:
        self.take(self.controller.connection_lost(broker, self.broker(broker).epoch))

    def ask_to_leave(self) -> None:
        broker = self.pick(alive=True)
        if broker is None:
            return
        self.left.add(broker)
        if self.heartbeat(broker, want_shut_down=True).should_shut_down:
            self.alive[broker] = False

    def create_one(self) -> None:
        names = self.image.topic_names()
        if len(names) < 6:
            replicas = self.random.sample(BROKERS, 3)
            unclean = self.random.choice(("true", "false"))
            min_isr = self.random.choice(("1", "2", "3"))
            configs = {"unclean.leader.election.enable": unclean, "min.insync.replicas": min_isr}
            self.create(f"t{len(names)}", tuple(replicas), configs=configs)

    def propose(self) -> None:
        """Let a leader propose an allowed ISR: active replicas, itself included."""
        for name in self.image.topic_names():
            partition = self.partition(name)
            if self.alive.get(partition.leader) and self.random.random() < 0.5:
                active = [r for r in partition.replicas if self.broker(r).active]
                chosen = [r for r in active if self.random.random() < 0.6]
                isr = tuple(dict.fromkeys([partition.leader, *chosen]))
                self.propose_isr(name, isr)

    def probe(self) -> None:
        probes, self.effects = self.effects, []
        for probe in probes:
            fate = self.random.random()
            if fate < 0.2:
                self.effects.append(probe)  # not answered yet
            elif fate < 0.3:
                self.take(self.controller.probe_failed(probe))
            else:
                self.answer(probe)

    def answer(self, probe: ProbeBroker) -> None:
        broker = self.image.brokers.get(probe.broker_id)
        current = broker is not None and broker.epoch == probe.broker_epoch
        if current and self.alive[probe.broker_id]:
            self.take(self.controller.probe_succeeded(probe))
        else:
            self.take(self.controller.probe_refused(probe, now_ms=self.now_ms))

    def wait(self) -> None:
        self.run_until(self.now_ms + self.random.choice((10, 500, 2000, 5000)))

    def take_over(self) -> None:
        standby = Controller(self.settings, random.Random(self.random.random()))
        for probe in probes_of(standby.loaded(self.image)):
            if self.alive[probe.broker_id]:
                standby.probe_succeeded(probe)
        self.activate(standby)
        # Sessions are fresh: each unfenced broker counts as serving from now on.
        for broker_id in self.image.broker_ids():
            self.served_ms[broker_id] = self.now_ms

    # ------------------------------------------------------------------------------------ the rules

    def check(self, before: MetadataImage, length: int) -> None:
        self.check_index()
        for topic, partition_id, now in self.image.all_partitions():
            self.check_state(now)
            self.check_elr(topic, now)
            old = before.partition(topic.id, partition_id)
            if old is not None:
                assert now.partition_epoch >= old.partition_epoch
                assert now.leader_epoch >= old.leader_epoch
                assert now.leader == old.leader or now.leader_epoch > old.leader_epoch
                assert now == old or now.partition_epoch > old.partition_epoch
        for record in self.log[length:]:
            if isinstance(record, CAUSED):
                assert record.cause, record
        for broker_id, broker in before.brokers.items():
            assert self.broker(broker_id).epoch >= broker.epoch

    def check_index(self) -> None:
        kept, made = self.controller._context.index, finished(PartitionIndex.of(self.image))
        for broker_id in BROKERS:
            assert kept.partitions_in_isr(broker_id) == made.partitions_in_isr(broker_id)
            assert kept.partitions_in_elr(broker_id) == made.partitions_in_elr(broker_id)
            assert set(kept.led_by[broker_id]) == set(made.led_by[broker_id])
        assert set(kept.leaderless) == set(made.leaderless)
        assert set(kept.imbalanced) == set(made.imbalanced)
        assert +kept.preferred == +made.preferred

    def check_state(self, partition: Partition) -> None:
        """Check that a leader and its whole ISR are active, and that the ISR of a leaderless
        partition has no active member."""
        assert set(partition.isr) <= set(partition.replicas)
        assert partition.isr or (self.elr and partition.leader < 0)
        active = [replica for replica in partition.isr if self.broker(replica).active]
        if partition.leader < 0:
            assert not active
        else:
            assert partition.leader in active and len(active) == len(partition.isr)

    def check_elr(self, topic: Topic, partition: Partition) -> None:
        """Check the ELR (KIP-966): it is empty if the ISR has min.insync.replicas members, has
        assigned replicas outside of the ISR, and a leaderless partition without an ISR has no
        active member of it. The last known leader is known only while there is no leader."""
        min_isr = int(self.image.config(2, topic.name)["min.insync.replicas"])
        elr = set(partition.elr)
        assert not elr or len(partition.isr) < min_isr
        assert elr <= set(partition.replicas) - set(partition.isr)
        assert not partition.last_known_elr or (partition.leader < 0 and not partition.isr)
        if partition.leader < 0 and not partition.isr:
            may_lead = elr or set(partition.last_known_elr)
            assert not any(self.broker(replica).active for replica in may_lead)

    def check_unclean(self, record: PartitionChangeRecord) -> None:
        """Check that an unclean election happened only if it is enabled, and only after every ISR
        member was out of service for a whole session or had left by itself. A hint is no sufficient
        reason."""
        topic = self.image.topics[record.topic_id]
        old = self.image.partition(record.topic_id, 0)
        assert self.image.config(2, topic.name)["unclean.leader.election.enable"] == "true"
        assert old is not None
        # The last known leader that is active again has been outvoted by the ELR.
        last = {each for each in old.last_known_elr if not self.broker(each).active}
        for member in {*old.isr, *old.elr, *last}:
            silent = self.now_ms - self.served_ms[member] >= SESSION_MS
            assert silent or member in self.left, (member, old, record)


@pytest.mark.parametrize("elr", [False, True], ids=["without ELR", "with ELR"])
@pytest.mark.parametrize("seed", range(20))
def test_random_history(seed: int, elr: bool) -> None:
    history = History(seed, elr=elr)
    for _ in range(STEPS):
        history.step()
    assert len(history.log) > 20


def test_the_histories_contain_what_they_are_about() -> None:
    causes: set[str] = set()
    elections = 0
    for seed in range(8):
        history = History(seed, elr=seed % 2 == 1)
        for _ in range(STEPS):
            history.step()
        causes |= {record.cause for record in history.log if isinstance(record, CAUSED)}
        elections += history.controller.index.elr_elections
    assert elections > 2, "leaders from the ELR"
    assert causes >= {
        Cause.SESSION_EXPIRED,
        Cause.CONNECTION_LOST,
        Cause.CONTROLLED_SHUTDOWN,
        Cause.UNCLEAN_ELECTION,
        Cause.UNCLEAN_RESTART,
        Cause.LAST_KNOWN_LEADER,
        Cause.LEADER_IMBALANCE,
    }


def test_without_holds_some_history_elects_uncleanly_on_a_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ablation: without holds, some history violates `check_unclean`."""
    monkeypatch.setattr(Hints, "holds_any", lambda self, broker_ids: False)
    with pytest.raises(AssertionError):
        for seed in range(20):
            history = History(seed)
            for _ in range(STEPS):
                history.step()
