"""The sessions of brokers, as the active controller has them."""

from __future__ import annotations

from tests.sim.world.cluster import Machine, SimCluster

FRESH_MS = 1200
"""A session with at least this rest was renewed recently. It lasts 2 s, and a broker renews it
every 400 ms."""
RECENT_MS = 800
"""A broker that had an answer to a heartbeat so recently renews its session in time."""


def session_left_ms(active: Machine, broker_id: int) -> int:
    """Return the rest of a broker's session at the active controller."""
    assert active.process is not None and active.process.controller is not None
    session = active.process.controller.shell._controller._context.sessions.get(broker_id)
    return 0 if session is None else session.deadline_ms - active.process.clock.now_ms()


def has_renewed(machine: Machine) -> bool:
    """Return True if the broker had an answer to a heartbeat recently.

    The rest of its session does not show this: a new active controller gives each broker a whole
    session, also one that cannot reach it (seed 5606)."""
    process = machine.process
    lifecycle = None if process is None or process.broker is None else process.broker.lifecycle
    if process is None or lifecycle is None:
        return False
    return process.clock.now_ms() - lifecycle.heard_ms <= RECENT_MS


class Sessions:
    """The latest end of each broker's session that any active controller had, in virtual
    seconds."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._ends_s: dict[int, float] = {}

    def look(self) -> None:
        """Record the present sessions. Call this in every sweep."""
        now_s = self._cluster.loop.time()
        for active in self._cluster.active_controllers():
            for broker in self._cluster.brokers:
                left_s = session_left_ms(active, broker.id) / 1000
                if left_s > 0:
                    self._ends_s[broker.id] = max(now_s + left_s, self._ends_s.get(broker.id, 0))

    def left_s(self, broker_id: int) -> float:
        """Return the rest of a broker's latest session in seconds, even if the session was ended
        early."""
        return self._ends_s.get(broker_id, 0.0) - self._cluster.loop.time()
