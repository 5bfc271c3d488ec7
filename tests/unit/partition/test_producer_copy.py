"""Copies of producer states that take many steps while the states change."""

from __future__ import annotations

import random

import pytest

from quorate.broker.logs import producer_snapshots
from quorate.broker.partition import producer_copy, producer_state
from quorate.broker.partition.producer_copy import PRODUCERS_PER_STEP
from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.log.batches.batch import BatchHeader, build_batch, read_header
from quorate.quorum.log.batches.record import Record


def sent(offset: int, producer_id: int, sequence: int, epoch: int = 0) -> BatchHeader:
    data = build_batch(
        [Record(offset, 1_000 + offset, None, b"v")],
        leader_epoch=0,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return read_header(data)


def filled(count: int) -> ProducerStates:
    states = ProducerStates()
    for number in range(count):
        states.append(sent(number, number, 0))
    return states


def comparable(content: bytes) -> dict[int, tuple[object, ...]]:
    states = producer_snapshots.decode(content)
    assert states is not None
    return {
        each: (found.epoch, found.last_timestamp_ms, tuple(found.batches))
        for each, found in states.producers.items()
    }


@pytest.mark.parametrize("seed", range(10))
def test_a_copy_has_the_states_of_its_first_step(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producers send, begin a new epoch, expire and make room meanwhile."""
    monkeypatch.setattr(producer_copy, "PRODUCERS_PER_STEP", 7)
    monkeypatch.setattr(producer_state, "MAX_PRODUCERS", 60)
    rand = random.Random(seed)
    states = filled(60)
    before = comparable(producer_snapshots.encode(states))
    steps = states.copied(producer_snapshots.rows)
    entries: list[bytes] | None = None
    offset, count = 60, 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            entries = end.value
            break
        count += 1
        for _ in range(5):
            producer = rand.randrange(80)
            known = states.producers.get(producer)
            sequence = known.batches[-1].last_sequence + 1 if known else 0
            states.append(sent(offset, producer, sequence, epoch=int(rand.random() < 0.2)))
            offset += 1
        states.expire(1_000 + rand.randrange(offset), 990)
    assert count >= 8 and entries is not None
    assert comparable(producer_snapshots.joined(entries)) == before
    assert comparable(producer_snapshots.encode(states)) != before


def test_a_truncation_makes_a_copy_void() -> None:
    states = filled(2 * PRODUCERS_PER_STEP)
    steps = states.copied(producer_snapshots.rows)
    next(steps)
    states.truncate_to(10)
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value is None


def test_a_step_takes_a_bounded_number_of_producers() -> None:
    """100,000 producers in one step once held the event loop for a tenth of a second."""
    states = filled(5 * PRODUCERS_PER_STEP)
    most = taken = 0

    def take(producer_id: int, producer: object) -> int:
        nonlocal taken
        taken += 1
        return producer_id

    steps = states.copied(take)
    for _ in steps:
        most, taken = max(most, taken), 0
    found: dict[int, int] = {}
    for _ in states.last_offsets_below(10**6, found):
        assert len(found) % PRODUCERS_PER_STEP == 0
    assert len(found) == 5 * PRODUCERS_PER_STEP
    assert most == PRODUCERS_PER_STEP
