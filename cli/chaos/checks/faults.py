"""The faults of a run, and the roles of the nodes that had them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

KILL, STOP, PAUSE, MUTE, ISOLATE = "kill", "stop", "pause", "mute", "isolate"
ONE_WAY, SLOW_LINK, LOSS = "one-way cut", "slow link", "loss of messages"
SLOW_CLIENTS, CUT_CLIENTS = "slow link of clients", "cut of clients"
SLOW_DISK, FULL_DISK, BAD_FLUSH = "slow disk", "full disk", "failing flush"
WRONG_CLOCK = "wrong clock"
"""The kinds of faults."""
DISK_FAULTS = frozenset({FULL_DISK, BAD_FLUSH})
"""The faults with which a node stops by itself."""
GONE = frozenset({KILL, STOP, PAUSE, ISOLATE, ONE_WAY, *DISK_FAULTS})
"""The faults during which a controller cannot be active, or take part in a majority."""
BROKER, CONTROLLER, ACTIVE_CONTROLLER = "broker", "controller", "active controller"
BOTH, BOTH_ACTIVE = "broker and controller", "broker and active controller"
"""The roles of a node when its fault began."""
BROKERS, ACTIVES = (
    frozenset({BROKER, BOTH, BOTH_ACTIVE}),
    frozenset({ACTIVE_CONTROLLER, BOTH_ACTIVE}),
)
"""The roles of nodes that are brokers, and of those that are the active controller."""


def role_of(is_broker: bool, is_controller: bool, is_active: bool) -> str:
    """Return the role of a node. Only a controller can be active."""
    if not is_controller:
        return BROKER
    if is_broker:
        return BOTH_ACTIVE if is_active else BOTH
    return ACTIVE_CONTROLLER if is_active else CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of one node, with the effect that the node or the kernel reported."""

    kind: str
    node: int
    role: str
    start_ms: int
    end_ms: int
    affected: int
    """The number of things that the fault affected: an ended or stopped process, or messages."""
    effect: str
    """The effect as text, with the number."""
    led: tuple[int, ...] = ()
    """The partitions that the node led when the fault began."""
