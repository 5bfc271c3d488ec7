"""State diagrams, drawn from the tables of transitions that the code checks at each transition.

The code refuses a transition that its table lacks (tests/unit/test_state_tables.py). A drawing
therefore shows every transition that a node can make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.broker.controller import lifecycle
from quorate.broker.groups import state as groups
from quorate.broker.partition import isr_states as isr
from quorate.quorum.controller.brokers import broker_states
from quorate.quorum.controller.partitions import partition_states
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import states

OUTSIDE = "[*]"
Arrow = tuple[str, str, str]
"""A transition as drawn: the state before, the state after, and the label."""


def diagram(arrows: Iterable[Arrow]) -> str:
    """Return a fenced Mermaid state diagram with one line for each arrow, in the given order."""
    lines = [f"    {before} --> {after} : {label}" for before, after, label in arrows]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```", ""])


def raft_roles() -> str:
    """Draw the roles of a node in the metadata quorum. Each label ends with the epoch step."""
    first = [(OUTSIDE, role.value.title(), when) for role, when in states.FIRST_ROLES.items()]
    changes = [
        (before.value.title(), after.value.title(), f"{each.when} ({each.epoch.value} epoch)")
        for (before, after), each in states.TRANSITIONS.items()
    ]
    return diagram(first + changes)


def broker_registration() -> str:
    """Draw the states of a broker as the controller sees it."""
    first = (OUTSIDE, broker_states.FIRST_STATE.name, "registration of an incarnation")
    table = broker_states.TRANSITIONS.items()
    return diagram([first, *((before.name, after.name, when) for (before, after), when in table)])


def broker_lifecycle() -> str:
    """Draw the states of a broker as the broker itself sees them."""
    first = (OUTSIDE, lifecycle.FIRST_STATE.name, "the process starts")
    table = lifecycle.TRANSITIONS.items()
    return diagram([first, *((before.name, after.name, when) for (before, after), when in table)])


def leader_isr() -> str:
    """Draw the states of the ISR at a partition's leader, with its outcome for each answer."""
    first = (OUTSIDE, isr.Committed.__name__, "the replica becomes the leader")
    changes = [
        (before.__name__, after.__name__, when) for (before, after), when in isr.TRANSITIONS.items()
    ]
    rows = [f"| {errors_of(outcome)} | {outcome.value} |" for outcome in isr.Outcome]
    table = ["| answer of the controller | outcome |", "|---|---|", *rows, ""]
    return "\n".join([diagram([first, *changes]), *table])


def errors_of(outcome: isr.Outcome) -> str:
    """Return the error codes that have this outcome, as text."""
    names = [ErrorCode.of(error).name for error, each in isr.OUTCOMES.items() if each is outcome]
    return ", ".join(f"`{name}`" for name in names) or "any other error, or none in time"


def partition_leadership() -> str:
    """Draw the states of a partition in the metadata log. Each label ends with the
    leader epoch."""
    return diagram(
        (
            before.value.title(),
            after.value.title(),
            f"{each.when} ({each.epoch.value} leader epoch)",
        )
        for (before, after), each in partition_states.TRANSITIONS.items()
    )


def consumer_group() -> str:
    """Draw the states of a consumer group."""
    first = (OUTSIDE, groups.State.EMPTY.value, "first request for the group")
    table = groups.TRANSITIONS.items()
    return diagram([first, *((before.value, after.value, when) for (before, after), when in table)])


DRAWINGS: dict[str, Callable[[], str]] = {
    "raft-roles": raft_roles,
    "broker-registration": broker_registration,
    "broker-lifecycle": broker_lifecycle,
    "leader-isr": leader_isr,
    "partition-leadership": partition_leadership,
    "consumer-group": consumer_group,
}
"""Every drawing, by the name in its marker."""
