"""The leader epoch cache, rule by rule (KIP-101, KIP-279)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.segments.epochs import EpochCache

END = 100


def cache(*entries: tuple[int, int]) -> EpochCache:
    return EpochCache([EpochOffset(*entry) for entry in entries])


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, None),
        (1, (1, 10)),  # below the first: where the first starts
        (2, (2, 20)),
        (3, (2, 20)),  # between: the one below, where the next starts
        (4, (4, 50)),
        (6, (6, END)),  # the latest: the log end
        (7, None),  # above all
    ],
)
def test_end_offset_for(epoch: int, answer: tuple[int, int] | None) -> None:
    expected = None if answer is None else EpochOffset(*answer)
    assert cache((2, 10), (4, 20), (6, 50)).end_offset_for(epoch, END) == expected


def test_an_empty_cache_knows_nothing() -> None:
    assert cache().end_offset_for(0, END) is None
    assert cache().latest == -1
    assert cache().epoch_at(5) == -1


def test_an_epoch_starts_once() -> None:
    epochs = cache((2, 10))
    epochs.assign(2, 15)
    assert epochs.entries == [EpochOffset(2, 10)]
    assert not epochs.changed


def test_a_new_epoch_at_the_same_offset_replaces_one_without_records() -> None:
    epochs = cache((2, 10), (3, 20))
    epochs.assign(5, 20)
    assert epochs.entries == [EpochOffset(2, 10), EpochOffset(5, 20)]
    assert epochs.changed


def test_truncation_keeps_epochs_that_have_records() -> None:
    epochs = cache((2, 10), (3, 20))
    epochs.truncate_to(21)
    assert epochs.latest == 3
    epochs.truncate_to(20)
    assert epochs.entries == [EpochOffset(2, 10)]


def test_the_start_moves_within_an_epoch() -> None:
    epochs = cache((2, 10), (3, 20), (5, 40))
    epochs.advance_start(25)
    assert epochs.entries == [EpochOffset(3, 25), EpochOffset(5, 40)]
    epochs.advance_start(40)
    assert epochs.entries == [EpochOffset(5, 40)]
    epochs.advance_start(3)
    assert epochs.entries == [EpochOffset(5, 40)]


def test_neighbours() -> None:
    epochs = cache((2, 10), (4, 20))
    assert (epochs.previous(4), epochs.previous(2), epochs.previous(9)) == (2, -1, 4)
    assert [epochs.start_of(epoch) for epoch in (4, 3, 2, 1)] == [20, None, 10, None]
    assert [epochs.epoch_at(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 2, 2, 4, 4]


def test_negative_numbers_are_refused() -> None:
    for epoch, offset in ((-1, 0), (0, -1)):
        with pytest.raises(ValueError, match="cannot start"):
            cache().assign(epoch, offset)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, END)), max_size=12), st.data())
def test_against_a_list_of_entries(assigned: list[tuple[int, int]], data: st.DataObject) -> None:
    """The oracle scans a list. Epochs and offsets rise, in whatever order epochs are assigned."""
    epochs, model = cache(), dict[int, int]()
    for epoch, start in assigned:
        epochs.assign(epoch, start)
        latest = max(model, default=None)
        if latest == epoch and model[epoch] <= start:
            continue
        model = {e: s for e, s in model.items() if e < epoch and s < start} | {epoch: start}
    assert epochs.entries == [EpochOffset(*entry) for entry in sorted(model.items())]
    asked = data.draw(st.integers(0, 13))
    below = [epoch for epoch in model if epoch <= asked]
    above = [epoch for epoch in model if epoch > asked]
    expected = None
    if above:
        expected = EpochOffset(max(below, default=asked), model[min(above)])
    elif asked in model:
        expected = EpochOffset(asked, END)
    assert epochs.end_offset_for(asked, END) == expected


@pytest.mark.parametrize("start", [0, 5])
def test_the_epoch_that_holds_at_the_new_start_begins_there(start: int) -> None:
    """The check of a cleanly closed log relies on it: see test_verify.py."""
    epochs = cache((1, 0))
    epochs.advance_start(start)
    assert epochs.entries == [EpochOffset(1, start)]
    assert epochs.changed == (start > 0)
