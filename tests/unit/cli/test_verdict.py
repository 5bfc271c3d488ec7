"""The comparison of `quorate demo` must find every kind of violation."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import pytest

from quorate.cli.chaos.timeline.outage import Gap, Gaps, longest_around, outage_text
from quorate.cli.chaos.workload.comparison import NOT_ACKNOWLEDGED, Comparison, Verdict

LINES = [b"a", b"b", b"", b"d", b"b", b"f"]
PARTITIONS = 2
# Line n is in partition n % 2 at offset n // 2.
GOOD = [(n % 2, n // 2, b"%d" % n, LINES[n]) for n in range(6)]

Read = tuple[int, int, bytes, bytes]


def compared(read: Iterable[Read], acknowledged: Iterable[int] = (0, 0, 1, 1, 2, 2)) -> Verdict:
    """Return the comparison of the lines with these records."""
    comparison = Comparison(LINES, array("q", acknowledged), PARTITIONS)
    for each in read:
        comparison.read(*each)
    return comparison.verdict()


def counts(verdict: Verdict) -> dict[str, int]:
    """Return the number of violations by kind, without those that have none."""
    return {name: kind.count for name, kind in verdict.violations() if kind.count}


def test_all_there_is_good() -> None:
    verdict = compared(GOOD)
    assert verdict.good
    assert (verdict.sent, verdict.acknowledged, verdict.read) == (6, 6, 6)


def test_nothing_acknowledged_proves_nothing() -> None:
    assert not compared([], [NOT_ACKNOWLEDGED] * 6).good


@pytest.mark.parametrize("present", [True, False])
def test_what_was_not_acknowledged_may_be_there_or_not(present: bool) -> None:
    acknowledged = [0, 0, 1, 1, NOT_ACKNOWLEDGED, 2]
    assert compared(GOOD if present else GOOD[:4] + GOOD[5:], acknowledged).good


@pytest.mark.parametrize("missing", range(6))
def test_a_lost_line_is_found(missing: int) -> None:
    verdict = compared(GOOD[:missing] + GOOD[missing + 1 :])
    assert counts(verdict) == {"lost": 1}
    assert f"line {missing}: acknowledged" in "\n".join(verdict.lines())


def test_a_duplicated_line_is_found_also_when_it_was_never_acknowledged() -> None:
    acknowledged = [0, 0, 1, 1, NOT_ACKNOWLEDGED, 2]
    again = (0, 3, b"4", LINES[4])
    assert counts(compared([*GOOD, again], acknowledged)) == {"duplicated": 1}


def test_a_change_of_order_is_found() -> None:
    swapped = [GOOD[0], (0, 1, b"4", b"b"), (0, 2, b"2", b""), GOOD[1], GOOD[3], GOOD[5]]
    acknowledged = [0, 0, 2, 1, 1, 2]
    assert counts(compared(swapped, acknowledged)) == {"out of order": 1}


def test_another_offset_than_the_acknowledged_one_is_found() -> None:
    assert counts(compared(GOOD, [0, 0, 1, 1, 3, 2])) == {"at another offset": 1}


@pytest.mark.parametrize(
    "bad",
    [
        (0, 2, b"4", b"x"),
        (0, 2, b"6", b"b"),
        (0, 2, b"-4", b"b"),
        (1, 2, b"4", b"b"),
        (0, 2, b"", b"b"),
    ],
)
def test_what_was_never_sent_is_found(bad: Read) -> None:
    found = counts(compared([*GOOD[:4], bad, GOOD[5]]))
    assert found["changed"] == 1


def test_only_the_first_examples_are_kept() -> None:
    comparison = Comparison([b""] * 100, array("q", [0]) * 100, 1)
    verdict = comparison.verdict()
    assert verdict.lost.count == 100
    assert len(verdict.lost.examples) == 10


def test_gaps_between_acknowledgements() -> None:
    gaps = Gaps(2)
    for partition, now_s in [(0, 0.0), (1, 0.0), (0, 0.05), (1, 0.3), (0, 2.0), (1, 0.31)]:
        gaps.acknowledged(partition, now_s)
    assert gaps.found == [Gap(1, 0.0, 0.3), Gap(0, 0.05, 2.0)]
    assert [gap.duration_ms for gap in gaps.found] == [300, 1950]


def test_an_outage_is_the_longest_gap_around_the_event() -> None:
    gaps = [Gap(0, 0.0, 1.0), Gap(0, 5.0, 5.2), Gap(1, 5.1, 5.4), Gap(0, 5.3, 6.0), Gap(2, 90, 99)]
    assert longest_around(gaps, 5.1) == {0: 700, 1: 300}
    assert outage_text({0: 700, 1: 300, 2: 700}) == (
        "could not be written: partition 0 for 700 ms, partition 2 for 700 ms, "
        "partition 1 for 300 ms"
    )
    assert "no partition waited for more" in outage_text({})
