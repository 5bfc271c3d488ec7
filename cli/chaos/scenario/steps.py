"""The steps of scenarios: the description, the keys, and the effect on its node of each one. Pure.

`actions/` carries the steps out, and `step_order.py` refuses an order that does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorate.cli.chaos.scenario.keys import (
    MAX_MS,
    Rule,
    Table,
    clock_offset,
    node,
    one_of,
    some_of,
    text,
    whole,
)
from quorate.quorum.faults.rules import KINDS, MAX_DELAY_MS, REQUESTS

DOWN, PAUSED, RULES, DISK = "down", "paused", "ruled by faults", "on a bad disk"
"""The states of a node that a step causes. RULES and DISK need nodes with `--faults`. A node on a
bad disk may end by itself."""
BROKER, CONTROLLER, ANY = "broker", "controller", "any"
"""The kinds of nodes that a step accepts."""


class StepKind(NamedTuple):
    """One kind of step."""

    doc: str
    keys: Table
    causes: str = ""
    """The state of the node after the step, or ""."""
    of: str = ANY
    """The kind of node that the step accepts."""


NODE = Rule("The node.", node, required=True)
WITHIN_MS = Rule("The time limit.", whole(1, MAX_MS), 60_000)
NODES = Rule("The nodes.", one_of("brokers", "controllers"), required=True)
MS = Rule("The time.", whole(1, MAX_MS), required=True)
DELAY_MS = Rule("The delay of each frame, in each direction.", whole(0, MAX_DELAY_MS), 0)
BYTES_PER_S = Rule(
    "The most bytes per second of each link in each direction. 0 for no limit.",
    whole(0, 1 << 30),
    0,
)
LOST = Rule(
    "The frames that do not arrive: `sent` or `received`.", one_of("sent", "received"), "sent"
)
MESSAGES = Rule(
    "The names of messages between nodes, or of Kafka's requests.",
    some_of({**KINDS, **REQUESTS}),
    required=True,
)
FLUSH_MS = Rule(
    "The time that each flush takes in addition.", whole(1, MAX_DELAY_MS), required=True
)
OFFSET_MS = Rule("The offset of the node's wall clock.", clock_offset, required=True)
RACK = Rule(
    "The rack, or `leader` for that of the broker that leads the most.", text, required=True
)
ASKS_CONTROLLERS = frozenset({"wait-resigned", "wait-refused"})
"""The steps that connect to the listeners of controllers, which are known on `quorate up` only."""
IN_TIME = {"within_ms": WITHIN_MS}
NODE_IN_TIME = {"node": NODE, "within_ms": WITHIN_MS}

STEPS: Mapping[str, StepKind] = {
    "kill": StepKind("Kill a node with SIGKILL (kill -9).", {"node": NODE}, DOWN),
    "start": StepKind("Start a node that is down.", {"node": NODE}),
    "stop": StepKind(
        "Stop a node with SIGTERM, and wait until its process has ended.", NODE_IN_TIME, DOWN
    ),
    "roll": StepKind(
        "Restart the nodes one after another, and wait after each one until every ISR is full.",
        {"nodes": NODES, "within_ms": WITHIN_MS},
    ),
    "kill-rack": StepKind("Kill every broker of a rack with SIGKILL.", {"rack": RACK}),
    "kill-all": StepKind("Kill every node with SIGKILL, as a power failure does.", {}),
    "start-all": StepKind("Start every node that is down.", {}),
    "pause": StepKind(
        "Stop the process of a node with SIGSTOP, until `resume` or `heal`.", {"node": NODE}, PAUSED
    ),
    "resume": StepKind("Let the process of a paused node continue.", {"node": NODE}),
    "mute-heartbeats": StepKind(
        "Drop the heartbeats of a broker and nothing else.", {"node": NODE}, RULES, BROKER
    ),
    "drop-messages": StepKind(
        "Drop messages of some kinds that a node sends or receives.",
        {"node": NODE, "messages": MESSAGES},
        RULES,
    ),
    "cut-controllers": StepKind(
        "Hold all traffic between a broker and the controllers. No connection closes.",
        {"node": NODE},
        RULES,
        BROKER,
    ),
    "hold-fetches": StepKind(
        "Hold the fetches of a broker from other brokers, so that it lags behind.",
        {"node": NODE},
        RULES,
        BROKER,
    ),
    "isolate": StepKind(
        "Hold all traffic between a node and all other nodes. Clients still reach it.",
        {"node": NODE},
        RULES,
    ),
    "cut-one-way": StepKind(
        "Hold what a node sends to other nodes, or what it receives from them, and not the rest.",
        {"node": NODE, "lost": LOST},
        RULES,
    ),
    "slow-link": StepKind(
        "Delay and throttle the links between a node and other nodes.",
        {"node": NODE, "delay_ms": DELAY_MS, "bytes_per_s": BYTES_PER_S},
        RULES,
    ),
    "slow-clients": StepKind(
        "Delay and throttle the links between a broker and its clients.",
        {"node": NODE, "delay_ms": DELAY_MS, "bytes_per_s": BYTES_PER_S},
        RULES,
        BROKER,
    ),
    "cut-clients": StepKind(
        "Reset the links of clients to a broker, and those that they open.",
        {"node": NODE},
        RULES,
        BROKER,
    ),
    "slow-disk": StepKind(
        "Let each flush of a node's disk take longer.", {"node": NODE, "flush_ms": FLUSH_MS}, RULES
    ),
    "fill-disk": StepKind(
        "Let the writes of a node fail as on a full disk (ENOSPC).", {"node": NODE}, DISK
    ),
    "fail-flushes": StepKind(
        "Let the flushes of a node fail as on a faulty disk (EIO).", {"node": NODE}, DISK
    ),
    "set-clock": StepKind(
        "Let the wall clock of a node be wrong. Its timers are not affected.",
        {"node": NODE, "offset_ms": OFFSET_MS},
        RULES,
    ),
    "heal": StepKind("End all pauses, and all faults of links, clocks and disks.", {}),
    "reassign": StepKind(
        "Move a replica of each partition to another broker, without waiting for it.", {}
    ),
    "pin-writer": StepKind(
        "Start a producer that writes to this broker only.", {"node": NODE}, of=BROKER
    ),
    "unpin-writer": StepKind("Stop that producer.", {}),
    "wait": StepKind("Wait for a fixed time.", {"ms": MS}),
    "wait-lasted": StepKind(
        "Wait until the fault of the node has lasted for this time.", {"node": NODE, "ms": MS}
    ),
    "wait-fenced": StepKind(
        "Wait until the broker is fenced and leads no partition.", NODE_IN_TIME, of=BROKER
    ),
    "wait-stopped": StepKind(
        "Wait until a node on a bad disk has ended, and has logged the file and a remedy.",
        NODE_IN_TIME,
    ),
    "wait-isr-shrunk": StepKind(
        "Wait until no ISR of a partition that another broker leads holds the broker.",
        NODE_IN_TIME,
        of=BROKER,
    ),
    "wait-controller": StepKind("Wait until a controller without a fault is active.", IN_TIME),
    "wait-resigned": StepKind(
        "Wait until a controller with a fault answers that it is not active.",
        NODE_IN_TIME,
        of=CONTROLLER,
    ),
    "wait-refused": StepKind(
        "Ask each controller without a fault to change metadata, until it answers that it is not "
        "the active one.",
        IN_TIME,
    ),
    "wait-caught-up": StepKind(
        "Wait until the node has the same metadata log as the other controllers.", NODE_IN_TIME
    ),
    "wait-written": StepKind("Wait until every partition has acknowledged a write.", IN_TIME),
    "wait-in-sync": StepKind("Wait until every ISR is full.", IN_TIME),
    "wait-reassigned": StepKind("Wait until the reassignment of `reassign` has ended.", IN_TIME),
    "write-metadata": StepKind(
        "Wait until a change of metadata that is requested from now on is committed.", IN_TIME
    ),
}
