"""The steps that cause slow links, lost messages, bad disks and wrong clocks by fault rules.

Each step is a row of FAULTS: the kind of the fault, its rules, and the text of its event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from quorate.cli.chaos.actions.link_actions import inject
from quorate.cli.chaos.actions.scenario_run import ScenarioRun, Values
from quorate.cli.chaos.checks.faults import (
    BAD_FLUSH,
    CUT_CLIENTS,
    FULL_DISK,
    LOSS,
    SLOW_CLIENTS,
    SLOW_DISK,
    SLOW_LINK,
    WRONG_CLOCK,
)
from quorate.quorum.faults.rules import CLIENTS

EVERYWHERE = ["/"]
"""The paths that make a rule hold for all files of a node."""


class RuledFault(NamedTuple):
    """A fault that rules of the fault socket cause, until `heal`."""

    kind: str
    rules: Callable[[Values], dict[str, Any]]
    said: Callable[[Values], str]


def slow(values: Values) -> dict[str, Any]:
    """Return the rules of slow links, without those that are 0."""
    return {name: values[name] for name in ("delay_ms", "bytes_per_s") if values[name]}


def slow_text(values: Values) -> str:
    """Return the slowness of links as text."""
    delayed = f"{values['delay_ms']:,} ms late" if values["delay_ms"] else ""
    rate = f"at {values['bytes_per_s']:,} bytes/s" if values["bytes_per_s"] else ""
    return " and ".join(filter(None, (delayed, rate)))


FAULTS: Mapping[str, RuledFault] = {
    "drop-messages": RuledFault(
        LOSS,
        lambda values: {"drop": list(values["messages"])},
        lambda values: f"its messages {', '.join(values['messages'])} are dropped",
    ),
    "slow-link": RuledFault(
        SLOW_LINK, slow, lambda values: f"frames between it and other nodes are {slow_text(values)}"
    ),
    "slow-clients": RuledFault(
        SLOW_CLIENTS,
        lambda values: {**slow(values), "slow_links": CLIENTS},
        lambda values: f"frames between it and clients are {slow_text(values)}",
    ),
    "cut-clients": RuledFault(
        CUT_CLIENTS,
        lambda values: {"cut": [CLIENTS]},
        lambda values: "its links with clients are reset",
    ),
    "slow-disk": RuledFault(
        SLOW_DISK,
        lambda values: {"disk_delay_ms": values["flush_ms"]},
        lambda values: f"each flush of its disk takes {values['flush_ms']:,} ms longer",
    ),
    "fill-disk": RuledFault(
        FULL_DISK, lambda values: {"disk_full": EVERYWHERE}, lambda values: "its disk is full"
    ),
    "fail-flushes": RuledFault(
        BAD_FLUSH,
        lambda values: {"disk_error": EVERYWHERE},
        lambda values: "flushes of its disk fail (EIO)",
    ),
    "set-clock": RuledFault(
        WRONG_CLOCK,
        lambda values: {"clock_offset_ms": values["offset_ms"]},
        lambda values: f"its wall clock is wrong by {values['offset_ms']:,} ms",
    ),
}
"""The faults by the names of their steps."""


def injection(do: str) -> Callable[[ScenarioRun, Values], Awaitable[None]]:
    """Return the action of a step of FAULTS."""
    fault = FAULTS[do]

    async def action(run: ScenarioRun, values: Values) -> None:
        node = run.node_named(values["node"])
        rules = fault.rules(values)
        run.clock.offsets_ms.add(rules.get("clock_offset_ms", 0))
        await inject(run, node, fault.kind, rules)
        run.note(fault.said(values), node, kind="fault")

    return action
