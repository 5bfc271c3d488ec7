"""The demo is good only if it killed both nodes while the client wrote, and all nodes returned."""

from __future__ import annotations

from typing import Any, cast

import pytest

from quorate.cli.demo.run import Script, bad_text


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
