"""The precedence of quotas, the buckets that clients share, and the bound on tracked clients."""

from __future__ import annotations

from itertools import product

import pytest

from quorate.quorum.quotas import tracked
from quorate.quorum.quotas.client_rates import ClientRates
from quorate.quorum.quotas.connection_rates import ConnectionRates
from quorate.quorum.quotas.matching import matching
from quorate.quorum.quotas.sampled_rate import Windows
from quorate.quorum.quotas.tracked import IDLE_MS, Tracked

KEY = "producer_byte_rate"
Entity = tuple[tuple[str, str | None], ...]
MOST_SPECIFIC_FIRST: tuple[tuple[Entity, tuple[str, str]], ...] = (
    ((("client-id", "c"), ("user", "u")), ("u", "c")),
    ((("client-id", None), ("user", "u")), ("u", "c")),
    ((("user", "u"),), ("u", "")),
    ((("client-id", "c"), ("user", None)), ("u", "c")),
    ((("client-id", None), ("user", None)), ("u", "c")),
    ((("user", None),), ("u", "")),
    ((("client-id", "c"),), ("", "c")),
    ((("client-id", None),), ("", "c")),
)


def test_the_most_specific_quota_applies() -> None:
    """All 256 combinations, against Kafka's order as a list."""
    others: dict[Entity, dict[str, float]] = {
        (("user", "other"),): {KEY: 1.0},
        (("client-id", "other"), ("user", "u")): {KEY: 1.0},
        (("ip", "u"),): {"connection_creation_rate": 1.0},
    }
    for chosen in product((False, True), repeat=len(MOST_SPECIFIC_FIRST)):
        quotas = dict(others)
        for index, ((entity, _), is_set) in enumerate(
            zip(MOST_SPECIFIC_FIRST, chosen, strict=True)
        ):
            quotas[entity] = {KEY: 10.0 + index} if is_set else {"consumer_byte_rate": 1.0}
        found = matching(quotas, KEY, "u", "c")
        if True not in chosen:
            assert found is None
            continue
        first = chosen.index(True)
        assert found == (10.0 + first, MOST_SPECIFIC_FIRST[first][1])


def test_a_quota_of_a_user_bounds_all_its_client_ids_together() -> None:
    rates = ClientRates(KEY, Windows())
    rates.configure({(("user", "ANONYMOUS"),): {KEY: 100.0}})
    assert rates.record("a", 900, 0) == 0
    assert rates.record("b", 900, 0) == 8_000
    rates = ClientRates(KEY, Windows())
    rates.configure({(("client-id", None),): {KEY: 100.0}})
    assert rates.record("a", 900, 0) == 0
    assert rates.record("b", 900, 0) == 0, "the default bounds each for itself"


def test_the_number_of_tracked_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracked, "MAX_TRACKED", 3)
    rates = ClientRates(KEY, Windows())
    rates.configure({(("client-id", None),): {KEY: 100.0}})
    for client in ("a", "b", "c", "a", "d"):
        rates.record(client, 900, 0)
    assert [bucket for bucket, _ in rates.buckets()] == [("", "c"), ("", "a"), ("", "d")]
    assert rates.dropped == 1


def test_idle_clients_are_dropped_when_another_comes() -> None:
    entries: Tracked[str, int] = Tracked()
    entries.add("old", 1, 0)
    entries.add("used", 2, 0)
    assert entries.use("used", 10) == 2
    entries.add("new", 3, IDLE_MS + 1)
    assert dict(entries.items()) == {"used": 2, "new": 3}
    assert (entries.dropped, len(entries), entries.use("old", 0)) == (0, 2, None)


def test_connections_of_one_address() -> None:
    rates = ConnectionRates(Windows(2, 1000))
    quotas: dict[Entity, dict[str, float]] = {
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 2.0},
        (("ip", None),): {"connection_creation_rate": 1.0},
    }
    rates.configure(quotas)
    assert rates.enabled is True
    assert [rates.record("10.0.0.1", 0) for _ in range(3)] == [0, 0, 500]
    assert rates.record("::ffff:10.0.0.1", 0) == 500, "the same address"
    assert [rates.record("10.0.0.2", 0) for _ in range(2)] == [0, 1000]
    assert rates.record("10.0.0.2", 3000) == 0, "refused connections did not count"
    assert (rates.throttled, rates.throttled_ms) == (3, 2000)
    rates.configure({})
    assert rates.record("10.0.0.1", 0) == 0
