"""The demo is good only if it killed both nodes while the client wrote, and all nodes returned."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, cast

import pytest

from quorate.cli.chaos.workload.comparison import Comparison
from quorate.cli.client.errors import Refused
from quorate.cli.demo.run import PARTITIONS, Script, bad_text, compared


class Cluster:
    """A cluster that records what happens to its nodes."""

    def __init__(self) -> None:
        self.down: list[int] = []

    def leaders(self, topic: str) -> dict[int, int]:
        """Return leaders, of which broker 5 leads the most partitions."""
        return {0: 4, 1: 5, 2: 5}

    def active_controller(self) -> int:
        """Return the active controller."""
        return 2

    def kill(self, node_id: int) -> float:
        """Record a kill."""
        self.down.append(node_id)
        return 0.0

    def change_a_config(self, topic: str, value: str) -> None:
        """Do nothing."""

    def restart(self, node_id: int) -> None:
        """Record a restart."""
        self.down.remove(node_id)


@pytest.mark.parametrize(
    ("sent", "killed", "missing"),
    [
        ((0, 10), [], ["a leader", "the active controller"]),
        ((0, 25), [5], ["the active controller"]),
        ((25, 50), [5, 2], []),
        ((25, 50, 70), [], []),
    ],
)
def test_what_the_client_left_no_time_for(
    sent: tuple[int, ...], killed: list[int], missing: list[str]
) -> None:
    cluster = Cluster()
    script = Script(cast(Any, cluster), total=100)
    for done in sent:
        script.progress(done)
        if script._thread is not None:
            script._thread.join()
    assert cluster.down == killed
    assert script.left_out() == [
        f"{what} was not killed while the client wrote" for what in missing
    ]
    script.finish()
    assert cluster.down == [], "every node runs again"


def test_a_bad_verdict_names_what_is_missing() -> None:
    assert bad_text([]) == ""
    assert bad_text(["a", "b"]) == ": a; b"


class Refusing(Cluster):
    """A cluster that refuses each change of a config."""

    def change_a_config(self, topic: str, value: str) -> None:
        """Refuse the change."""
        raise Refused("no controller")


def test_a_step_that_fails_makes_the_verdict_bad() -> None:
    cluster = Refusing()
    script = Script(cast(Any, cluster), total=100)
    for done in (25, 50):
        script.progress(done)
        assert script._thread is not None
        script._thread.join()
    script.finish()
    assert script.left_out() == ["a step failed: no controller"]
    assert cluster.down == [], "every node runs again"


def test_records_that_cannot_be_read_are_a_bad_verdict_and_not_lost() -> None:
    lines = [b"x"] * (2 * PARTITIONS)
    acknowledged = array("q", [n // PARTITIONS for n in range(len(lines))])

    def records() -> Iterator[tuple[int, int, bytes, bytes]]:
        yield 0, 0, b"0", b"x"
        raise TimeoutError("nothing was read for 60 s")

    verdict, why = compared(Comparison(lines, acknowledged, PARTITIONS), records())
    assert why == ["not every record could be read back: nothing was read for 60 s"]
    assert not verdict.good
    assert (verdict.lost.count, verdict.unverified) == (0, len(lines) - 1)
