"""The readers of stored bytes: record batches, records, snapshots and small files.

Each reader has a set of exceptions by which it refuses its input. Any other exception is a crash.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from quorate.broker.groups import records as group_records
from quorate.broker.groups.subscription import subscribed_topics
from quorate.broker.logs import producer_snapshots
from quorate.broker.partition.settings import PartitionSettings
from quorate.broker.partition.validation import validate_client_batch
from quorate.config.key import ConfigError
from quorate.config.properties import parse
from quorate.quorum.faults.rules import RulesError, rules_from_json
from quorate.quorum.ids import ZERO_UUID, EpochOffset, Uuid
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.log.files import checkpoints
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.log.files.flushed_marker import decode_marker
from quorate.quorum.metadata.errors import MetadataError
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot_file import read_snapshot, write_snapshot
from quorate.quorum.node.opening import meta_properties
from quorate.quorum.node.opening.meta_properties import StorageError
from quorate.quorum.node.replica import metadata_mark
from quorate.quorum.offline.storage_format import bootstrap_snapshot
from quorate.quorum.protocol.codec import DecodeError
from quorate.quorum.protocol.errors import KafkaError
from quorate.quorum.protocol.hot.fetch_request import REPLICA_FETCH_VERSION
from quorate.quorum.protocol.hot.fetch_response import (
    FetchPartitionResult,
    build_fetch_response,
    parse_fetch_response,
)
from quorate.quorum.raft import generation, quorum_state
from quorate.quorum.raft.control_records import decode_control
from quorate.quorum.raft.election import Election
from quorate.quorum.raft.errors import RaftError
from quorate.quorum.raft.voter_history import STATIC_VOTERS
from quorate.quorum.sasl.key_set import KeySetRefused, parse_key_set
from tests.attacks.batches import sealed
from tests.attacks.bombs import bombs
from tests.attacks.poison import POISON
from tests.fuzz.mutations import mutated
from tests.fuzz.seals import sealed_batches, sealed_line, sealed_producers
from tests.fuzz.target import Target

Refusals = tuple[type[Exception], ...]
WALL_MS = 1_700_000_100_000
TOPIC_ID = Uuid(bytes(range(16)))
NESTED = b"[" * 5000
KEY_SET = (
    b'{"keys": [{"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig",'
    b' "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",'
    b' "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}'
)
"""A public key of RFC 7517."""


@dataclass(frozen=True, slots=True)
class Reader:
    read: Callable[[bytes], object]
    refusals: Refusals
    samples: Sequence[bytes]
    seal: Callable[[bytes], bytes] | None = None
    """Puts the checksums right: every input is read as it is, and sealed."""
    large: Sequence[bytes] = ()
    """Inputs that take long, so that they are read once and not altered."""


class Stored(Target):
    """The first byte of an input chooses the reader, the others are its input."""

    def __init__(self, *readers: Reader) -> None:
        self._readers = readers

    def feed(self, data: bytes) -> None:
        if not data:
            return
        reader = self._readers[data[0] % len(self._readers)]
        given = [data[1:]] if reader.seal is None else [data[1:], reader.seal(data[1:])]
        for each in given:
            with suppress(*reader.refusals):
                reader.read(each)

    def systematic(self) -> Iterator[bytes]:
        for index, reader in enumerate(self._readers):
            head = bytes((index,))
            for sample in reader.samples:
                yield head + sample
                for size in range(0, len(sample), max(1, len(sample) // 200)):
                    yield head + sample[:size]
            for sample in reader.large:
                yield head + sample
            yield head + bytes(1000)
            yield head + b"\xff" * 1000

    def drawn(self, chance: random.Random) -> bytes:
        index = chance.randrange(len(self._readers))
        return bytes((index,)) + mutated(chance.choice(self._readers[index].samples), chance)


def read_batches(data: bytes) -> None:
    for position, header in batches(data):
        for _ in records_of(data, position, header):
            pass


def validate(data: bytes) -> None:
    validate_client_batch(data, PartitionSettings(), WALL_MS)


def group_record(data: bytes) -> None:
    split = data[0] if data else 0
    group_records.decode_record(data[1 : 1 + split], data[1 + split :] or None)


def control_record(data: bytes) -> None:
    decode_control(data[:4], data[4:])


def epochs(data: bytes) -> None:
    checkpoints.decode_lines("epochs", data, checkpoints._epoch_entry)


def offsets(data: bytes) -> None:
    checkpoints.decode_lines("offsets", data, checkpoints._offset_entry)


REGISTERED = RegisterBrokerRecord(
    broker_id=1, incarnation_id=ZERO_UUID, broker_epoch=1, end_points=(), fenced=False
)
METADATA_RECORDS: tuple[MetadataRecord, ...] = (
    REGISTERED,
    replace(REGISTERED, broker_id=2, broker_epoch=2),
    TopicRecord(name="orders", topic_id=TOPIC_ID),
    PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=(1, 2),
        isr=(1, 2),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    ),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=-1),
)
METADATA_SAMPLES = tuple(bytes(encode_record(each)) for each in METADATA_RECORDS)
LAST = EpochOffset(-1, -1)
IMAGE, _ = replay(MetadataImage(), METADATA_RECORDS, LAST, WALL_MS)
FULL_SNAPSHOT = b"".join(map(bytes, write_snapshot(IMAGE, STATIC_VOTERS)))
EMPTY_SNAPSHOT = b"".join(map(bytes, write_snapshot(MetadataImage(), STATIC_VOTERS)))


@contextmanager
def record_batches() -> Iterator[Target]:
    samples, large = [*POISON.values()], [*bomb_payloads()]
    yield Stored(
        Reader(read_batches, (LogError,), samples, sealed_batches, large),
        Reader(validate, (KafkaError,), samples, sealed_batches, large),
    )


@contextmanager
def records() -> Iterator[Target]:
    groups = (
        b"\x0a\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00" + bytes(40),
        b"\x05\x00\x02\x00\x01g",
    )
    yield Stored(
        Reader(decode_record, (MetadataError,), METADATA_SAMPLES),
        Reader(control_record, (DecodeError,), (b"\x00\x00\x00\x02" + bytes(20), bytes(40))),
        Reader(group_record, (DecodeError,), groups),
    )


@contextmanager
def snapshots() -> Iterator[Target]:
    def read(data: bytes) -> object:
        return read_snapshot(EpochOffset(-1, 0), [data])

    samples = (EMPTY_SNAPSHOT, FULL_SNAPSHOT, bootstrap_snapshot(WALL_MS))
    yield Stored(Reader(read, (MetadataError,), samples, sealed_batches))


@contextmanager
def small_files() -> Iterator[Target]:
    lines = (b"0\n1\n0 0\n", b"0\n2\n0 0\n5 100\n", b"0\n0\n")
    named = (b"0\n1\norders 0 5\n", b"0\n2\norders 0 5\norders 1 7\n")
    election = Election(epoch=3)
    kafka = (quorum_state.encode_v0(election, [1, 2]), quorum_state.encode_v1(election), NESTED)
    copy = (quorum_state.encode_copy(election), NESTED)
    me = meta_properties.MetaProperties(cluster_id="c", node_id=1, directory_id=TOPIC_ID)
    identity = meta_properties.encode(me)
    copies = (meta_properties.encode_copy(identity),)
    mark = metadata_mark.encode(metadata_mark.Mark(directory_id=TOPIC_ID, epoch=5))
    nobody = producer_snapshots._NOBODY
    producers = (nobody, nobody[:6] + b"\x00\x00\x00\x01" + bytes(50))
    rebuilds = (generation.encode((generation.Rebuild(id=ZERO_UUID, epoch=1, offset=5),)), NESTED)
    rules: tuple[bytes, ...] = (b"{}", b'{"cut": [2], "hold": [3], "delay_ms": 5}', NESTED)
    subscriptions = (b"\x00\x03\x00\x00\x00\x01\x00\x01t", b"\x00\x00\x7f\xff\xff\xff")
    partition = FetchPartitionResult("", TOPIC_ID, 0, 0, 5, 5, 0, diverging=EpochOffset(1, 2))
    answers = (b"".join(build_fetch_response(REPLICA_FETCH_VERSION, [partition])),)
    properties = (b"node.id=1\nlog.dirs=/a,/b\n", b"a\\\n b = c\\u0041\n")
    yield Stored(
        Reader(epochs, (LogError,), lines),
        Reader(offsets, (LogError,), named),
        Reader(quorum_state.decode_kafka, (RaftError,), kafka),
        Reader(quorum_state.decode_copy, (RaftError,), copy, sealed_line),
        Reader(
            generation.decode,
            (ValueError, KeyError, TypeError, RecursionError),
            rebuilds,
            sealed_line,
        ),
        Reader(producer_snapshots.decode, (), producers, sealed_producers),
        Reader(rules_from_json, (RulesError,), rules),
        Reader(lambda data: parse(data.decode("utf-8", "replace")), (ConfigError,), properties),
        Reader(lambda data: meta_properties.decode(data, "meta"), (StorageError,), (identity,)),
        Reader(lambda data: meta_properties.decode_copy(data, "copy"), (StorageError,), copies),
        Reader(metadata_mark.decode, (), (NESTED, mark), sealed_line),
        Reader(decode_marker, (), (b"12\n", b"0 12")),
        Reader(parse_key_set, (KeySetRefused,), (KEY_SET, NESTED)),
        Reader(lambda data: subscribed_topics([data]), (), subscriptions),
        Reader(
            lambda data: parse_fetch_response(memoryview(data), REPLICA_FETCH_VERSION),
            (DecodeError,),
            answers,
        ),
    )


def bomb_payloads() -> Iterator[bytes]:
    for codec, payload in bombs(quick=True).values():
        yield sealed(payload, attributes=codec)
