"""Latencies by phase, their percentiles, and their histograms."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quorate.cli.chaos.results.page import render
from quorate.cli.chaos.results.view import verdict_lines
from quorate.cli.chaos.workload.latencies import (
    BOUNDS_MS,
    Latencies,
    Samples,
    bar_name,
    lines,
    percentile,
    summary,
)
from quorate.cli.chaos.workload.read_delays import ReadDelays
from tests.unit.cli.chaos.histories import evidence, result

FOUND = Latencies((1_000, 2_000, 2_500, 9_000), (5, 900, 30, 7))


@given(st.lists(st.integers(0, 20_000), min_size=1), st.integers(1, 100))
def test_percentiles_are_values_that_so_many_do_not_exceed(values: list[int], share: int) -> None:
    found = percentile(sorted(values), share)
    below = sum(value <= found for value in values)
    assert found in values
    assert below * 100 >= share * len(values)
    smaller = [value for value in values if value < found]
    assert len(smaller) * 100 < share * len(values)


def test_a_latency_belongs_to_the_phase_in_which_it_ended() -> None:
    phases = evidence(latencies={"write": FOUND}).latency_summaries()["write"]
    assert [each.count for each in phases.values()] == [1, 2, 1]
    during = phases["during"]
    assert (during.p50, during.p99, during.max) == (30, 900, 900)
    assert during.bars[BOUNDS_MS.index(50)] == during.bars[BOUNDS_MS.index(1_000)] == 1


def test_nothing_measured() -> None:
    assert summary([]) == summary(()) and summary([]).max == 0
    assert list(lines(evidence().latency_summaries().items())) == []


def test_the_bars() -> None:
    assert summary([0, 1, 2, 10_000, 10_001]).bars == (2, 1, *[0] * 10, 1, 1)
    assert (bar_name(0), bar_name(len(BOUNDS_MS))) == ("<= 1 ms", "> 10,000 ms")


def test_samples_are_the_times_between_two_moments() -> None:
    samples = Samples()
    samples.add(1.0, 1.5)
    assert (list(samples.ended_s), list(samples.took_s)) == ([1.5], [0.5])
    samples.clear()
    assert not samples.took_s


def test_a_batch_that_was_read_has_a_delay() -> None:
    delays = ReadDelays()
    delays.acknowledged(0, 0, 3, 1.0)
    delays.acknowledged(0, 3, 3, 2.0)
    delays.read(0, 4, 2.5)
    assert list(delays.latencies.took_s) == [1.5]


def test_terminal_json_and_page_show_them() -> None:
    found = result(latencies={"write": FOUND})
    text = "write latency, p50 / p99 / max ms: before 5 / 5 / 5   during 30 / 900 / 900"
    assert any(text in line for line in verdict_lines(found))
    told = found.as_json()["latency_ms"]["write"]["during"]
    assert told == {"count": 2, "p50": 30, "p99": 900, "max": 900}
    page = render(found)
    assert 'aria-label="write latency during the faults: half within 30 ms"' in page
