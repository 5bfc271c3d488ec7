"""Kafka's rates and token buckets: golden histories, and clients that obey their throttle times."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import pytest

from quorate.quorum.quotas.client_quotas import ClientQuotas
from quorate.quorum.quotas.client_rates import ClientRates
from quorate.quorum.quotas.connection_rates import ConnectionRates
from quorate.quorum.quotas.matching import Quotas
from quorate.quorum.quotas.mutation_quotas import MutationQuotas
from quorate.quorum.quotas.sampled_rate import (
    MAX_THROTTLE_MS,
    SampledRate,
    Windows,
    throttle_ms,
)
from quorate.quorum.quotas.token_bucket import debt_ms
from tests.unit.quotas.histories import ours

GOLDEN = Path(__file__).parent / "kafka_rates.txt"


def test_rates_are_those_of_kafka_4_1_1() -> None:
    """The file has the lines of some histories, with Kafka's results after each amount.
    `tests/kafka/test_quotas.py` compares other histories."""
    lines = GOLDEN.read_text().splitlines()
    given = [line.partition(" -> ")[0] for line in lines]
    expected = [
        tuple(map(float, line.partition(" -> ")[2].split())) for line in lines if "->" in line
    ]
    found = ours(given)
    assert len(expected) > 500
    for number, (ours_now, kafkas) in enumerate(zip(found, expected, strict=True)):
        assert ours_now == pytest.approx(kafkas, rel=1e-9, abs=1e-6), number


def test_a_burst_counts_as_if_it_were_spread_over_all_windows() -> None:
    """2.4 s after the first amount, two full windows have passed of the ten that are needed."""
    rate = SampledRate(Windows())
    rate.record(52_000, 0)
    rate.record(52_000, 2_400)
    assert rate.measure(2_400) == (10_000.0, 10_400)
    assert throttle_ms(10_000, 8_000, 10_400) == 2_600
    assert throttle_ms(8_000, 8_000, 10_400) == 0, "a rate at its bound is not throttled"


def test_the_smallest_bounds_give_the_longest_throttle_time() -> None:
    """The quotient of a rate and a tiny bound is infinite, which no integer can hold."""
    assert throttle_ms(1e6, 5e-324, 10_000) == MAX_THROTTLE_MS
    assert debt_ms(-1e6, 5e-324) == MAX_THROTTLE_MS


QUOTAS: Quotas = {(("client-id", "c"),): {"producer_byte_rate": 1000.0}}


@pytest.mark.parametrize("seed", range(20))
def test_a_client_that_obeys_uses_no_more_than_its_quota(seed: int) -> None:
    """A dumb oracle: the sum of everything over the whole time, in virtual time.

    The client sends as fast as it may. Before the first throttle it may use all windows at once."""
    random = Random(seed)
    windows = Windows(random.choice((2, 5, 11)), random.choice((1000, 3000)))
    rates = ClientRates("producer_byte_rate", windows)
    rates.configure(QUOTAS)
    now_ms, total, throttled_ms = 0, 0, 0
    end_ms = 200 * windows.size_ms
    while now_ms < end_ms:
        size = random.randrange(1, 3000)
        total += size
        delay_ms = rates.record("c", size, now_ms)
        throttled_ms += delay_ms
        now_ms += delay_ms + random.randrange(3)
    burst = 1000 * (windows.count + 1) * windows.size_ms / 1000 + 3000
    # With two windows, Kafka's samples forget up to a tenth of what they should count.
    assert total <= 1.1 * 1000 * now_ms / 1000 + burst
    assert total >= 0.85 * 1000 * now_ms / 1000, "nor much less"
    assert throttled_ms


def test_a_client_that_ignores_its_throttle_time_is_throttled_longer() -> None:
    rates = ClientRates("producer_byte_rate", Windows())
    rates.configure(QUOTAS)
    delays = [rates.record("c", 20_000, now_ms) for now_ms in (0, 1, 2)]
    assert delays == [10_000, 29_999, 49_998]


def test_request_time_is_throttled_for_one_window_at_most() -> None:
    rates = ClientRates("producer_byte_rate", Windows(), max_throttle_ms=1000)
    rates.configure(QUOTAS)
    assert rates.record("c", 10**9, 0) == 1000


def test_a_new_bound_is_compared_with_the_old_history() -> None:
    """KAFKA-10458."""
    rates = ClientRates("producer_byte_rate", Windows())
    rates.configure(QUOTAS)
    assert rates.record("c", 9_000, 0) == 0
    rates.configure({(("client-id", "c"),): {"producer_byte_rate": 500.0}})
    assert rates.record("c", 0, 0) == 8_000
    rates.configure({})
    assert rates.record("c", 10**9, 0) == 0, "no quota, no throttle"


def test_an_amount_that_is_taken_back_does_not_count() -> None:
    rates = ClientRates("producer_byte_rate", Windows())
    rates.configure(QUOTAS)
    assert rates.record("c", 50_000, 0) == 40_000
    rates.add("c", -50_000, 0)
    assert rates.record("c", 10_000, 0) == 0


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf])
def test_a_quota_that_is_no_bound_bounds_nothing(bound: float) -> None:
    """The metadata log of Apache Kafka may hold such quotas."""
    entity = (("client-id", "c"),)
    rates = ClientRates("producer_byte_rate", Windows())
    rates.configure({entity: {"producer_byte_rate": bound}})
    assert rates.record("c", 10**9, 0) == 0
    mutations = MutationQuotas(Windows()).of_request(
        {entity: {"controller_mutation_rate": bound}}, "c", 0, strict=True, user="ANONYMOUS"
    )
    assert all(mutations.accepts(10**6) for _ in range(3))
    addresses = ConnectionRates(Windows())
    addresses.configure({(("ip", None),): {"connection_creation_rate": bound}})
    assert all(addresses.record("10.0.0.1", 0) == 0 for _ in range(99))


def test_the_smallest_and_the_largest_quota_have_a_throttle_time() -> None:
    for bound in (5e-324, 1.0):
        assert throttle_ms(1e300, bound, 10_000) == 2**31 - 1
        assert debt_ms(-1e300, bound) == 2**31 - 1
    quotas = ClientQuotas(Windows())
    quotas.configure({(("client-id", "c"),): {"consumer_byte_rate": 2.0**63}})
    assert quotas.max_fetch_bytes("c", 0, "ANONYMOUS") == 2**31 - 1
