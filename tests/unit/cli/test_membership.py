"""How a console consumer that leads its group shares partitions out, and the bytes for it."""

from __future__ import annotations

import pytest

from quorate.cli.client.errors import Refused
from quorate.cli.client.groups import assigned
from quorate.cli.client.membership import assignment, range_shares, subscription, topics_of


def test_ranges() -> None:
    shares = range_shares({"b": ["t"], "a": ["t", "u"], "c": ["t"]}, {"t": 4, "u": 2})
    assert shares == {
        "a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)],
        "b": [("t", 2)],
        "c": [("t", 3)],
    }
    assert range_shares({"a": ["gone"]}, {"t": 2}) == {"a": []}
    assert range_shares({"a": ["t"], "b": ["t"]}, {"t": 1}) == {"a": [("t", 0)], "b": []}


def test_the_bytes() -> None:
    places = [("t", 0), ("t", 5), ("uu", 1)]
    assert assigned(assignment(places)) == places
    assert assigned(assignment([])) == []
    assert topics_of(subscription(["t", "uu"])) == ["t", "uu"]
    with pytest.raises(Refused, match="cannot be read"):
        topics_of(b"\0\0\0\0\0\2\0\1t")
