"""The control records, compared with the bytes that Apache Kafka 4.1.1 wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.quorum.ids import ZERO_UUID
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.protocol.codec import DecodeError, EncodeError, decode, encode
from quorate.quorum.raft.control_records import (
    SUPPORTED,
    ControlType,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VoterEndpoint,
    VotersRecord,
    control_key,
    encode_control,
    leader_change,
)
from tests.unit.raft.harness import directory, key

KAFKA_LOG = Path(__file__).parents[2] / "fixtures/kafka-4.1.1-metadata/c1/00000000000000000000.log"


def test_kafkas_leader_change_is_read_and_written_alike() -> None:
    data = KAFKA_LOG.read_bytes()
    (position, header), *_ = batches(data)
    assert header.is_control
    record = next(records_of(data, position, header))
    assert record.key == control_key(ControlType.LEADER_CHANGE)
    assert record.value is not None
    message = decode(LeaderChangeMessage, 0, record.value)

    def voters(*ids: int) -> tuple[LeaderChangeVoter, ...]:
        return tuple(LeaderChangeVoter(voter_id=i, voter_directory_id=ZERO_UUID) for i in ids)

    assert message == LeaderChangeMessage(
        version=0, leader_id=1, voters=voters(1, 2, 3), granting_voters=voters(2, 1)
    )
    assert encode(message, 0) == record.value

    change = leader_change(1, (key(1), key(2), key(3)), (key(2), key(1)))
    assert encode_control(change)[1] == record.value


def test_a_control_record_that_no_node_could_read_is_never_made() -> None:
    """Such a record would stop each node that holds it, at every start."""
    voter = Voter(
        voter_id=1,
        voter_directory_id=directory(1),
        endpoints=(VoterEndpoint(name="C", host="h" * 40_000, port=1),),
        k_raft_version_feature=SUPPORTED,
    )
    with pytest.raises((EncodeError, DecodeError)):
        encode_control(VotersRecord(version=0, voters=(voter,)))
