"""The commands of scripts about one partition: three brokers, and the controller's rules.

A broker learns of the metadata log only by `learn`. Requests and responses cross only when a
command says so. After each command the trace shows what changed at the controller, and the high
watermark and the ISR of each replica that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.broker.partition.isr_states import IsrState
from quorate.broker.partition.partition import ACKS_ALL, FollowerFetch
from quorate.quorum.controller.state.messages import (
    AlterPartitionRequest,
    IsrChange,
)
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from tests.scripts.brokers import ScriptedBrokers, log_of
from tests.scripts.language import Step
from tests.scripts.partition_trace import (
    isr_text,
    leader_text,
    log_text,
    partition_text,
    proposal_text,
    record_text,
)
from tests.unit.partition.harness import batch, take_proposal
from tests.unit.partition.replicated_partition import TOPIC, ReplicatedPartition


@dataclass(slots=True)
class Waiting:
    """A Produce request with acks=all that is not answered yet."""

    leader: int
    offset: int


class ScriptedPartition:
    """One script's partition. The command `brokers` has made it."""

    def __init__(self, step: Step) -> None:
        self.trace: list[str] = []
        self._world = world = ReplicatedPartition(
            min_isr=step.option("min-isr", 1),
            unclean=step.options.get("unclean") == "yes",
            elr=step.options.get("elr") == "yes",
        )
        if step.numbers() != [len(world.replicas)]:
            raise step.error(f"a partition has {len(world.replicas)} brokers")
        self.brokers = ScriptedBrokers(world, self.trace)
        self._sent: dict[int, IsrChange] = {}
        """The last proposal that each leader has sent."""
        self._waiting: list[Waiting] = []
        self._shown = self._facts()
        self._records = len(world.driver.log)
        self.trace.append(partition_text(world.driver.partition(TOPIC)))

    def run(self, step: Step) -> list[str]:
        """Carry out one command and return its trace."""
        command = COMMANDS.get(step.command)
        if command is None:
            raise step.error(f"one of {', '.join(sorted(COMMANDS))} is known")
        self.trace.clear()
        try:
            command(self, step)
        except KafkaError as refusal:
            self.trace.append(f"refused with {refusal.code.name}")
        self._show_records()
        self.trace += self.brokers.answers
        self.brokers.answers.clear()
        self._show_changes()
        return list(self.trace)

    # The trace

    def _show_records(self) -> None:
        log = self._world.driver.log
        for record in log[self._records :]:
            if text := record_text(record):
                self.trace.append(text)
        self._records = len(log)

    def _facts(self) -> dict[int, tuple[int, IsrState | None]]:
        return {
            broker_id: (
                replica.high_watermark,
                None if replica.leadership is None else replica.leadership.isr,
            )
            for broker_id, replica in self._world.replicas.items()
        }

    def _show_changes(self) -> None:
        facts = self._facts()
        for broker_id, (high_watermark, isr) in facts.items():
            old_watermark, old_isr = self._shown[broker_id]
            if isr is not None and isr != old_isr:
                self.trace.append(f"broker {broker_id} {isr_text(isr)}")
            if high_watermark != old_watermark:
                self.trace.append(f"broker {broker_id} has high watermark {high_watermark}")
        self._shown = facts
        for each in list(self._waiting):
            error = self._world.replicas[each.leader].acks_all_error(each.offset + 1)
            if error is not None:
                self._waiting.remove(each)
                answer = "acknowledges" if error is ErrorCode.NONE else f"answers {error.name} for"
                self.trace.append(f"broker {each.leader} {answer} offset {each.offset}")

    # Records

    def produce(self, step: Step) -> None:
        """`produce LEADER`: a producer with acks=all sends one record to the leader."""
        (leader,) = step.numbers()
        world = self._world
        done = world.replicas[leader].append_as_leader(
            batch(), ACKS_ALL, now_ms=world.driver.now_ms, wall_ms=0
        )
        self._waiting.append(Waiting(leader, done.base_offset))
        epoch = world.replicas[leader].leader_epoch
        self.trace.append(
            f"broker {leader} appends offset {done.base_offset} in leader epoch {epoch}"
        )

    def fetch(self, step: Step) -> None:
        """`fetch FOLLOWER [process=earlier]`: the follower fetches once from the leader that it
        knows. A fetch of its earlier process arrives late."""
        (broker_id,) = step.numbers()
        world = self._world
        follower = world.replicas[broker_id]
        leader_id = follower.leader_id
        epoch, offset = self.brokers.position(step, broker_id)
        last_epoch = log_of(follower).last_epoch
        sent = FollowerFetch(broker_id, epoch, follower.leader_epoch, offset, last_epoch, 0)
        self.trace.append(
            f"broker {broker_id} fetches from broker {leader_id} at offset {sent.offset} "
            f"in leader epoch {sent.leader_epoch}"
        )
        leader = world.replicas[leader_id]
        error = leader.leader_error(sent.leader_epoch)
        if error is not ErrorCode.NONE:
            self.trace.append(f"broker {leader_id} answers {error.name}")
            return
        diverging = leader.follower_fetched(sent, world.driver.now_ms)
        if diverging is not None:
            self.trace.append(
                f"broker {leader_id} sends the divergence: its leader epoch {diverging.epoch} ends "
                f"at offset {diverging.offset}"
            )
            follower.truncate(diverging)
            self.trace.append(
                f"broker {broker_id} truncates its log to offset {follower.log.end_offset}"
            )
            return
        data = leader.log.read(sent.offset, 1 << 20)
        if data:
            follower.append_as_follower(data, wall_ms=0)
            self.trace.append(
                f"broker {broker_id} appends up to offset {follower.log.end_offset - 1}"
            )
        follower.leader_high_watermark(leader.high_watermark)

    # The ISR

    def check(self, step: Step) -> None:
        """`check LEADER`: the leader looks for members of the ISR that lag."""
        (leader,) = step.numbers()
        self._world.replicas[leader].check_followers(self._world.driver.now_ms)

    def propose(self, step: Step) -> None:
        """`propose LEADER [lost=request|answer]`: the leader sends AlterPartition, or sends it
        again, and takes the answer."""
        (broker_id,) = step.numbers()
        world = self._world
        leader = world.replicas[broker_id]
        if leader.leadership is not None and leader.leadership.proposal is not None:
            self._sent[broker_id] = take_proposal(leader)
        change = self._sent[broker_id]
        self.trace.append(f"broker {broker_id} proposes {proposal_text(change)}")
        if step.options.get("lost") == "request":
            self.trace.append("the request is lost")
            return
        response = world.driver.handle(
            AlterPartitionRequest(
                broker_id=broker_id, broker_epoch=self.brokers.epochs[broker_id], changes=(change,)
            )
        )
        self._show_records()
        error = response.error or response.results[0].error
        if step.options.get("lost") == "answer":
            self.trace.append("the answer is lost")
            return
        if error:
            self.trace.append(f"the controller answers {ErrorCode.of(error).name}")
        if not response.error:
            leader.isr_answered(change, response.results[0], world.driver.now_ms)

    def learn(self, step: Step) -> None:
        """`learn [BROKER...]`: the brokers replay the metadata log up to its end."""
        for broker_id in step.numbers() or self.brokers.up():
            replica = self._world.replicas[broker_id]
            before = (replica.leader_id, replica.leader_epoch)
            self._world.replay_metadata(broker_id)
            if (replica.leader_id, replica.leader_epoch) != before:
                self.trace.append(
                    f"broker {broker_id} learns of {leader_text(replica.leader_id)} "
                    f"in leader epoch {replica.leader_epoch}"
                )

    # The state

    def state(self, step: Step) -> None:
        """`state`: show the partition at the controller, and each replica."""
        world = self._world
        self.trace.append(f"controller: {partition_text(world.driver.partition(TOPIC))}")
        for broker_id, replica in world.replicas.items():
            down = ", down" if broker_id in self.brokers.down else ""
            self.trace.append(
                f"broker {broker_id}: {log_text(log_of(replica))}, high watermark "
                f"{replica.high_watermark}{down}"
            )


COMMANDS: dict[str, Callable[[ScriptedPartition, Step], None]] = {
    "produce": ScriptedPartition.produce,
    "fetch": ScriptedPartition.fetch,
    "check": ScriptedPartition.check,
    "propose": ScriptedPartition.propose,
    "learn": ScriptedPartition.learn,
    "wait": lambda world, step: world.brokers.wait(step),
    "heartbeat": lambda world, step: world.brokers.heartbeat(step),
    "pause": lambda world, step: world.brokers.pause(step),
    "resume": lambda world, step: world.brokers.resume(step),
    "crash": lambda world, step: world.brokers.crash(step),
    "stop": lambda world, step: world.brokers.stop(step),
    "kill": lambda world, step: world.brokers.kill(step),
    "register": lambda world, step: world.brokers.register(step),
    "state": ScriptedPartition.state,
}
