"""Real histories as log bytes: a controller's own rules, driven by steps that a seed chooses.

What the rules here do not write is put between by hand, as Kafka would: eligible leader replicas
and what clears them, and the transaction that a crash left open and the next controller aborted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.log.batches.batch import build_value_batch
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.image import Partition, Topic
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.quorum.protocol.schemas.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from quorate.quorum.protocol.schemas.elect_leaders import ElectLeadersRequest
from quorate.quorum.protocol.schemas.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.quorum.protocol.schemas.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
)
from quorate.quorum.protocol.schemas.unregister_broker import UnregisterBrokerRequest
from tests.unit.analytics.logs import leadership_of, min_isr, voters_of
from tests.unit.controller.harness import CLUSTER_ID, Driver, registration, uuid

START_MS = 1_800_000_000_000
BROKERS = (1, 2, 3, 4)
MAX_TOPICS = 4


class Ruled(Driver):
    """`batches` is the log; every step may find that it cannot be taken, and then does nothing."""

    skews_ms: tuple[int, ...] = (0, -700)
    """The differences of a controller's clock from the time, of which each epoch has one."""

    def __init__(self, seed: int) -> None:
        self.batches: list[bytes] = []
        self.epoch = 0
        self.skew_ms = 0
        self.random = random.Random(seed)
        self.incarnation = dict.fromkeys(BROKERS, 0)
        self.alive = dict.fromkeys(BROKERS, False)
        settings = ControllerSettings(
            cluster_id=CLUSTER_ID,
            node_id=1,
            max_idle_interval_ms=0,
            imbalance_check_interval_ms=9000,
        )
        super().__init__(settings, seed=seed)
        self.steps: tuple[tuple[int, Callable[[], None]], ...] = (
            (6, self.start_one), (9, self.beat), (3, self.kill), (2, self.leave), (6, self.wait),
            (5, self.create_one), (2, self.grow), (2, self.delete), (5, self.configure),
            (8, self.propose), (5, self.reassign), (2, self.cancel), (2, self.elect),
            (1, self.unregister), (1, self.take_over), (1, self.abort), (2, self.elr),
            (1, self.clear_elr), (1, self.change_voters),
        )  # fmt: skip

    def run(self, steps: int) -> bytes:
        weights = [weight for weight, _ in self.steps]
        for _ in range(3):
            self.start_one()
        self.beat()
        for _ in range(steps):
            (step,) = self.random.choices([step for _, step in self.steps], weights)
            step()
            self.probe()
        return b"".join(self.batches)

    # ------------------------------------------------------------------------------ the log

    def append(self, records: Sequence[MetadataRecord]) -> None:
        self.write(records)
        super().append(records)

    def write(self, records: Sequence[MetadataRecord]) -> None:
        if records:
            values = [encode_record(record) for record in records]
            made = build_value_batch(
                values,
                base_offset=len(self.log),
                leader_epoch=self.epoch,
                timestamp_ms=START_MS + self.now_ms + self.skew_ms,
            )
            self.batches.append(bytes(made))

    def write_without_effect(self, records: Sequence[MetadataRecord]) -> None:
        self.write(records)
        self.log += records

    def write_control(self, made: Callable[..., bytes], *about: object, **more: object) -> None:
        at_ms = START_MS + self.now_ms + self.skew_ms
        self.batches.append(
            made(*about, epoch=self.epoch, offset=len(self.log), at_ms=at_ms, **more)
        )
        self.log.append(NoOpRecord())

    def voters(self) -> tuple[int, ...]:
        return self.random.choice(((1,), (1, 2, 3), (1, 2, 4)))

    def change_voters(self) -> None:
        self.write_control(voters_of, self.voters())

    def activate(self, controller: Controller) -> None:
        """Begin a new epoch. Its clock may differ from that of the previous controller."""
        self.epoch += 1
        self.skew_ms = self.random.choice(self.skews_ms)
        self.write_control(leadership_of, self.random.choice((1, 2, 3)), voters=self.voters())
        super().activate(controller)

    # ------------------------------------------------------------------------------ brokers

    def pick(self, *, alive: bool) -> int | None:
        some = [broker for broker in BROKERS if self.alive[broker] == alive]
        return self.random.choice(some) if some else None

    def start_one(self) -> None:
        broker = self.pick(alive=False)
        if broker is None:
            return
        self.incarnation[broker] += 1
        known = self.image.brokers.get(broker)
        clean = known is not None and self.random.random() < 0.5
        previous = known.epoch if clean and known is not None else -1
        request = registration(broker, self.incarnation[broker], previous_broker_epoch=previous)
        if self.handle(request).error == 0:
            self.alive[broker] = True
            self.connect(broker)

    def beat(self) -> None:
        for broker in BROKERS:
            if self.alive[broker] and self.random.random() < 0.9:
                self.heartbeat(broker)

    def kill(self) -> None:
        broker = self.pick(alive=True)
        if broker is not None:
            self.alive[broker] = False
            if self.random.random() < 0.7:
                self.take(self.controller.connection_lost(broker, self.broker(broker).epoch))

    def probe(self) -> None:
        probes, self.effects = self.effects, []
        for probe in probes:
            known = self.image.brokers.get(probe.broker_id)
            if known is not None and known.epoch == probe.broker_epoch:
                if self.alive[probe.broker_id]:
                    self.take(self.controller.probe_succeeded(probe))
                else:
                    self.take(self.controller.probe_refused(probe, now_ms=self.now_ms))

    def leave(self) -> None:
        broker = self.pick(alive=True)
        if broker is not None and self.heartbeat(broker, want_shut_down=True).should_shut_down:
            self.alive[broker] = False

    def unregister(self) -> None:
        broker = self.pick(alive=False)
        if broker is not None and broker in self.image.brokers:
            self.handle(UnregisterBrokerRequest(broker_id=broker))

    def wait(self) -> None:
        self.run_until(self.now_ms + self.random.choice((10, 300, 2000, 5000)))

    def take_over(self) -> None:
        standby = Controller(self.settings, random.Random(self.random.random()))
        self.carry_out(standby.loaded(self.image))
        self.activate(standby)

    # ----------------------------------------------------------------- topics and partitions

    def some_topic(self) -> Topic | None:
        names = self.image.topic_names()
        return self.image.topic(self.random.choice(names)) if names else None

    def some_partition(self) -> tuple[Topic, int, Partition] | None:
        topic = self.some_topic()
        if topic is None:
            return None
        partition_id = self.random.choice(topic.partition_ids())
        return topic, partition_id, topic.partitions[partition_id]

    def replicas(self) -> tuple[int, ...]:
        known = [each for each in BROKERS if each in self.image.brokers]
        return tuple(self.random.sample(known, min(len(known), self.random.choice((1, 2, 3)))))

    def create_one(self) -> None:
        if len(self.image.topic_names()) < MAX_TOPICS:
            first = self.replicas()
            sets = [first, tuple(reversed(first))][: self.random.choice((1, 2))]
            configs = {"unclean.leader.election.enable": self.random.choice(("true", "false"))}
            self.create(f"t{self.random.randrange(6)}", *sets, configs=configs)

    def grow(self) -> None:
        if (topic := self.some_topic()) is not None and len(topic.partition_ids()) < 4:
            more = CreatePartitionsTopic(
                name=topic.name, count=len(topic.partition_ids()) + 1, assignments=None
            )
            request = CreatePartitionsRequest(topics=(more,), timeout_ms=0, validate_only=False)
            self.handle(request)

    def delete(self) -> None:
        if (topic := self.some_topic()) is not None:
            self.handle(DeleteTopicsRequest(topic_names=(topic.name,), timeout_ms=0))

    def configure(self) -> None:
        topic = self.some_topic()
        kind, name = (4, "") if topic is None or self.random.random() < 0.4 else (2, topic.name)
        value = self.random.choice((None, "1", "2", "3"))
        config = IncrementalAlterableConfig(
            name="min.insync.replicas", config_operation=int(value is None), value=value
        )
        resource = IncrementalAlterConfigsResource(
            resource_type=kind, resource_name=name, configs=(config,)
        )
        self.handle(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False))

    def propose(self) -> None:
        """Let every running leader propose an allowed ISR."""
        for topic, partition_id, partition in list(self.image.all_partitions()):
            if partition.leader > 0 and self.alive[partition.leader]:
                known = [self.image.brokers.get(each) for each in partition.replicas]
                active = [each.id for each in known if each is not None and each.active]
                chosen = [each for each in active if self.random.random() < 0.7]
                isr = tuple(dict.fromkeys([partition.leader, *chosen]))
                self.propose_isr(
                    topic.name,
                    isr,
                    partition_id=partition_id,
                    sender=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=partition.partition_epoch,
                )

    def ask_reassignment(self, replicas: tuple[int, ...] | None) -> None:
        if (found := self.some_partition()) is not None:
            topic, partition_id, _ = found
            one = ReassignablePartition(partition_index=partition_id, replicas=replicas)
            asked = ReassignableTopic(name=topic.name, partitions=(one,))
            self.handle(AlterPartitionReassignmentsRequest(topics=(asked,)))

    def reassign(self) -> None:
        self.ask_reassignment(self.replicas())

    def cancel(self) -> None:
        self.ask_reassignment(None)

    def elect(self) -> None:
        kind = self.random.choice((0, 1))
        self.handle(ElectLeadersRequest(election_type=kind, topic_partitions=None))

    # ------------------------------------------------------------------------------ by hand

    def abort(self) -> None:
        """Let a controller die in a transaction, which the next one aborts."""
        begun: list[MetadataRecord] = [
            BeginTransactionRecord(name="x"),
            TopicRecord(name="never", topic_id=uuid(len(self.log))),
        ]
        if (topic := self.some_topic()) is not None:
            begun.append(RemoveTopicRecord(topic_id=topic.id))
        self.write_without_effect(begun)
        self.take_over()
        self.write_without_effect([AbortTransactionRecord(reason="failover")])

    def elr(self) -> None:
        if (found := self.some_partition()) is not None:
            topic, partition_id, partition = found
            out = tuple(each for each in partition.replicas if each not in partition.isr)
            change = PartitionChangeRecord(
                topic_id=topic.id,
                partition_id=partition_id,
                eligible_leader_replicas=out[:1],
                last_known_elr=out[1:],
            )
            self.append([change])

    def clear_elr(self) -> None:
        topic = self.some_topic()
        whole = topic is None or self.random.random() < 0.5
        self.append([ClearElrRecord(topic_name="" if whole or topic is None else topic.name)])


class Varied(Ruled):
    """A history with a clock that is hours ahead, and times without a min.insync.replicas."""

    skews_ms = (0, -700, 7_200_000)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.steps += ((1, self.unset),)

    def unset(self) -> None:
        """Remove the cluster-wide min.insync.replicas, as a Kafka without ELR does."""
        self.append([min_isr("", None)])
