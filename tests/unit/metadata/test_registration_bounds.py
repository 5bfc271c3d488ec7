"""Registrations of older versions with texts that no message can hold."""

from __future__ import annotations

import pytest

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    Endpoint,
    FeatureRange,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot_file import read_snapshot, write_snapshot
from quorate.quorum.raft.voter_history import QuorumVoters

LONG = "\u20ac" * 20_000  # 60,000 bytes


def registration(text: str, port: int = 0) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=7,
        incarnation_id=Uuid(b"i" * 16),
        broker_epoch=3,
        end_points=(Endpoint(name=text, host=text, port=port),),
        features=(FeatureRange(name=text, min_supported_version=-5, max_supported_version=32_767),),
        rack=text,
        log_dirs=(Uuid(b"d" * 16),),
    )


def stored_by_an_older_version(port: int) -> bytes:
    """Return the bytes of such a record. The writer refuses the text, so a shorter one is replaced
    in the bytes."""
    marker = "marker" * 20
    value = encode_record(registration(marker, port))
    return value.replace(compact(marker), compact(LONG))


def compact(text: str) -> bytes:
    """Return a string in the flexible encoding: its size plus one as a varint, then its bytes."""
    size, out = len(text.encode()) + 1, bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size]) + text.encode()


@pytest.mark.parametrize("port", [0, 65_535])
def test_a_log_with_such_a_registration_is_readable_and_the_broker_removable(port: int) -> None:
    """The registration stopped every node that responded with the host, at each start."""
    record = decode_record(stored_by_an_older_version(port))
    image, _ = replay(MetadataImage(), [record], EpochOffset(1, 3), 1)
    broker = image.brokers[7]
    (endpoint,) = broker.endpoints
    assert (endpoint.name, endpoint.host) == ("\u20ac" * 83, "\u20ac" * 85)
    assert broker.features[0].name == "\u20ac" * 83
    assert broker.rack == "\u20ac" * 333

    snapshot = b"".join(write_snapshot(image, QuorumVoters()))
    contents = read_snapshot(EpochOffset(1, 4), [snapshot])
    assert contents.image.brokers[7] == broker

    gone = UnregisterBrokerRecord(broker_id=7, broker_epoch=3)
    image, _ = replay(image, [gone], EpochOffset(1, 4), 2)
    assert not image.brokers


def test_texts_of_a_usual_size_stay() -> None:
    image, _ = replay(MetadataImage(), [registration("host-1")], EpochOffset(1, 3), 1)
    assert image.brokers[7].endpoints == (Endpoint(name="host-1", host="host-1", port=0),)
    assert image.brokers[7].rack == "host-1"
