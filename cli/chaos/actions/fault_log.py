"""The faults of a run, from their begin to their end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quorate.cli.chaos.checks.faults import Fault


@dataclass(slots=True, kw_only=True)
class OpenFault:
    """A fault that lasts. `affected` and `effect` are those of `Fault`, as known so far."""

    kind: str
    node: int
    role: str
    start_ms: int
    led: tuple[int, ...]
    rules: dict[str, Any] = field(default_factory=dict)
    """The rules of the node's fault socket, empty for faults of the process."""
    before: int = 0
    """The count of what such rules had affected when the fault began."""
    log_bytes: int = 0
    """The size of the node's log when the fault began."""
    affected: int = 0
    effect: str = "unknown"


@dataclass(slots=True)
class FaultLog:
    """All faults of a run. A node has one fault at a time."""

    ended: list[Fault] = field(default_factory=list)
    open: dict[int, OpenFault] = field(default_factory=dict)
    """The faults that last, by node."""

    def begin(self, fault: OpenFault) -> None:
        """Record the begin of a fault. The node must have none."""
        assert fault.node not in self.open, f"node {fault.node} has a fault already"
        self.open[fault.node] = fault

    def end(self, node: int, ms: int) -> None:
        """Record the end of the node's fault, if it has one."""
        fault = self.open.pop(node, None)
        if fault is not None:
            self.ended.append(ended(fault, ms))

    def all(self, ms: int) -> Sequence[Fault]:
        """Return all faults in the order of their begins. Those that last end at `ms`."""
        lasting = [ended(each, ms) for each in self.open.values()]
        return sorted([*self.ended, *lasting], key=lambda each: (each.start_ms, each.node))

    def by_rules(self) -> list[int]:
        """Return the nodes whose faults are rules of their fault sockets."""
        return sorted(node for node, each in self.open.items() if each.rules)


def ended(fault: OpenFault, ms: int) -> Fault:
    """Return the fault with its end."""
    return Fault(
        kind=fault.kind,
        node=fault.node,
        role=fault.role,
        start_ms=fault.start_ms,
        end_ms=max(ms, fault.start_ms),
        affected=fault.affected,
        effect=fault.effect,
        led=fault.led,
    )
