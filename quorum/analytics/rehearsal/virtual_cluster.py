"""The nodes of a rehearsal on virtual time: they heartbeat, stop, start, and fail over.

Every broker that is active at the chosen moment has a process. Brokers that are fenced then never
start. A node that is a voter too takes its vote with it. Without a majority there is no active
controller.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.quorum.analytics.log.errors import AnalyticsError
from quorate.quorum.analytics.rehearsal.assumptions import Assumptions, drawn
from quorate.quorum.analytics.rehearsal.requests import heartbeat, log_ends, registration
from quorate.quorum.analytics.rehearsal.timeline import Timeline
from quorate.quorum.analytics.rehearsal.virtual_controller import VirtualController
from quorate.quorum.analytics.rehearsal.virtual_replicas import VirtualReplicas
from quorate.quorum.analytics.replay.moment import Moment
from quorate.quorum.controller.state.result import AskReplicaLogs
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Random

RETRY_MS = 500
"""The time after which a broker repeats a registration without success."""
ANSWER_MS = 1
"""The time after which a broker answers a question for its logs."""


@dataclass(slots=True)
class Process:
    """The process of one broker, which serves once it has registered.

    `number` differs for each start. `clean_epoch` is the broker epoch of the last controlled
    shutdown, or -1."""

    broker_id: int
    runs: bool = True
    registered: bool = True
    stopping: bool = False
    number: int = 0
    clean_epoch: int = -1


class VirtualCluster:
    """The cluster while a scenario runs."""

    def __init__(self, at: Moment, assumptions: Assumptions, random: Random) -> None:
        self.assumptions, self.random = assumptions, random
        self.timeline = Timeline()
        self._processes = {
            each: Process(each) for each in at.image.broker_ids() if at.image.brokers[each].active
        }
        self._voters, self._controller_node = at.voters, at.leader
        self._failing_over = False
        self._controller = VirtualController(
            at, assumptions, random, changed=self._follow, asked=self._answer
        )
        self.replicas = VirtualReplicas(
            self._controller, self.timeline, assumptions, random, self._is_up
        )
        self._controller.activate(0)
        self.replicas.begin()
        for process in self._processes.values():
            self._beat_after(process, random.randrange(0, assumptions.heartbeat_interval_ms))

    @property
    def image(self) -> MetadataImage:
        """Return the cluster's metadata."""
        return self._controller.image

    # ----------------------------------------------------------------------------------- the faults

    def kill(self, broker_id: int) -> None:
        """End the process of a broker without a controlled shutdown."""
        self.timeline.tell(f"broker {broker_id} is killed")
        self._processes[broker_id].clean_epoch = -1
        self._end(self._processes[broker_id])

    def stop(self, broker_id: int) -> None:
        """Begin the controlled shutdown of a broker."""
        self.timeline.tell(f"broker {broker_id} begins a controlled shutdown")
        process = self._processes[broker_id]
        process.stopping = True
        process.number += 1  # A heartbeat that is due later is not sent.
        self._beat(process, process.number)

    def start(self, broker_id: int) -> None:
        """Start a process of a broker, which registers and is then unfenced."""
        self.timeline.tell(f"broker {broker_id} starts")
        process = self._processes[broker_id]
        process.runs, process.number = True, process.number + 1
        self._check_quorum()
        self._register(process, process.number)

    def fail_controller(self) -> None:
        """End the active controller. Another one follows if a majority of the voters runs."""
        self._lose_controller("the active controller fails")
        self._check_quorum()

    # ------------------------------------------------------------------------------- the conditions

    def is_down(self, broker_id: int) -> bool:
        """Return True if the broker has no process."""
        return not self._processes[broker_id].runs

    def is_settled(self) -> bool:
        """Return True if nothing will happen any more without another fault, but for periodic
        tasks of the controller."""
        if not self._controller.is_active:
            return not self._failing_over
        brokers = self.image.brokers
        return self.replicas.are_settled and all(
            brokers[each.broker_id].active if each.runs else brokers[each.broker_id].fenced
            for each in self._processes.values()
        )

    # ------------------------------------------------------------------------------------- the time

    def next_ms(self) -> int:
        """Return the time of the next event."""
        return min(self.timeline.next_ms(), self._controller.deadline_ms())

    def step(self) -> None:
        """Go on to the next event and let it happen."""
        deadline_ms = self._controller.deadline_ms()
        if self.timeline.next_ms() < deadline_ms:
            self.timeline.run_next()
        else:
            self.timeline.now_ms = max(self.timeline.now_ms, deadline_ms)
            self._controller.tick(self.timeline.now_ms)

    # ----------------------------------------------------------------------------------- the quorum

    def _check_quorum(self) -> None:
        """Begin a failover if there is no active controller and a majority of the voters runs. End
        the active controller if there is none."""
        if not self._has_majority():
            self._lose_controller("no majority of the voters runs: no controller is active")
        elif not self._controller.is_active and not self._failing_over:
            self._failing_over = True
            delay_ms = drawn(self.random, self.assumptions.failover_ms)
            self.timeline.after(delay_ms, self._take_over)

    def _lose_controller(self, text: str) -> None:
        if self._controller.is_active:
            self.timeline.tell(text)
            self._controller.fail()

    def _take_over(self) -> None:
        self._failing_over = False
        if not self._has_majority():
            return
        running = [each for each in self._voters if self._runs(each)]
        others = [each for each in running if each != self._controller_node] or running
        if others:
            self._controller_node = others[self.random.randrange(0, len(others))]
        self.timeline.tell("a new controller is active")
        self._controller.activate(self.timeline.now_ms)

    def _has_majority(self) -> bool:
        return not self._voters or 2 * sum(map(self._runs, self._voters)) > len(self._voters)

    def _runs(self, node_id: int) -> bool:
        return node_id not in self._processes or self._processes[node_id].runs

    # ---------------------------------------------------------------------------------- the brokers

    def _is_up(self, broker_id: int) -> bool:
        process = self._processes.get(broker_id)
        return process is not None and process.runs and process.registered

    def _end(self, process: Process) -> None:
        process.runs = process.registered = process.stopping = False
        self.replicas.ended(process.broker_id)
        if process.broker_id == self._controller_node:
            self._lose_controller("the active controller ends with its broker")
        self._check_quorum()

    def _register(self, process: Process, number: int) -> None:
        if not process.runs or process.number != number:
            return
        broker = self.image.brokers[process.broker_id]
        request = registration(broker, self.image, process.clean_epoch, self.random)
        response = self._controller.handle(request, self.timeline.now_ms)
        if response is not None and response.error == ErrorCode.NONE:
            process.registered = True
            self.replicas.began(process.broker_id)
            self._beat(process, number)
        elif response is None or response.error == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            self.timeline.after(RETRY_MS, lambda: self._register(process, number))
        else:
            raise AnalyticsError(f"broker {broker.id} cannot register again: {response.message}")

    def _beat_after(self, process: Process, delay_ms: int) -> None:
        number = process.number
        self.timeline.after(delay_ms, lambda: self._beat(process, number))

    def _beat(self, process: Process, number: int) -> None:
        """Send a heartbeat, and schedule the next one."""
        if not process.runs or process.number != number:
            return
        broker = self.image.brokers[process.broker_id]
        request = heartbeat(broker, self.image.last.offset, want_shut_down=process.stopping)
        response = self._controller.handle(request, self.timeline.now_ms)
        if response is not None and not response.error and response.should_shut_down:
            self.timeline.tell(f"broker {process.broker_id} has stopped")
            process.clean_epoch = broker.epoch
            self._end(process)
            return
        self._beat_after(process, self.assumptions.heartbeat_interval_ms)

    def _answer(self, asked: AskReplicaLogs) -> None:
        """Let a broker say how long its logs are, which the seed decides."""

        def answer() -> None:
            response = log_ends(asked, self.random) if self._is_up(asked.broker_id) else None
            self._controller.answered(asked, response, self.timeline.now_ms)

        self.timeline.after(ANSWER_MS, answer)

    def _follow(self, delta: ImageDelta) -> None:
        for broker_id, change in delta.brokers.items():
            before = change.old is not None and change.old.active
            if change.new is not None and change.new.active != before:
                where = "out of service" if before else "in service"
                self.timeline.tell(f"broker {broker_id} is {where}")
        self.replicas.follow(delta)
