"""The bytes of a snapshot: it is whole or refused, and equal images give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.log.batches.batch import CONTROL, batches, build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot_file import (
    BATCH_RECORDS,
    CorruptSnapshot,
    read_snapshot,
    write_snapshot,
)
from quorate.quorum.raft.control_records import (
    KRaftVersionFeature,
    SnapshotFooterRecord,
    Voter,
    VoterEndpoint,
    encode_control,
)
from quorate.quorum.raft.voter_history import QuorumVoters

LAST = EpochOffset(7, 1233)
SNAPSHOT = EpochOffset(7, 1234)
WALL_MS = 1_700_000_000_000
VOTERS = QuorumVoters(
    1,
    (
        Voter(
            voter_id=1,
            voter_directory_id=Uuid(bytes(range(16))),
            endpoints=(VoterEndpoint(name="CONTROLLER", host="localhost", port=9093),),
            k_raft_version_feature=KRaftVersionFeature(
                min_supported_version=0, max_supported_version=1
            ),
        ),
    ),
)


def image_of(partitions: dict[str, int]) -> MetadataImage:
    records: list[MetadataRecord] = [FeatureLevelRecord(name="metadata.version", feature_level=27)]
    for number, (name, count) in enumerate(partitions.items()):
        topic_id = Uuid((number + 1).to_bytes(16, "big"))
        records.append(TopicRecord(name=name, topic_id=topic_id))
        records += [
            PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=(1, 2),
                isr=(2, 1),
                leader=2,
                leader_epoch=3,
                partition_epoch=4,
            )
            for partition in range(count)
        ]
        records.append(
            ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="5")
        )
    image, _ = replay(MetadataImage(), records, LAST, WALL_MS)
    return image


def content_of(image: MetadataImage, quorum: QuorumVoters = QuorumVoters()) -> bytes:  # noqa: B008
    return b"".join(write_snapshot(image, quorum))


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.integers(0, 4), max_size=6),
    st.integers(1, 3000),
)
def test_what_is_written_is_read_again_in_pieces_of_any_size(
    partitions: dict[str, int], piece_bytes: int
) -> None:
    image = image_of(partitions)
    content = content_of(image, VOTERS)
    contents = read_snapshot(SNAPSHOT, pieces(content, piece_bytes))
    assert contents.image == image
    assert contents.quorum == VOTERS
    assert content_of(contents.image, contents.quorum) == content


def test_the_order_of_creation_does_not_show() -> None:
    """The bytes are identical on every node, so they depend on no hash order and no history."""
    names = {f"topic-{number}": 2 for number in range(40)}
    once = image_of(names)
    again = read_snapshot(SNAPSHOT, [content_of(once)]).image
    assert content_of(again) == content_of(once)


def test_batches_are_cut_by_count_and_all_carry_the_same_epoch_and_time() -> None:
    content = content_of(image_of({"large": 3 * BATCH_RECORDS}))
    headers = [header for _, header in batches(content)]
    assert [header.record_count for header in headers[1:-2]] == [BATCH_RECORDS] * 3
    assert {header.leader_epoch for header in headers} == {LAST.epoch}
    assert {header.max_timestamp_ms for header in headers} == {WALL_MS}
    assert headers[0].is_control and headers[-1].is_control
    assert [header.base_offset for header in headers] == [
        0,
        *(header.next_offset for header in headers[:-1]),
    ]


def test_no_byte_of_it_can_be_damaged_unnoticed() -> None:
    content = content_of(image_of({"a": 2}), VOTERS)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        with pytest.raises(CorruptSnapshot):
            read_snapshot(SNAPSHOT, [bytes(damaged)])


@pytest.mark.parametrize("missing", [1, 60, 100])
def test_a_snapshot_that_is_cut_is_refused(missing: int) -> None:
    content = content_of(image_of({"a": 2}))
    with pytest.raises(CorruptSnapshot):
        read_snapshot(SNAPSHOT, [content[:-missing]])


def test_a_snapshot_without_footer_or_header_is_refused() -> None:
    batches_of_it = list(write_snapshot(image_of({"a": 1}), QuorumVoters()))
    with pytest.raises(CorruptSnapshot, match="footer"):
        read_snapshot(SNAPSHOT, map(bytes, batches_of_it[:-1]))
    with pytest.raises(CorruptSnapshot, match="follows"):
        read_snapshot(SNAPSHOT, map(bytes, batches_of_it[1:]))
    with pytest.raises(CorruptSnapshot, match="footer"):
        read_snapshot(SNAPSHOT, [])


def test_nothing_may_stand_behind_the_footer() -> None:
    content = content_of(image_of({"a": 1}))
    (*_, (_, last)) = batches(content)
    footer = encode_control(SnapshotFooterRecord(version=0))
    more = build_batch([Record(last.next_offset, WALL_MS, *footer)], leader_epoch=7, flags=CONTROL)
    with pytest.raises(CorruptSnapshot, match="follows the snapshot footer"):
        read_snapshot(SNAPSHOT, [content, bytes(more)])
