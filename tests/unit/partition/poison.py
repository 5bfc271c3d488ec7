"""Every reader of stored batches, for any batch that a producer may send.

`check_batch` and `check_stored` are entry points for fuzzers. They raise only for a batch that
harms a node.
"""

from __future__ import annotations

import random
from contextlib import suppress

from quorate.broker.logs import producer_snapshots
from quorate.broker.logs.producer_loading import log_parts, read_parts
from quorate.broker.partition.partition import Partition
from quorate.broker.partition.producer_state import ProducerStates
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.partition.validation import validate_client_batch
from quorate.cli.dump_log.lines import DumpOptions, log_lines, log_rows
from quorate.quorum.incremental_work import finished
from quorate.quorum.log.batches.batch import assign, batches, read_header, records_of
from quorate.quorum.log.files.errors import BrokenChain, CorruptBatch
from quorate.quorum.log.files.settings import LogSettings
from quorate.quorum.log.log import Log
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas.list_offsets import ListOffsetsPartitionResponse
from quorate.quorum.seams import Buffer
from tests.sim.world.disk import SimDisk
from tests.unit.partition.harness import TOPIC, Brokers, value

WALL_MS = 1_700_000_000_000
REFUSALS = frozenset(
    (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
)
TIMES = (-(2**63), -1, 0, WALL_MS - 1, WALL_MS, WALL_MS + 1, 2**62, 2**63 - 1)
ALL_SETTINGS = (
    PartitionSettings(),
    PartitionSettings(compacted=True),
    PartitionSettings(log_append_time=True),
    PartitionSettings(timestamp_before_max_ms=1_000, timestamp_after_max_ms=1_000),
)
PATH = "/data/t-0"


def check_batch(data: bytes) -> bool:
    """Send `data` as a producer does, and read the stored batch with every reader.

    Return True if a leader accepts it with one of the settings. Raise an exception that would have
    reached the node."""
    taken = False
    for settings in ALL_SETTINGS:
        copy = bytearray(data)
        try:
            header = validate_client_batch(copy, settings, WALL_MS)
        except KafkaError as error:
            assert error.code in REFUSALS, error
            continue
        taken = True
        assert header.record_count == header.last_offset_delta + 1 > 0
        check_readers(copy, settings)
    return taken


def check_stored(data: bytes) -> None:
    """Read a batch that is in a log already, even if a leader would refuse it today."""
    disk, log = new_log()
    copy = bytearray(data)
    try:
        read_header(copy)
        assign(copy, 0, 1)
        log.append(copy, wall_ms=WALL_MS)
    except (CorruptBatch, BrokenChain):
        return
    if log.end_offset:
        read_all(disk, log)


def check_readers(data: bytearray, settings: PartitionSettings) -> None:
    """Append a batch as a leader, replicate it, and read it."""
    disk, log = new_log()
    leader = partition(log, 1, settings)
    leader.make_leader(value(1, 1, (1,)), now_ms=0)
    appended = leader.append_as_leader(data, 1, now_ms=0, wall_ms=WALL_MS)
    assert appended.end_offset == log.end_offset
    _, copied = new_log()
    follower = partition(copied, 2, settings)
    follower.make_follower(value(1, 1, (1,)))
    follower.append_as_follower(log.read(0, 1 << 20), wall_ms=WALL_MS)
    assert copied.end_offset == log.end_offset
    assert follower.producers.required().producers.keys() == (
        leader.producers.required().producers.keys()
    )
    read_all(disk, log)


def read_all(disk: SimDisk, log: Log) -> None:
    states = ProducerStates()
    finished(read_parts(disk, log_parts(log, log.start_offset), states))
    content = producer_snapshots.encode(states)
    assert producer_snapshots.decode(content) is not None
    for timestamp_ms in (*TIMES, log.max_timestamp_ms):
        lookup(log, timestamp_ms)
    data = log.read(0, 1 << 20)
    for position, header in batches(data):
        readable(data, position, header.record_count)
    name = f"{0:020}.log"
    for options in (DumpOptions(deep=True, data=True), DumpOptions(metadata=True, data=True)):
        with suppress(CorruptBatch):
            list(log_lines(name, memoryview(data), options))
        with suppress(CorruptBatch):
            list(log_rows(memoryview(data), options))
    log.close()
    reopened = Log.open(disk, PATH, LogSettings(), wall_ms=WALL_MS, clean=True)
    assert reopened.end_offset == log.end_offset
    lookup(reopened, 0)
    assert len(reopened.take_expired(high_watermark=reopened.end_offset, wall_ms=2**62)) <= 1


def lookup(log: Log, timestamp_ms: int) -> None:
    try:
        found = log.offset_for_timestamp(timestamp_ms)
    except CorruptBatch:
        return
    if found is not None:
        assert log.start_offset <= found.offset < log.end_offset
        answer = ListOffsetsPartitionResponse(
            partition_index=0,
            error_code=0,
            timestamp=found.timestamp_ms,
            offset=found.offset,
            leader_epoch=found.leader_epoch,
        )
        encode(answer, 7)


def readable(data: Buffer, position: int, count: int) -> bool:
    try:
        records = list(records_of(data, position, read_header(data, position)))
    except CorruptBatch:
        return False
    assert len(records) == count
    return True


def new_log() -> tuple[SimDisk, Log]:
    disk = SimDisk(random.Random(0))
    disk.make_dirs("/data")
    return disk, Log.open(disk, PATH, LogSettings(), wall_ms=0, clean=True)


def partition(log: Log, broker_id: int, settings: PartitionSettings) -> Partition:
    return Partition(
        TOPIC, 0, broker_id, log, settings, brokers=Brokers(), producers=ProducerStates()
    )
