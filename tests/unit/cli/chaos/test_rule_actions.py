"""The rules of steps, the line of a node that stops for its disk, and replicas that move on."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.cli.chaos.actions.link_actions import STATES
from quorate.cli.chaos.actions.node_actions import disk_line
from quorate.cli.chaos.actions.reassign_actions import moved_on
from quorate.cli.chaos.actions.rule_actions import FAULTS
from quorate.cli.chaos.checks.faults import BAD_FLUSH, FULL_DISK
from quorate.cli.chaos.results.page_chart import OVER
from quorate.cli.chaos.results.page_chart import STATES as SHOWN
from quorate.cli.chaos.scenario.steps import DISK, RULES, STEPS
from quorate.quorum.faults.rules import Rules, rules_from

VALUES: dict[str, dict[str, Any]] = {
    "drop-messages": {"messages": ["FetchRequest"]},
    "slow-link": {"delay_ms": 5, "bytes_per_s": 0},
    "slow-clients": {"delay_ms": 0, "bytes_per_s": 9},
    "slow-disk": {"flush_ms": 7},
    "set-clock": {"offset_ms": -3_600_000},
}


@pytest.mark.parametrize("do", FAULTS)
def test_every_fault_has_valid_rules_and_a_text(do: str) -> None:
    fault, values = FAULTS[do], VALUES.get(do, {})
    assert rules_from(fault.rules(values)) != Rules()
    assert fault.said(values).startswith(("its ", "frames ", "each ", "flushes "))
    assert STEPS[do].causes in (RULES, DISK)
    assert STATES[fault.kind] in OVER
    assert SHOWN[STATES[fault.kind]]


def test_what_a_slow_link_says() -> None:
    said = FAULTS["slow-link"].said({"delay_ms": 1_500, "bytes_per_s": 20_000})
    assert said == "frames between it and other nodes are 1,500 ms late and at 20,000 bytes/s"


FULL = "/d/a-0/x.log (topic a, partition 0): No space left on device. Free space. Then start the "


@pytest.mark.parametrize(
    ("log", "kind", "line"),
    [
        (f"INFO x\nERROR the node stops: {FULL}node again.", FULL_DISK, f"{FULL}node again."),
        (f"ERROR the node stops: {FULL}node again.", BAD_FLUSH, ""),
        ("ERROR the node stops: No space left on device", FULL_DISK, ""),
        ("the disk is full: No space left on device, start the node again", FULL_DISK, ""),
        ("", FULL_DISK, ""),
    ],
)
def test_only_a_line_with_the_error_and_a_remedy_counts(log: str, kind: str, line: str) -> None:
    assert disk_line(log, kind) == line


def test_replicas_move_to_the_next_broker() -> None:
    ring = [4, 5, 6, 7]
    assert moved_on((4, 5, 6), ring) == (5, 6, 7)
    assert moved_on((6, 7, 4), ring) == (7, 4, 5)
