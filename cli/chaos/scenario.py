"""The parts of a scenario: a cluster, a workload, expectations, and steps that inject faults.

The tables below define the whole language of scenario files (`config/chaos/*.toml`): every table,
key, default and allowed value. `loader.py` reads files with these tables, and `actions.py` carries
the steps out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

LEADER, FOLLOWER, ACTIVE, STANDBY, VICTIM = "leader", "follower", "controller", "standby", "victim"
ANY_BROKER, ANY_CONTROLLER = "any-broker", "any-controller"
ROLES = (LEADER, ACTIVE, VICTIM, FOLLOWER, STANDBY, ANY_BROKER, ANY_CONTROLLER)
"""The names that `node` accepts: the broker that leads the most partitions, the active controller,
the node that a step named last, the broker that leads the fewest partitions, a controller that is
not active, and a broker or controller that is drawn with the seed of the run. Nodes with a fault
are left out, except for the victim."""
MAX_MS = 600_000


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one key.

    `wrong` checks a value: it returns the allowed values as text, or None if the value is allowed.
    The default is not checked. The text "-" means that there is none."""

    doc: str
    wrong: Callable[[Any], str | None]
    default: Any = None
    required: bool = False


def whole(low: int, high: int) -> Callable[[Any], str | None]:
    """Return the check (`Rule.wrong`) of an integer from `low` to `high`."""

    def wrong(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if fits else f"a whole number from {low} to {high}"

    return wrong


def text(value: Any) -> str | None:
    """Check that the value is a text that is not empty. The result is that of `Rule.wrong`."""
    return None if isinstance(value, str) and value.strip() else "a text that is not empty"


def one_of(*names: str) -> Callable[[Any], str | None]:
    """Return the check (`Rule.wrong`) of a value that must be one of `names`."""
    return lambda value: None if value in names else "one of " + ", ".join(names)


def node(value: Any) -> str | None:
    """Check that the value is a node id or one of ROLES."""
    is_id = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return None if is_id or value in ROLES else f"a node's id or one of {', '.join(ROLES)}"


def settings(value: Any) -> str | None:
    """Check that the value is a table of texts, numbers and booleans."""
    fits = isinstance(value, dict) and all(
        isinstance(each, str | int | bool) for each in value.values()
    )
    return None if fits else "a table of configuration keys, each with a text, number or boolean"


def table(value: Any) -> str | None:
    """Check that the value is a table."""
    return None if isinstance(value, dict) else "a table"


def tables(value: Any) -> str | None:
    """Check that the value is a list of tables that is not empty."""
    fits = isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    return None if fits else "one or more tables, as [[variants]] and [[variants.steps]]"


Table = Mapping[str, Rule]
"""The rules of one table of a scenario file, by key."""

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
    "max_resign_ms": Rule(
        "The longest time after which an isolated active controller must have resigned.",
        whole(1, MAX_MS),
        10_000,
    ),
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
    "steps": Rule("The steps, in order.", tables, required=True),
}
TABLES: Mapping[str, Table] = {
    "cluster": CLUSTER,
    "workload": WORKLOAD,
    "expect": EXPECT,
    "ablation": ABLATION,
    "[variants]": VARIANT,
}

NODE = Rule("The node.", node, required=True)
WITHIN_MS = Rule("The time limit.", whole(1, MAX_MS), 60_000)
NODES = Rule("The nodes.", one_of("brokers", "controllers"), required=True)
MS = Rule("The time.", whole(1, MAX_MS), required=True)
# The description and the keys of each step.
STEPS: Mapping[str, tuple[str, Table]] = {
    "kill": ("Kill a node with SIGKILL (kill -9).", {"node": NODE}),
    "start": ("Start a node that is down.", {"node": NODE}),
    "stop": (
        "Stop a node with SIGTERM, and wait until its process has ended.",
        {"node": NODE, "within_ms": WITHIN_MS},
    ),
    "roll": (
        "Restart the nodes one after another, and wait after each one until every ISR is full.",
        {"nodes": NODES, "within_ms": WITHIN_MS},
    ),
    "kill-all": ("Kill every node with SIGKILL, as a power failure does.", {}),
    "start-all": ("Start every node that is down.", {}),
    "pause": ("Stop the process of a node with SIGSTOP, until `resume` or `heal`.", {"node": NODE}),
    "resume": ("Let the process of a paused node continue.", {"node": NODE}),
    "mute-heartbeats": ("Drop the heartbeats of a broker and nothing else.", {"node": NODE}),
    "cut-controllers": (
        "Hold all traffic between a broker and the controllers. No connection closes.",
        {"node": NODE},
    ),
    "hold-fetches": (
        "Hold the fetches of a broker from other brokers, so that it lags behind.",
        {"node": NODE},
    ),
    "isolate": (
        "Hold all traffic between a node and all other nodes. Clients still reach it.",
        {"node": NODE},
    ),
    "heal": ("End all pauses and all faults of links.", {}),
    "pin-writer": ("Start a producer that writes to this broker only.", {"node": NODE}),
    "unpin-writer": ("Stop that producer.", {}),
    "wait": ("Wait for a fixed time.", {"ms": MS}),
    "wait-fenced": (
        "Wait until the broker is fenced and leads no partition.",
        {"node": NODE, "within_ms": WITHIN_MS},
    ),
    "wait-isr-shrunk": (
        "Wait until no ISR of a partition that another broker leads holds the broker.",
        {"node": NODE, "within_ms": WITHIN_MS},
    ),
    "wait-controller": (
        "Wait until a controller without a fault is active.",
        {"within_ms": WITHIN_MS},
    ),
    "wait-resigned": (
        "Wait until a controller with a fault answers that it is not active.",
        {"node": NODE, "within_ms": WITHIN_MS},
    ),
    "wait-caught-up": (
        "Wait until the node has the same metadata log as the other controllers.",
        {"node": NODE, "within_ms": WITHIN_MS},
    ),
    "wait-written": (
        "Wait until every partition has acknowledged a write.",
        {"within_ms": WITHIN_MS},
    ),
    "wait-in-sync": ("Wait until every ISR is full.", {"within_ms": WITHIN_MS}),
    "write-metadata": (
        "Wait until a change of metadata that is requested from now on is committed.",
        {"within_ms": WITHIN_MS},
    ),
}
NEED_FAULTS = frozenset({"mute-heartbeats", "cut-controllers", "hold-fetches", "isolate"})
"""The steps that need nodes with `--faults`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `do` is its name in STEPS, and `line` its line in the file.

    `values` holds every key of the step, with its default if the file does not set it."""

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
    max_unread_ms: int = 10_000
    max_metadata_wait_ms: int = 10_000
    max_resign_ms: int = 10_000
    min_batches_before: int = 20
    min_batches_during: int = 20
    min_batches_after: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size and the node configs of a temporary cluster."""

    controllers: int
    brokers: int
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """A safeguard of the nodes without which the verdict must be bad."""

    safeguard: str
    """The name of the safeguard in the tests (`tests/chaos/ablated.py`)."""
    what: str
    """A sentence about the nodes without it."""
    check: str
    """The name of a check that is then bad."""


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

    @property
    def needs_faults(self) -> bool:
        """Return True if a step needs nodes with `--faults`."""
        return any(step.do in NEED_FAULTS for variant in self.variants for step in variant.steps)
