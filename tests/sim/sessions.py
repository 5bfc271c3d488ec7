"""The sessions of brokers, as the active controller has them."""

from __future__ import annotations

from tests.sim.cluster import Machine

FRESH_MS = 1200
"""The rest of a session that was just renewed. It lasts 2 s; a broker renews it every 400 ms."""


def session_left_ms(active: Machine, broker_id: int) -> int:
    """Return the rest of a broker's session at the active controller."""
    assert active.process is not None and active.process.controller is not None
    session = active.process.controller.shell._controller._context.sessions.get(broker_id)
    return 0 if session is None else session.deadline_ms - active.process.clock.now_ms()
