"""The broker processes of a script about one partition: heartbeats, failures and registrations."""

from __future__ import annotations

from quorate.broker.partition.partition import Partition
from quorate.quorum.controller.state.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorate.quorum.protocol.errors import ErrorCode
from tests.scripts.language import Step
from tests.unit.controller.harness import registration
from tests.unit.partition.memory_log import MemoryPartitionLog
from tests.unit.partition.replicated_partition import ReplicatedPartition

HEARTBEAT_MS = 1000


def log_of(replica: Partition) -> MemoryPartitionLog:
    """Return the replica's log in memory."""
    assert isinstance(replica.log, MemoryPartitionLog)
    return replica.log


class ScriptedBrokers:
    """Three broker processes. Each knows its broker epoch, and is up, paused or down.

    The commands append the controller's answers to `answers`, which the trace shows below the
    records that the controller has written, and all other lines to `trace`.
    """

    def __init__(self, world: ReplicatedPartition, trace: list[str]) -> None:
        self.trace = trace
        self.answers: list[str] = []
        self.down: set[int] = set()
        self.paused: set[int] = set()
        self.epochs = {each: world.driver.broker(each).epoch for each in world.replicas}
        """The broker epoch that each process has."""
        self._earlier: dict[int, tuple[int, int]] = {}
        """The broker epoch and log end offset of each broker's earlier incarnation."""
        self._incarnations = dict.fromkeys(world.replicas, 1)
        self._world = world
        for broker_id in world.replicas:
            self._connect(broker_id)

    def up(self) -> list[int]:
        """Return the brokers that are neither down nor paused."""
        return sorted(set(self._world.replicas) - self.down - self.paused)

    def position(self, step: Step, broker_id: int) -> tuple[int, int]:
        """Return the broker epoch and log end offset of the process that the command names: the
        present one, or with `process=earlier` the one before it."""
        if step.options.get("process") == "earlier":
            return self._earlier[broker_id]
        return self._present(broker_id)

    def _present(self, broker_id: int) -> tuple[int, int]:
        return self.epochs[broker_id], self._world.replicas[broker_id].log.end_offset

    def wait(self, step: Step) -> None:
        """`wait MS`: time passes. Brokers that are up and unfenced send heartbeats."""
        (duration_ms,) = step.numbers()
        driver = self._world.driver
        end_ms = driver.now_ms + duration_ms
        while driver.now_ms < end_ms:
            driver.run_until(min(end_ms, driver.now_ms + HEARTBEAT_MS))
            for broker_id in self._world.replicas:
                if broker_id in self.up() and not driver.broker(broker_id).fenced:
                    self._heartbeat(broker_id, self.epochs[broker_id])

    def _heartbeat(
        self, broker_id: int, broker_epoch: int, *, want_shut_down: bool = False
    ) -> BrokerHeartbeatResponse:
        driver = self._world.driver
        response = driver.handle(
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=broker_epoch,
                metadata_offset=len(driver.log) - 1,
                want_fence=False,
                want_shut_down=want_shut_down,
            )
        )
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    def heartbeat(self, step: Step) -> None:
        """`heartbeat BROKER [process=earlier]`: a heartbeat of a broker that has replayed the
        metadata log."""
        (broker_id,) = step.numbers()
        epoch, _ = self.position(step, broker_id)
        error = self._heartbeat(broker_id, epoch).error
        if error:
            self.answers.append(f"the controller answers {ErrorCode.of(error).name}")

    def stop(self, step: Step) -> None:
        """`stop BROKER`: a heartbeat of a broker that wants to stop. It sends no other heartbeats
        from then on."""
        (broker_id,) = step.numbers()
        self.paused.add(broker_id)
        self.trace.append(f"broker {broker_id} asks to stop")
        response = self._heartbeat(broker_id, self.epochs[broker_id], want_shut_down=True)
        if response.should_shut_down:
            self.down.add(broker_id)
        answer = "may stop now" if response.should_shut_down else "has to wait"
        self.answers.append(f"the controller answers that broker {broker_id} {answer}")

    def pause(self, step: Step) -> None:
        """`pause BROKER`: the process hangs, and sends no heartbeats."""
        (broker_id,) = step.numbers()
        self.paused.add(broker_id)
        self.trace.append(f"broker {broker_id} sends nothing")

    def resume(self, step: Step) -> None:
        """`resume BROKER`: the process goes on with what it knew."""
        (broker_id,) = step.numbers()
        self.paused.remove(broker_id)
        self.trace.append(f"broker {broker_id} continues")

    def crash(self, step: Step) -> None:
        """`crash BROKER`: power loss. The controller gets no evidence but the silence."""
        (broker_id,) = step.numbers()
        self.down.add(broker_id)
        self.trace.append(f"broker {broker_id} is down")

    def kill(self, step: Step) -> None:
        """`kill BROKER`: the process dies. Its connection closes, and its port refuses a probe."""
        (broker_id,) = step.numbers()
        self.down.add(broker_id)
        self.trace.append(f"broker {broker_id} is down, and its port refuses connections")
        driver = self._world.driver
        driver.effects.clear()
        driver.take(driver.controller.connection_lost(broker_id, self.epochs[broker_id]))
        for probe in list(driver.effects):
            driver.take(driver.controller.probe_refused(probe, now_ms=driver.now_ms))

    def _connect(self, broker_id: int) -> None:
        driver = self._world.driver
        driver.effects.clear()
        driver.connect(broker_id)
        for probe in list(driver.effects):
            driver.take(driver.controller.probe_succeeded(probe))

    def register(self, step: Step) -> None:
        """`register BROKER [log=lost]`: another incarnation of the broker registers."""
        (broker_id,) = step.numbers()
        world = self._world
        request = registration(broker_id, self._incarnations[broker_id] + 1)
        response = world.driver.handle(request)
        if response.error:
            self.trace.append(f"the controller answers {ErrorCode.of(response.error).name}")
            return
        self._earlier[broker_id] = self._present(broker_id)
        self._incarnations[broker_id] += 1
        self.epochs[broker_id] = response.broker_epoch
        self.down.discard(broker_id)
        log = log_of(world.replicas[broker_id])
        replica = world.new_replica(broker_id)
        if step.options.get("log") != "lost":
            replica.log = log
        world.replicas[broker_id] = replica
        self._connect(broker_id)
