"""How partitions come to be hosted: the log, then the replica on it.

A log that is made takes a millisecond, and is made at once. One that the start found is opened in
the disk's thread, with what it says of its producers: after a crash there may be gigabytes to read.
That goes in steps, so that other work of the disk (the fsync of a voter in the same process) and
the end of the node wait for one of them at most.

All that is found is opened before the broker is unfenced, as in Kafka: nobody asks it for these
partitions meanwhile, and who does so nevertheless is told that it does not lead them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.broker.logs.log_manager import LogManager
from quorate.broker.logs.log_opening import LogOpenParameters, open_log
from quorate.broker.logs.producer_loading import snapshotted_producers
from quorate.broker.partition.partition import Partition
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.replication.hosted_partition import HostedPartition, Key, Propose
from quorate.broker.replication.partition_registry import PartitionRegistry
from quorate.broker.replication.settings import TopicSettings
from quorate.quorum.log.log import Log
from quorate.quorum.log.names import PartitionName
from quorate.quorum.metadata import image as images
from quorate.quorum.seams import Seams
from quorate.quorum.steps import Steps, finished

PROGRESS_INTERVAL_MS = 5000

logger = logging.getLogger("quorate.broker.replication")


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A partition that is to be hosted, as the image has it."""

    key: Key
    topic: str
    settings: TopicSettings
    value: images.Partition

    @property
    def name(self) -> PartitionName:
        return PartitionName(self.topic, self.key[1])


@dataclass(frozen=True, slots=True)
class OpenedLog:
    wanted: OpenRequest
    parameters: LogOpenParameters
    log: Log
    producers: ProducerStates | None


Done = Callable[[list[HostedPartition], BaseException | None], None]


class PartitionOpener:
    def __init__(
        self,
        seams: Seams,
        registry: PartitionRegistry,
        logs: LogManager,
        broker_id: int,
        propose: Propose,
    ) -> None:
        self._clock = seams.clock
        self._disk = seams.disk
        self._registry = registry
        self._logs = logs
        self._broker_id = broker_id
        self._propose = propose
        self._closed = False
        self._opened_count = 0
        self._told_ms = seams.clock.now_ms()

    def is_unopened(self, wanted: OpenRequest) -> bool:
        """By the start, and not opened yet."""
        return self._logs.is_unopened(wanted.name)

    def open(self, wanted: OpenRequest) -> HostedPartition:
        """At once. Raises LogError or OSError."""
        parameters = self._open_parameters(wanted)
        log = finished(open_log(self._disk, parameters))
        return self._host(OpenedLog(wanted, parameters, log, ProducerStates()))

    def open_existing(self, wanted: Sequence[OpenRequest], done: Done) -> None:
        """In the disk's thread; `done` is told what could be opened before there was an error.
        Raises CorruptCheckpoint or OSError. One call at a time."""
        parameters = [(each, self._open_parameters(each)) for each in wanted]
        opened: list[OpenedLog] = []
        self._go_on(self._open_all(parameters, opened), opened, done)

    def close(self) -> None:
        """The step that is under way is the last one."""
        self._closed = True

    def _open_all(
        self, wanted: Sequence[tuple[OpenRequest, LogOpenParameters]], opened: list[OpenedLog]
    ) -> Steps[None]:
        """In the disk's thread: what it touches is nobody else's yet."""
        for each, parameters in wanted:
            log = yield from open_log(self._disk, parameters)
            producers = yield from snapshotted_producers(self._disk, log)
            opened.append(OpenedLog(each, parameters, log, producers))
            if log.recovery.scanned_bytes:
                yield

    def _go_on(self, steps: Steps[None], opened: list[OpenedLog], done: Done) -> None:
        def stepped(paused: bool | None, error: BaseException | None) -> None:
            if self._closed:
                return
            if paused:
                self._go_on(steps, opened, done)
                return
            self._opened_count += len(opened)
            try:
                hosted = [self._host(each) for each in opened]
            except OSError as failed:
                hosted, error = [], failed
            done(hosted, error)

        self._tell()
        self._disk.submit(lambda: next(steps, _ENDED) is not _ENDED, stepped)

    def _tell(self) -> None:
        now_ms = self._clock.now_ms()
        if now_ms - self._told_ms >= PROGRESS_INTERVAL_MS:
            self._told_ms = now_ms
            logger.info(
                "recovering, logs opened: %d, left: %d",
                self._opened_count,
                self._logs.unopened_count,
            )

    def _open_parameters(self, wanted: OpenRequest) -> LogOpenParameters:
        return self._logs.open_parameters(
            wanted.name,
            wanted.key[0],
            wanted.settings.log,
            leader_epoch=wanted.value.leader_epoch,
            peers_have_it=self._broker_id not in wanted.value.isr,
        )

    def _host(self, opened: OpenedLog) -> HostedPartition:
        wanted, log = opened.wanted, opened.log
        partition = Partition(
            *wanted.key,
            self._broker_id,
            log,
            wanted.settings.partition,
            brokers=self._broker,
            producers=opened.producers,
            high_watermark=opened.parameters.high_watermark,
        )
        self._logs.take(opened.parameters, log, lambda: partition.producers.loaded)
        return HostedPartition(wanted.key, wanted.topic, partition, log, self._clock, self._propose)

    def _broker(self, broker_id: int) -> images.Broker | None:
        return self._registry.image.brokers.get(broker_id)


_ENDED = object()
