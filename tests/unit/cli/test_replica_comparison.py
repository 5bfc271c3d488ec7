"""The comparison of a partition's replicas, and the lines about differences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorate.cli.replica_verification.comparison import MAX_DIFFERENCES, Comparison, ReplicaResponse
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.record import Record


def comparison(end: int, offset: int = 0) -> Comparison:
    """Return a comparison of three replicas up to `end`."""
    return Comparison(topic="t", partition=0, replicas=(1, 2, 3), offset=offset, end=end)


def batch(base_offset: int, *values: bytes, epoch: int = 3) -> bytes:
    """Return a batch of records with these values."""
    records = [Record(base_offset + n, 1000, None, value) for n, value in enumerate(values)]
    return bytes(build_batch(records, leader_epoch=epoch))


def held(*batches: bytes, high_watermark: int = 100) -> ReplicaResponse:
    """Return the response of a replica with these batches."""
    return ReplicaResponse(high_watermark, memoryview(b"".join(batches)))


A, B, C = batch(0, b"a", b"b"), batch(2, b"c"), batch(3, b"d")


def told(found: Comparison, *replicas: ReplicaResponse) -> list[str]:
    """Compare the responses, and return the differences as texts."""
    return [str(each) for each in found.compare(dict(enumerate(replicas, 1)))]


def test_equal_replicas() -> None:
    found = comparison(4)
    assert told(found, *[held(A, B, C, high_watermark=4)] * 3) == []
    assert (found.offset, found.lag, found.done, found.equal) == (4, 0, True, True)


def test_what_one_lacks_so_far_is_lag() -> None:
    found = comparison(4)
    assert told(found, held(A, B, C), held(A, B), held(A, B, C[:-1])) == []
    assert (found.offset, found.lag, found.done, found.equal) == (3, 97, False, False)
    assert told(found, held(C), held(C), held(C)) == []
    assert found.equal


def test_nothing_is_compared_above_a_high_watermark() -> None:
    """A follower may have records there that another leader will overwrite."""
    other = batch(2, b"x")
    found = comparison(3)
    assert told(found, held(A, B), held(A, other, high_watermark=2)) == []
    assert found.offset == 2
    assert found.problems == {2: "its high watermark is 2"}


def test_another_checksum() -> None:
    found = comparison(4)
    other = batch(2, b"x")
    crcs = [int.from_bytes(each[17:21], "big") for each in (B, other)]
    (line,) = told(found, held(A, B, C), held(A, other, C), held(A, B, C))
    assert line == (
        f" has unmatched checksum at offset 2; replica 1's checksum {crcs[0]}; "
        f"replica 2's checksum {crcs[1]}"
    )
    assert (found.offset, found.done, found.equal) == (4, True, False), "the rest is compared"


def test_other_offsets_end_the_comparison() -> None:
    found = comparison(4)
    assert told(found, held(A, B, C), held(A, batch(2, b"c", b"d"))) == [
        ": replica 1's offset 2 doesn't match replica 2's offset 3"
    ]
    assert (found.offset, found.diverged, found.done, found.equal) == (2, True, True, False)


def test_another_epoch_which_no_checksum_covers() -> None:
    found = comparison(2)
    (line,) = told(found, held(A), held(batch(0, b"a", b"b", epoch=4)))
    assert line == (
        " has unmatched leader epoch at offset 1; replica 1's leader epoch 3; "
        "replica 2's leader epoch 4"
    )
    assert not found.equal


def test_a_batch_that_does_not_match_its_own_checksum() -> None:
    """Kafka's tool compares only the checksums in the headers."""
    damaged = bytearray(A)
    damaged[-3] ^= 1
    found = comparison(2)
    (line,) = told(found, held(A), held(A), held(bytes(damaged)))
    crc = int.from_bytes(A[17:21], "big")
    assert line.startswith(f" has a damaged batch at offset 1; replica 3's checksum {crc}; of what")
    assert not found.equal


def test_a_replica_that_gives_nothing_holds_the_others_up() -> None:
    found = comparison(2)
    assert told(found, held(A), ReplicaResponse(problem="KAFKA_STORAGE_ERROR")) == []
    assert (found.offset, found.problems) == (0, {2: "KAFKA_STORAGE_ERROR"})
    assert told(found, held(A), held(A)) == []
    assert found.problems == {}


def test_so_many_faults_are_kept() -> None:
    count = MAX_DIFFERENCES + 2
    found = comparison(count)
    ours, other = ([batch(at, value) for at in range(count)] for value in (b"a", b"b"))
    lines = told(found, *(held(*each, high_watermark=count) for each in (ours, other)))
    assert (len(lines), len(found.faults)) == (count, MAX_DIFFERENCES)
    assert (found.offset, found.equal) == (count, False)


SIZES = st.lists(st.integers(1, 3), max_size=6)
CUTS = st.lists(st.tuples(*[st.none() | st.integers(0, 200)] * 3), max_size=12)


@given(SIZES, st.none() | st.tuples(st.integers(0, 2), st.integers(0, 5)), CUTS)
def test_another_batch_is_found_wherever_answers_are_cut(
    sizes: list[int], another: tuple[int, int] | None, cuts: list[tuple[int | None, ...]]
) -> None:
    """The oracle compares the bytes of the replicas."""
    offsets = [sum(sizes[:number]) for number in range(len(sizes))]
    replicas = [[batch(at, *[b"v"] * n) for at, n in zip(offsets, sizes, strict=True)]] * 3
    if another is not None and another[1] < len(sizes):
        replica, place = another
        replicas[replica] = list(replicas[replica])
        replicas[replica][place] = batch(offsets[place], *[b"x"] * sizes[place])
    end = sum(sizes)
    found = comparison(end)
    for limits in (*cuts, (None, None, None)):
        answers = (
            b"".join(each for each in replica if int.from_bytes(each[:8], "big") >= found.offset)
            for replica in replicas
        )
        cut = [each[:limit] for each, limit in zip(answers, limits, strict=True)]
        told(found, *(held(each, high_watermark=end) for each in cut))
    assert found.done
    assert found.equal == (replicas[0] == replicas[1] == replicas[2])
