"""The sets of partitions that a controller indexes."""

from __future__ import annotations

import random
import sys

import pytest

from quorate.quorum.controller.state.partition_index import Keys, PartitionKey, packed
from quorate.quorum.ids import Uuid


def keys_of(topics: int, partitions: int) -> list[PartitionKey]:
    ids = [Uuid(random.Random(number).randbytes(16)) for number in range(topics)]
    return [(topic_id, partition_id) for topic_id in ids for partition_id in range(partitions)]


def test_it_has_what_was_added_and_not_discarded() -> None:
    known = [*keys_of(20, 3), *((Uuid(b"t" * 16), 1 << bit) for bit in range(31))]
    keys = Keys()
    for key in known:
        keys.add(packed(key))
        keys.add(packed(key))
    assert len(keys) == len(known)
    assert sorted(keys) == sorted(known)
    for key in known[::2]:
        keys.discard(packed(key))
        keys.discard(packed(key))
    assert sorted(keys) == sorted(known[1::2])
    assert packed(known[1]) in keys
    assert packed(known[0]) not in keys


def test_packed_keys_have_the_order_of_keys() -> None:
    known = [*keys_of(20, 3), *((Uuid(b"t" * 16), 1 << bit) for bit in range(31))]
    assert sorted(known, key=packed) == sorted(known)


@pytest.mark.parametrize(("topics", "partitions"), [(100, 1000), (1, 100_000)])
def test_its_parts_do_not_grow_all_at_once(topics: int, partitions: int) -> None:
    """With evenly filled parts, 64 tables would grow in one step, which takes as long as one large
    table."""
    keys = Keys()
    before = [sys.getsizeof(part) for part in keys._parts]
    for number, key in enumerate(keys_of(topics, partitions), 1):
        keys.add(packed(key))
        if number % 1000 == 0:
            sizes = [sys.getsizeof(part) for part in keys._parts]
            assert sum(new > old for new, old in zip(sizes, before, strict=True)) <= 2
            before = sizes
