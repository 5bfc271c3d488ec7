"""The parts of a scenario: a cluster, a workload, expectations, and steps that inject faults.

The tables below define the whole language of scenario files (`config/chaos/*.toml`): every table,
key, default and allowed value. `loader.py` reads files with these tables, and `actions.py` carries
the steps out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

ROLES = ("leader", "controller", "victim")
"""The names that `node` accepts: the broker that leads the most partitions, the active controller,
and the node that a step named last."""
MAX_MS = 600_000


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one key.

    `wrong` returns the allowed values as text, or None if the value is allowed."""

    doc: str
    wrong: Callable[[Any], str | None]
    default: Any = None
    required: bool = False


def whole(low: int, high: int) -> Callable[[Any], str | None]:
    """Return the rule of an integer from `low` to `high`."""

    def wrong(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if fits else f"a whole number from {low} to {high}"

    return wrong


def text(value: Any) -> str | None:
    """Return None if the value is a text that is not empty."""
    return None if isinstance(value, str) and value.strip() else "a text that is not empty"


def one_of(*names: str) -> Callable[[Any], str | None]:
    """Return the rule of a value that must be one of `names`."""
    return lambda value: None if value in names else "one of " + ", ".join(names)


def node(value: Any) -> str | None:
    """Return None if the value is a node id or one of ROLES."""
    is_id = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return None if is_id or value in ROLES else f"a node's id or one of {', '.join(ROLES)}"


def settings(value: Any) -> str | None:
    """Return None if the value is a table of node configs."""
    fits = isinstance(value, dict) and all(
        isinstance(each, str | int | bool) for each in value.values()
    )
    return None if fits else "a table of configuration keys, each with a text, number or boolean"


def table(value: Any) -> str | None:
    """Return None if the value is a table."""
    return None if isinstance(value, dict) else "a table"


def tables(value: Any) -> str | None:
    """Return None if the value is a list of tables that is not empty."""
    fits = isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    return None if fits else "one or more tables, as [[variants]] and [[variants.steps]]"


Table = Mapping[str, Rule]

TOP: Table = {
    "title": Rule("What is rehearsed, in one line.", text, required=True),
    "about": Rule("What there is to see.", text, default="-"),
    "cluster": Rule("A cluster of its own.", table, default={}),
    "workload": Rule("What clients do meanwhile.", table, default={}),
    "expect": Rule("What the verdict asks for.", table, default={}),
    "variants": Rule("Each is played, in turn.", tables, required=True),
}
CLUSTER: Table = {
    "controllers": Rule("How many controllers.", whole(1, 9), 3),
    "brokers": Rule("How many brokers.", whole(1, 100), 3),
    "config": Rule("Keys of every node.", settings, {}),
}
WORKLOAD: Table = {
    "partitions": Rule("Of the topic that is written and read.", whole(1, 2000), 12),
    "replication_factor": Rule("Replicas of each partition.", whole(1, 100), 3),
    "min_insync_replicas": Rule("The topic's min.insync.replicas.", whole(1, 100), 2),
    "records_per_s": Rule("In all partitions together.", whole(1, 100_000), 1200),
    "record_bytes": Rule("Of each value.", whole(1, 100_000), 100),
    "request_timeout_ms": Rule("A client's patience with a broker.", whole(50, MAX_MS), 1500),
    "warm_up_ms": Rule("Writing before the first step.", whole(0, MAX_MS), 1500),
    "cool_down_ms": Rule("Writing after the last step.", whole(0, MAX_MS), 1000),
}
EXPECT: Table = {
    "expiry_tolerance_ms": Rule(
        "How far from broker.session.timeout.ms a silent session may end.", whole(1, MAX_MS), 1000
    ),
    "max_unavailable_ms": Rule(
        "The longest that writers of any partition may wait at once.", whole(1, MAX_MS), 10_000
    ),
}
VARIANT: Table = {
    "name": Rule("For --variant.", text, required=True),
    "title": Rule("What is different in it.", text, default="-"),
    "steps": Rule("What is done, in order.", tables, required=True),
}
TABLES: Mapping[str, Table] = {
    "cluster": CLUSTER,
    "workload": WORKLOAD,
    "expect": EXPECT,
    "[variants]": VARIANT,
}

NODE = Rule("Which node.", node, required=True)
WITHIN_MS = Rule("How long it may take.", whole(1, MAX_MS), 60_000)
NODES = Rule("Which nodes.", one_of("brokers", "controllers"), required=True)
MS = Rule("How long.", whole(1, MAX_MS), required=True)
STEPS: Mapping[str, tuple[str, Table]] = {
    "kill": ("kill -9.", {"node": NODE}),
    "start": ("Start a node that is down.", {"node": NODE}),
    "stop": ("SIGTERM, and wait for its orderly end.", {"node": NODE, "within_ms": WITHIN_MS}),
    "roll": (
        "Each node in turn: stop, start, wait until all is in sync.",
        {"nodes": NODES, "within_ms": WITHIN_MS},
    ),
    "mute-heartbeats": ("Its heartbeats, and nothing else, are lost.", {"node": NODE}),
    "cut-controllers": (
        "All traffic between it and the controllers is held; no link closes.",
        {"node": NODE},
    ),
    "heal": ("Every fault ends.", {}),
    "pin-writer": ("A producer that writes to this broker only.", {"node": NODE}),
    "unpin-writer": ("It ends.", {}),
    "wait": ("Let time pass.", {"ms": MS}),
    "wait-fenced": (
        "Until the broker is fenced, and leads nothing.",
        {"node": NODE, "within_ms": WITHIN_MS},
    ),
    "wait-caught-up": (
        "Until the node has the metadata log that the others have.",
        {"node": NODE, "within_ms": WITHIN_MS},
    ),
    "wait-written": ("Until every partition took a write.", {"within_ms": WITHIN_MS}),
    "wait-in-sync": ("Until every ISR is whole.", {"within_ms": WITHIN_MS}),
    "write-metadata": (
        "A config change is made; until it is committed.",
        {"within_ms": WITHIN_MS},
    ),
}
NEED_FAULTS = frozenset({"mute-heartbeats", "cut-controllers"})
"""The steps that need nodes with `--faults`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `do` is its name in STEPS, and `line` its line in the file."""

    do: str
    values: Mapping[str, Any]
    line: int = 1


@dataclass(frozen=True, slots=True)
class Variant:
    """One sequence of steps of a scenario."""

    name: str
    title: str
    steps: tuple[Step, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The bounds that the verdict checks."""

    expiry_tolerance_ms: int
    max_unavailable_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size and the node configs of a temporary cluster."""

    controllers: int
    brokers: int
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

    def with_partitions(self, partitions: int | None) -> Scenario:
        """Return the scenario with another number of partitions, or the same one if it is None."""
        if partitions is None:
            return self
        return replace(self, workload=replace(self.workload, partitions=partitions))

    @property
    def needs_faults(self) -> bool:
        """Return True if a step needs nodes with `--faults`."""
        return any(step.do in NEED_FAULTS for variant in self.variants for step in variant.steps)
