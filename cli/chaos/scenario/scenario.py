"""The parts of a scenario: a cluster, a workload, expectations, and steps that inject faults.

The tables below, and those of `steps.py`, define the whole language of scenario files
(`config/chaos/*.toml`): every table, key, default and allowed value. `loader.py` reads files with
these tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quorate.cli.chaos.scenario.keys import (
    MAX_MS,
    Rule,
    Table,
    one_of,
    settings,
    table,
    tables,
    text,
    whole,
)
from quorate.cli.chaos.scenario.steps import DISK, RULES, STEPS

ALL, ONE = "all", "1"
ACKS: Mapping[str, int] = {ALL: -1, ONE: 1}
"""The values of `acks` in a Produce request by those of the key."""

TOP: Table = {
    "title": Rule("The failure, in one line.", text, required=True),
    "about": Rule("The expected course of the run.", text, default="-"),
    "cluster": Rule("The temporary cluster.", table, default={}),
    "workload": Rule("The topic and the clients.", table, default={}),
    "expect": Rule("The limits that the verdict checks.", table, default={}),
    "ablation": Rule("The safeguard without which the verdict must be bad.", table, default={}),
    "variants": Rule(
        "The sequences of steps, carried out one after another.", tables, required=True
    ),
}
CLUSTER: Table = {
    "controllers": Rule("The number of controllers.", whole(1, 9), 3),
    "brokers": Rule("The number of brokers.", whole(1, 100), 3),
    "racks": Rule("Racks over which the brokers are spread. 0: no racks.", whole(0, 100), 0),
    "config": Rule("Configuration keys of every node.", settings, {}),
}
WORKLOAD: Table = {
    "partitions": Rule("Partitions of the topic that is written and read.", whole(1, 2000), 12),
    "replication_factor": Rule("Replicas of each partition.", whole(1, 100), 3),
    "min_insync_replicas": Rule("The topic's min.insync.replicas.", whole(1, 100), 2),
    "records_per_s": Rule(
        "Records per second, in all partitions together.", whole(1, 100_000), 1200
    ),
    "record_bytes": Rule("The size of each value.", whole(1, 100_000), 100),
    "key_bytes": Rule("The least size of each key. 0: as short as its number.", whole(0, 1000), 0),
    "acks": Rule("The acks of the producers: `all`, or `1`.", one_of(*ACKS), ALL),
    "group_members": Rule("Consumers in a group that reads the topic.", whole(0, 20), 0),
    "group_session_ms": Rule("The session timeout of these members.", whole(1000, MAX_MS), 6000),
    "member_kill_interval_ms": Rule(
        "The pause between two kills of a member, which is then replaced. 0: none is killed.",
        whole(0, MAX_MS),
        0,
    ),
    "admin_interval_ms": Rule(
        "The pause between two requests of an admin client. 0: there is none.", whole(0, MAX_MS), 0
    ),
    "metadata_interval_ms": Rule(
        "The pause between two changes of metadata by the run's client.", whole(10, MAX_MS), 250
    ),
    "request_timeout_ms": Rule("The request timeout of the clients.", whole(50, MAX_MS), 1500),
    "warm_up_ms": Rule(
        "The time that clients write before the first step.", whole(0, MAX_MS), 1500
    ),
    "cool_down_ms": Rule(
        "The time that clients write after the last step.", whole(0, MAX_MS), 1000
    ),
}
EXPECT: Table = {
    "expiry_tolerance_ms": Rule(
        "The greatest difference between the length of a silent session and "
        "broker.session.timeout.ms.",
        whole(1, MAX_MS),
        1000,
    ),
    "max_unavailable_ms": Rule(
        "The longest time for which a write to any partition may wait.", whole(1, MAX_MS), 10_000
    ),
    "max_unread_ms": Rule(
        "The longest time from the acknowledgement of a record until the consumer has read it.",
        whole(1, MAX_MS),
        10_000,
    ),
    "max_metadata_wait_ms": Rule(
        "The longest time for which a change of metadata may wait.", whole(1, MAX_MS), 10_000
    ),
    "max_rebalance_ms": Rule(
        "The longest time after the kill of a member in which a partition has no member.",
        whole(1, MAX_MS),
        30_000,
    ),
    "max_admin_wait_ms": Rule(
        "The longest time for which a request of the admin client may wait.",
        whole(1, MAX_MS),
        10_000,
    ),
    "max_resign_ms": Rule(
        "The longest time after which an isolated active controller must have resigned.",
        whole(1, MAX_MS),
        10_000,
    ),
    "min_pause_ms": Rule(
        "The shortest time for which a paused node must stand still.", whole(1, MAX_MS)
    ),
    "min_controller_moves": Rule("The fewest elections of a controller.", whole(0, 1_000_000)),
    "max_controller_moves": Rule("The most elections of a controller.", whole(0, 1_000_000)),
    "min_leader_moves": Rule("The fewest new leaders of partitions.", whole(0, 1_000_000)),
    "max_leader_moves": Rule("The most new leaders of partitions.", whole(0, 1_000_000)),
    "min_isr_shrinks": Rule("The fewest times that an ISR loses a replica.", whole(0, 1_000_000)),
    "max_isr_shrinks": Rule("The most times that an ISR loses a replica.", whole(0, 1_000_000)),
    "min_batches_before": Rule(
        "The fewest batches acknowledged before the first fault.", whole(0, 1_000_000), 20
    ),
    "min_batches_during": Rule(
        "The fewest batches acknowledged while a fault lasts. 0 if nothing can be written then.",
        whole(0, 1_000_000),
        20,
    ),
    "min_batches_after": Rule(
        "The fewest batches acknowledged after the last fault.", whole(0, 1_000_000), 20
    ),
}
ABLATION: Table = {
    "safeguard": Rule("The name of the safeguard in the tests of Quorate.", text, required=True),
    "what": Rule("A sentence about the nodes without it.", text, required=True),
    "check": Rule("The name of a check that is then bad.", text, required=True),
}
VARIANT: Table = {
    "name": Rule("The name for --variant.", text, required=True),
    "title": Rule("The difference from other variants.", text, default="-"),
    "expect": Rule("The limits that differ if only this variant runs.", table, default={}),
    "ablation": Rule("The safeguard of this variant, if it has its own.", table, default={}),
    "steps": Rule("The steps, in order.", tables, required=True),
}
TABLES: Mapping[str, Table] = {
    "cluster": CLUSTER,
    "workload": WORKLOAD,
    "expect": EXPECT,
    "ablation": ABLATION,
    "[variants]": VARIANT,
}
NEEDS_KEY: Mapping[tuple[str, str], str] = {
    ("workload", "group_session_ms"): "group_members",
    ("expect", "max_rebalance_ms"): "member_kill_interval_ms",
    ("expect", "max_admin_wait_ms"): "admin_interval_ms",
}
"""Keys without an effect unless the workload has the other key, and not 0."""
NEEDS_STEP: Mapping[tuple[str, str], str] = {
    ("expect", "expiry_tolerance_ms"): "wait-fenced",
    ("expect", "max_resign_ms"): "wait-resigned",
    ("expect", "min_pause_ms"): "pause",
}
"""Keys without an effect unless a variant has the step."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `do` is its name in STEPS, and `line` its line in the file.

    `values` holds every key of the step, with its default if the file does not set it."""

    do: str
    values: Mapping[str, Any]
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """A safeguard of the nodes without which the verdict must be bad."""

    safeguard: str
    """The name of the safeguard in the tests (`tests/chaos/ablated.py`)."""
    what: str
    """A sentence about the nodes without it."""
    check: str
    """The name of a check that is then bad."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One sequence of steps of a scenario."""

    name: str
    title: str
    steps: tuple[Step, ...]
    expect: Mapping[str, int] = field(default_factory=dict)
    """The bounds that differ from those of the scenario if only this variant runs."""
    ablation: Ablation | None = None
    """The safeguard of this variant, if it differs from that of the scenario."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The topic of a run and the pace of its clients.

    `records_per_s` is for all partitions together."""

    partitions: int
    replication_factor: int
    min_insync_replicas: int
    records_per_s: int
    record_bytes: int
    request_timeout_ms: int
    warm_up_ms: int
    cool_down_ms: int
    key_bytes: int = 0
    acks: str = ALL
    group_members: int = 0
    group_session_ms: int = 6000
    member_kill_interval_ms: int = 0
    admin_interval_ms: int = 0
    metadata_interval_ms: int = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The bounds that the verdict checks."""

    expiry_tolerance_ms: int
    max_unavailable_ms: int
    max_unread_ms: int = 10_000
    max_metadata_wait_ms: int = 10_000
    max_rebalance_ms: int = 30_000
    max_admin_wait_ms: int = 10_000
    max_resign_ms: int = 10_000
    min_pause_ms: int | None = None
    min_controller_moves: int | None = None
    max_controller_moves: int | None = None
    min_leader_moves: int | None = None
    max_leader_moves: int | None = None
    min_isr_shrinks: int | None = None
    max_isr_shrinks: int | None = None
    min_batches_before: int = 20
    min_batches_during: int = 20
    min_batches_after: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size and the node configs of a temporary cluster."""

    controllers: int
    brokers: int
    racks: int = 0
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario, as read from its file."""

    name: str
    title: str
    about: str
    cluster: Shape
    workload: Workload
    expect: Expected
    variants: tuple[Variant, ...]
    origin: str = ""
    """The name of the file, for errors."""
    ablation: Ablation | None = None

    def with_partitions(self, partitions: int | None) -> Scenario:
        """Return the scenario with another number of partitions, or the same one if it is None."""
        if partitions is None:
            return self
        return replace(self, workload=replace(self.workload, partitions=partitions))

    def with_bounds(self, bounds: Mapping[str, int]) -> Scenario:
        """Return the scenario with other values of some keys of EXPECT."""
        return replace(self, expect=replace(self.expect, **bounds))

    def expect_of(self, variants: Sequence[Variant]) -> Expected:
        """Return the bounds of a run of some variants. A variant that runs alone has its own."""
        if len(variants) != 1 or len(self.variants) == 1:
            return self.expect
        return replace(self.expect, **variants[0].expect)

    def ablation_of(self, variant: Variant) -> Ablation | None:
        """Return the safeguard without which a run of this variant alone must be bad."""
        return variant.ablation or self.ablation

    @property
    def needs_faults(self) -> bool:
        """Return True if a step needs nodes with `--faults`."""
        done = [STEPS[step.do] for variant in self.variants for step in variant.steps]
        return any(kind.causes in (RULES, DISK) for kind in done)
