"""Opens the logs of partitions, and makes the hosted partitions on them.

A new log takes a millisecond and is made on the event loop. The disk's thread opens the logs that
existed when the broker started, and loads their producer states. It works in steps, because after a
crash there may be gigabytes to read. Other work of the disk, such as the fsync of a voter in the
same process, waits for one step at most.

All logs that existed at the start and that the first image assigns to this broker are open before
the broker is unfenced, as in Kafka. A client's request for an unopened partition is answered
NOT_LEADER_OR_FOLLOWER.
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
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key, Propose
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.broker.replication.partitions.settings import TopicSettings
from quorate.quorum.incremental_work import IncrementalWork, finished
from quorate.quorum.log.files.names import PartitionName
from quorate.quorum.log.log import Log
from quorate.quorum.metadata import image as images
from quorate.quorum.metadata.replica_directories import replica_directory
from quorate.quorum.seams import Seams

PROGRESS_INTERVAL_MS = 5000
"""The interval of the log lines about the progress of the openings."""

logger = logging.getLogger("quorate.broker.replication")


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A partition to open, with its settings and its state in the image."""

    key: Key
    topic: str
    settings: TopicSettings
    value: images.Partition

    @property
    def name(self) -> PartitionName:
        """Return the name of the partition's directory."""
        return PartitionName(self.topic, self.key[1])


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """An open log, with the parameters of its opening and its producer states, if they are
    known."""

    wanted: OpenRequest
    parameters: LogOpenParameters
    log: Log
    producers: ProducerStates | None


Done = Callable[[list[HostedPartition], BaseException | None], None]


class PartitionOpener:
    """Opens the logs of one broker. The event loop owns it.

    At most one batch may be in the disk's thread: the caller must wait for `done` before it passes
    the next batch."""

    def __init__(
        self,
        seams: Seams,
        registry: PartitionRegistry,
        logs: LogManager,
        broker_id: int,
        propose: Propose,
    ) -> None:
        """Open logs of the manager `logs`. `propose` sends the ISR changes of the opened
        partitions."""
        self._clock = seams.clock
        self._disk = seams.disk
        self._registry = registry
        self._logs = logs
        self._broker_id = broker_id
        self._propose = propose
        self._closed = False
        self._opened_count = 0
        self._logged_ms = seams.clock.now_ms()

    def place(self, wanted: OpenRequest, *, is_new: bool) -> str | None:
        """Return the path of the log directory of a partition, chosen if it has no log yet. Return
        None if the log may be in a directory that is offline. `is_new` is True unless the first
        image has the partition. Blocks for small files. Raise CorruptCheckpoint or OSError."""
        return self._logs.place(
            wanted.name,
            wanted.key[0],
            replica_directory(wanted.value, self._broker_id),
            peers_have_it=self.peers_have_it(wanted),
            may_exist=not is_new,
        )

    def peers_have_it(self, wanted: OpenRequest) -> bool:
        """Return True if other brokers have all acknowledged records of the partition."""
        return self._broker_id not in may_have_the_only_copy(wanted.value)

    def is_unopened(self, wanted: OpenRequest) -> bool:
        """Return True if the partition's directory existed at the start and its log is not open."""
        return self._logs.found.is_unopened(wanted.name)

    def open(self, wanted: OpenRequest) -> HostedPartition:
        """Make and open a new log on the event loop, which blocks for it. Return the hosted
        partition, without a role and not yet in the registry. Raise LogError or OSError."""
        parameters = self._open_parameters(wanted)
        log = finished(open_log(self._disk, parameters))
        return self._host(OpenedLog(wanted, parameters, log, ProducerStates()))

    def open_existing(self, wanted: Sequence[OpenRequest], done: Done) -> None:
        """Open a batch of logs in the disk's thread, and return without waiting for it.

        `done` is called on the event loop with the opened partitions and an error or None. The
        partitions have no role yet and are not in the registry. An error ends the batch: the
        partitions after the failed one stay unopened. Raise CorruptLog, CorruptCheckpoint or
        OSError directly if a partition cannot be prepared. Nothing is opened then, and `done` is
        not called."""
        parameters = [(each, self._open_parameters(each)) for each in wanted]
        opened: list[OpenedLog] = []
        self._run(self._open_all(parameters, opened), opened, done)

    def close(self) -> None:
        """Stop after the step in progress. Do not call `done` any more."""
        self._closed = True

    def _open_all(
        self, wanted: Sequence[tuple[OpenRequest, LogOpenParameters]], opened: list[OpenedLog]
    ) -> IncrementalWork[None]:
        """Open the logs, in steps, in the disk's thread. Nothing else uses them yet."""
        for each, parameters in wanted:
            log = yield from open_log(self._disk, parameters)
            producers = yield from snapshotted_producers(self._disk, log)
            opened.append(OpenedLog(each, parameters, log, producers))
            if log.recovery.scanned_bytes:
                yield

    def _run(self, steps: IncrementalWork[None], opened: list[OpenedLog], done: Done) -> None:
        def stepped(paused: bool | None, error: BaseException | None) -> None:
            if self._closed:
                return
            if paused:
                self._run(steps, opened, done)
                return
            self._opened_count += len(opened)
            hosted: list[HostedPartition] = []
            for each in opened:
                if self._logs.is_usable(each.wanted.name):
                    try:
                        hosted.append(self._host(each))
                    except OSError as failed:  # the logs in other directories are hosted
                        error = error or failed
            done(hosted, error)

        self._log_progress()
        self._disk.submit(lambda: next(steps, _ENDED) is not _ENDED, stepped)

    def _log_progress(self) -> None:
        now_ms = self._clock.now_ms()
        if now_ms - self._logged_ms >= PROGRESS_INTERVAL_MS:
            self._logged_ms = now_ms
            logger.info(
                "the broker is opening its logs: %d are open, %d are left",
                self._opened_count,
                self._logs.unopened_count,
            )

    def _open_parameters(self, wanted: OpenRequest) -> LogOpenParameters:
        return self._logs.open_parameters(
            wanted.name,
            wanted.key[0],
            wanted.settings.log,
            leader_epoch=wanted.value.leader_epoch,
            peers_have_it=self.peers_have_it(wanted),
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
        self._logs.take_over(opened.parameters, log, lambda: partition.producers.loaded)
        hosted = HostedPartition(
            wanted.key, wanted.topic, partition, log, self._clock, self._propose
        )
        hosted.throttle_by(wanted.settings)
        return hosted

    def _broker(self, broker_id: int) -> images.Broker | None:
        return self._registry.image.brokers.get(broker_id)


def may_have_the_only_copy(value: images.Partition) -> tuple[int, ...]:
    """Return the brokers whose replica may be the only one with all acknowledged records: the ISR,
    or else the ELR and the last known leader (KIP-966)."""
    return value.isr or (*value.elr, *value.last_known_elr)


_ENDED = object()
