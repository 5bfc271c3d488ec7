"""The order of a producer's batches, as `history.py` checks it."""

from __future__ import annotations

from tests.sim.clients.history import Promises


def test_a_later_batch_overtakes_only_the_first_one_of_a_partition() -> None:
    """A broker that has a state of the producer accepts no batch before its predecessor."""
    assert not Promises(sent=4).overtook(0), "nothing is acknowledged"
    assert Promises(sent=4, acknowledged={2: 0, 3: 1}).overtook(0)
    assert not Promises(sent=6, acknowledged={0: 0, 4: 3}).overtook(2), "the broker has a state"
