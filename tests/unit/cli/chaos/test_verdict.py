"""Each kind of violation makes the verdict bad, and so does a run that proves nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from quorate.cli.chaos.verdict import Expiry, Outage, Pinned
from tests.unit.cli.chaos.histories import compared, result


def bad(**changed: Any) -> list[str]:
    """Return the names of the failed checks of a result with changed evidence."""
    found = result(**changed)
    assert found.verdict == ("good" if found.good else "bad")
    return [check.name for check in found.checks if not check.good]


def expiry(fenced_ms: int) -> Expiry:
    """Return the end of a session whose last heartbeat was at 1,000 ms."""
    return Expiry(node=4, timeout_ms=3_000, last_heartbeat_ms=1_000, fenced_ms=fenced_ms, cause="x")


def pinned(successes: list[tuple[int, int]], refused: int = 1, node: int = 4) -> Pinned:
    """Return the results of a pinned client."""
    found = Pinned(node=node, from_ms=0, successes=successes)
    found.refused = Counter({"REQUEST_TIMED_OUT": refused} if refused else {})
    return found


def test_as_it_should_be() -> None:
    assert bad() == []


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"compared": compared(3, missing=1)}, "lost"),
        ({"compared": compared(0)}, "lost"),
        ({"taken_back": 1}, "taken back"),
        ({"different_replicas": [3]}, "replicas"),
        ({"failures": ["partition 1: OUT_OF_ORDER_SEQUENCE_NUMBER"]}, "producers"),
        ({"failed_steps": ["not within 5 ms: x"]}, "steps"),
        ({"expiries": [expiry(4_501)]}, "session"),
        ({"expiries": [expiry(3_499)]}, "session"),
        ({"outages": [Outage(1, 0, 2_001)]}, "availability"),
        ({"pinned": [pinned([(0, 5_251)])]}, "refused"),
        ({"pinned": [pinned([(0, 100)], refused=0)]}, "refused"),
    ],
)
def test_harm_is_found(changed: dict[str, Any], name: str) -> None:
    assert bad(**changed) == [name]


@pytest.mark.parametrize(
    "changed",
    [
        {"expiries": [expiry(4_500)]},
        {"outages": [Outage(1, 0, 2_000)]},
        # Followers that did not know the new leader yet confirmed it, so the new leader has it.
        {"pinned": [pinned([(0, 5_250)])]},
        # The broker leads partition 0 again, or for the first time.
        {"pinned": [pinned([(0, 9_000)], node=5)]},
    ],
)
def test_what_is_allowed(changed: dict[str, Any]) -> None:
    assert bad(**changed) == []


def test_what_was_truncated_is_told() -> None:
    zombie = pinned([])
    zombie.diverged = 42
    (told,) = [each for each in result(pinned=[zombie]).checks if each.name == "replicas"]
    assert told.text == "all replicas are equal; broker 4 truncated 42 records that only it had"


def test_json_has_what_scripts_ask_for() -> None:
    told = result().as_json()
    assert told["verdict"] == "good"
    assert (told["acknowledged"], told["lost"], told["duplicated"]) == (3, 0, 0)
    assert told["unavailable_ms"]["0"] == 900
    assert told["unavailable_ms"]["1"] == 0
    assert list(told["unavailable_ms"]) == [str(number) for number in range(12)]
    assert told["timeline"][1] == {
        "ms": 5_000,
        "what": "is fenced",
        "node": 4,
        "cause": "session-expired",
    }
    assert told["sessions"][0]["after_ms"] == 3_010
    assert told["refused"] == {"NOT_LEADER_OR_FOLLOWER": 17}
