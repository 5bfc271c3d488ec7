"""The states of a registered broker and the allowed transitions between them.

`heartbeat.py` chooses the next state, and `broker_changes.py` writes the records of a transition.
Both check their choice against TRANSITIONS, from which `make docs` draws the diagram in
docs/protocol/broker-sessions-and-hints.md.
"""

from __future__ import annotations

import enum

from quorate.quorum.metadata.image import Broker


class BrokerState(enum.Enum):
    """The states of a broker, as in Kafka. SHUTDOWN_NOW exists only in a response: it permits the
    broker to end its process."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


FIRST_STATE = BrokerState.FENCED
"""The state of every new incarnation."""

TRANSITIONS: dict[tuple[BrokerState, BrokerState], str] = {
    (
        BrokerState.FENCED,
        BrokerState.UNFENCED,
    ): "heartbeat without WantFence from a broker that has replayed its registration or fence",
    (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW): "heartbeat with WantShutDown",
    (
        BrokerState.UNFENCED,
        BrokerState.FENCED,
    ): "heartbeat with WantFence, end of the session, hint, or another incarnation",
    (
        BrokerState.UNFENCED,
        BrokerState.CONTROLLED_SHUTDOWN,
    ): "heartbeat with WantShutDown from a broker that leads partitions",
    (
        BrokerState.UNFENCED,
        BrokerState.SHUTDOWN_NOW,
    ): "heartbeat with WantShutDown from a broker that leads nothing",
    (
        BrokerState.CONTROLLED_SHUTDOWN,
        BrokerState.FENCED,
    ): "end of the session, hint, or another incarnation",
    (
        BrokerState.CONTROLLED_SHUTDOWN,
        BrokerState.SHUTDOWN_NOW,
    ): "the broker leads nothing, and every active broker has replayed this",
}
"""The allowed transitions, each with its reasons."""


def current_state(broker: Broker) -> BrokerState:
    """Return the state that the image holds for the broker."""
    if broker.fenced:
        return BrokerState.FENCED
    if broker.in_controlled_shutdown:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.UNFENCED


def check_transition(broker: Broker, following: BrokerState) -> None:
    """Raise AssertionError if the broker must not move from its current state to `following`."""
    current = current_state(broker)
    allowed = (current, following) in TRANSITIONS
    assert allowed, f"broker {broker.id} must not change from {current.value} to {following.value}"
