"""A controller with a minimal shell: it appends and replays each result's records immediately."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.decision_steps import Outcome
from quorate.quorum.controller.state.messages import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    IsrChange,
    IsrChangeResult,
    ReplicaLog,
    ReplicaLogsResponse,
)
from quorate.quorum.controller.state.result import AskReplicaLogs, ProbeBroker, Result
from quorate.quorum.controller.state.settings import NEW_CLUSTER_FEATURES, ControllerSettings
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.causes import Cause
from quorate.quorum.metadata.image import (
    ELIGIBLE_LEADER_REPLICAS,
    METADATA_VERSION,
    Broker,
    MetadataImage,
    Partition,
)
from quorate.quorum.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    Endpoint,
    EndTransactionRecord,
    FeatureRange,
    MetadataRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.protocol.schemas.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)

CLUSTER_ID = "the-cluster"
EPOCH = 1
SESSION_MS = 9000
WITHOUT_ELR = {METADATA_VERSION: 27}
MARKERS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


def uuid(number: int) -> Uuid:
    """Return a uuid that is not reserved."""
    return Uuid((number + 1000).to_bytes(16, "big"))


def registration(
    broker_id: int, incarnation: int = 1, *, previous_broker_epoch: int = -1, **changes: Any
) -> BrokerRegistrationRequest:
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": uuid(100 * broker_id + incarnation),
        "endpoints": (Endpoint(name="PLAINTEXT", host=f"b{broker_id}", port=9092),),
        "features": (
            FeatureRange(
                name="metadata.version", min_supported_version=7, max_supported_version=27
            ),
            FeatureRange(
                name=ELIGIBLE_LEADER_REPLICAS, min_supported_version=0, max_supported_version=1
            ),
        ),
        "rack": None,
        "log_dirs": (uuid(10_000 + broker_id),),
        "previous_broker_epoch": previous_broker_epoch,
        "replication_address": (f"b{broker_id}", 9094),
    }
    return BrokerRegistrationRequest(**{**fields, **changes})


class Driver:
    """The controller, its time and its log. `log` holds every record; the index is the offset.

    Without `settings`, eligible leader replicas are off unless `elr` is True."""

    def __init__(
        self, settings: ControllerSettings | None = None, *, seed: int = 1, elr: bool = False
    ) -> None:
        self.settings = settings or ControllerSettings(
            cluster_id=CLUSTER_ID,
            node_id=3000,
            max_idle_interval_ms=0,
            features=NEW_CLUSTER_FEATURES if elr else WITHOUT_ELR,
        )
        self.now_ms = 0
        self.log: list[MetadataRecord] = []
        self.effects: list[ProbeBroker] = []
        self.logs: dict[int, tuple[int, int, int]] = {}
        self.asked: list[AskReplicaLogs] = []
        self.answers_logs = True
        self.pauses: list[int] = []
        self.controller = Controller(self.settings, random.Random(seed))
        self.activate(self.controller)

    # ------------------------------------------------------------------------------------ the shell

    def activate(self, controller: Controller) -> None:
        """Make `controller` the active one. For a takeover, pass a standby or a new controller."""
        image = self.controller.image
        self.controller = controller
        self.take(controller.activate(image, now_ms=self.now_ms, next_offset=len(self.log)))

    def take(self, outcome: Outcome) -> Any:
        result = self.last_step(outcome)
        self.carry_out(result)
        self.append(result.records)
        if self.controller._context.replica_logs._wanted and self.controller._active:
            self.take(self.controller.tick(self.now_ms))
        return result.response

    def last_step(self, outcome: Outcome) -> Result:
        """Do all steps of a decision but the last one. Return the result of the last one, and keep
        the numbers of records of the others in `pauses`."""
        while not isinstance(outcome, Result):
            step = self.controller.resume(outcome, now_ms=self.now_ms, next_offset=len(self.log))
            if isinstance(step, Result):
                outcome = step
            else:
                self.pauses.append(len(step or ()))
                self.append(step or ())
        return outcome

    def carry_out(self, result: Result) -> None:
        """Keep the probes, and let the brokers answer questions for their logs with `logs`."""
        for effect in result.effects:
            if isinstance(effect, AskReplicaLogs):
                self.asked.append(effect)
                if self.answers_logs:
                    self.answer_logs(effect)
            else:
                self.effects.append(effect)

    def answer_logs(self, asked: AskReplicaLogs, epoch: int | None = None) -> None:
        """Answer with the entries of `logs`, (last epoch, end offset, high watermark) by broker."""
        known = self.logs.get(asked.broker_id)
        found = (
            ()
            if known is None
            else tuple(
                ReplicaLog(
                    topic_id=topic_id,
                    partition_id=partition_id,
                    last_epoch=known[0],
                    end_offset=known[1],
                    high_watermark=known[2],
                )
                for topic_id, partition_id in asked.partitions
            )
        )
        response = ReplicaLogsResponse(
            broker_epoch=asked.broker_epoch if epoch is None else epoch, logs=found
        )
        self.take(self.controller.replica_logs(asked, response, now_ms=self.now_ms))

    def append(self, records: Sequence[MetadataRecord]) -> None:
        if not records:
            return
        self.log += records
        last = EpochOffset(EPOCH, len(self.log) - 1)
        state = [record for record in records if not isinstance(record, MARKERS)]
        image, delta = replay(self.controller.image, state, last, self.now_ms)
        self.carry_out(self.controller.replayed(image, delta))

    def handle(self, request: object) -> Any:
        self.carry_out(self.controller.questions(request, now_ms=self.now_ms))
        return self.take(
            self.controller.handle(request, now_ms=self.now_ms, next_offset=len(self.log))
        )

    def run_until(self, now_ms: int) -> None:
        """Advance the time to `now_ms`, with a tick at every deadline on the way."""
        while (deadline_ms := self.controller.deadline_ms()) <= now_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.take(self.controller.tick(self.now_ms))
        self.now_ms = now_ms

    # ---------------------------------------------------------------------------------- the brokers

    def register(self, broker_id: int, incarnation: int = 1, **changes: Any) -> int:
        response: BrokerRegistrationResponse = self.handle(
            registration(broker_id, incarnation, **changes)
        )
        assert response.error == 0, response
        return response.broker_epoch

    def connect(self, broker_id: int, host: str | None = None) -> None:
        epoch = self.broker(broker_id).epoch
        self.take(self.controller.connected(broker_id, epoch, host or f"b{broker_id}"))

    def heartbeat(
        self,
        broker_id: int,
        *,
        offset: int | None = None,
        want_fence: bool = False,
        want_shut_down: bool = False,
    ) -> BrokerHeartbeatResponse:
        response: BrokerHeartbeatResponse = self.handle(
            BrokerHeartbeatRequest(
                broker_id=broker_id,
                broker_epoch=self.broker(broker_id).epoch,
                metadata_offset=len(self.log) - 1 if offset is None else offset,
                want_fence=want_fence,
                want_shut_down=want_shut_down,
            )
        )
        return response

    def start(self, *broker_ids: int, **changes: Any) -> None:
        """Register and unfence the brokers."""
        for broker_id in broker_ids:
            self.register(broker_id, **changes)
            assert not self.heartbeat(broker_id).fenced

    # ------------------------------------------------------------------------------ topics and ISRs

    def create(
        self, name: str, *assignments: tuple[int, ...], configs: dict[str, str] | None = None
    ) -> CreatableTopicResult:
        """Create a topic with one partition for each assignment."""
        result = self.handle(
            CreateTopicsRequest(
                topics=(
                    creatable(
                        name,
                        partitions=-1,
                        replication_factor=-1,
                        assignments=assignments,
                        configs=configs or {},
                    ),
                )
            )
        ).topics[0]
        assert isinstance(result, CreatableTopicResult)
        return result

    def propose_isr(self, name: str, isr: tuple[int, ...], /, **changes: Any) -> IsrChangeResult:
        """Send AlterPartition as the leader of partition 0. `changes` replace fields of the
        IsrChange."""
        topic_id = self.image.topic_id(name)
        partition = self.partition(name)
        sender = changes.pop("sender", partition.leader)
        fields: dict[str, Any] = {
            "topic_id": topic_id,
            "partition_id": 0,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "isr": tuple((broker_id, -1) for broker_id in isr),
            "leader_recovery_state": 0,
            "cause": Cause.ISR_EXPAND,
        }
        response = self.handle(
            AlterPartitionRequest(
                broker_id=sender,
                broker_epoch=self.broker(sender).epoch,
                changes=(IsrChange(**{**fields, **changes}),),
            )
        )
        assert response.error == 0
        result = response.results[0]
        assert isinstance(result, IsrChangeResult)
        return result

    # ------------------------------------------------------------------------------------ the image

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def broker(self, broker_id: int) -> Broker:
        return self.image.brokers[broker_id]

    def partition(self, name: str, partition_id: int = 0) -> Partition:
        partition = self.image.partition(self.image.topic_id(name), partition_id)
        assert partition is not None
        return partition

    def leader_and_isr(self, name: str, partition_id: int = 0) -> tuple[int, tuple[int, ...]]:
        partition = self.partition(name, partition_id)
        return partition.leader, partition.isr


def probes_of(result: Result) -> list[ProbeBroker]:
    """Return the probes of a result."""
    return [each for each in result.effects if isinstance(each, ProbeBroker)]


def creatable(
    name: str,
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    assignments: Sequence[tuple[int, ...]] = (),
    configs: dict[str, str] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(assignments)
        ),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ),
    )
