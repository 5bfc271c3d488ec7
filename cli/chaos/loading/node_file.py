"""The reader of nodes.toml, which lists the nodes of a cluster and the commands for each one.

The tables below define the file. Errors name the file and the line."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.cli.chaos.loading.reading import Reading, ScenarioError, document_of
from quorate.cli.chaos.scenario.keys import MAX_MS, Rule, Table, some_of, table, tables, whole
from quorate.cli.chaos.scenario.scenario import EXPECT
from quorate.cli.client.errors import said_once
from quorate.config.listeners import SERVER, parse_servers
from quorate.quorum.seams import Address

BROKER, CONTROLLER = "broker", "controller"
KILL, STOP, PAUSE, RESUME, START = "kill", "stop", "pause", "resume", "start"
ROLES = {BROKER: "serves clients", CONTROLLER: "votes"}
MAX_ID = 2**31 - 1
COMMAND_TIMEOUT_MS = 60_000
"""The time, in ms, that a command may take if the file does not say otherwise."""


def command(value: Any) -> str | None:
    """Check that the value is a program with its arguments. The result is that of `Rule.wrong`."""
    fits = isinstance(value, list) and value and all(isinstance(each, str) for each in value)
    return None if fits and value[0] else "a program and its arguments, as a list of texts"


def server(value: Any) -> str | None:
    """Check that the value is HOST:PORT. The result is that of `Rule.wrong`."""
    match = SERVER.match(value) if isinstance(value, str) else None
    return None if match and 0 < int(match[2]) < 1 << 16 else "HOST:PORT"


TOP: Table = {
    "nodes": Rule("All nodes of the cluster.", tables, required=True),
    "expect": Rule("The bounds of this cluster, instead of those of the scenario.", table, {}),
    "command_timeout_ms": Rule(
        "The time that a command may take.", whole(1, MAX_MS), COMMAND_TIMEOUT_MS
    ),
}
NODE: Table = {
    "id": Rule("The node's id.", whole(0, MAX_ID), required=True),
    "roles": Rule(
        "`broker`, `controller`, or both.", some_of({BROKER: 0, CONTROLLER: 0}), [], True
    ),
    "address": Rule("A listener that the run can connect to.", server, required=True),
    KILL: Rule("Ends the node without any warning, as kill -9.", command, required=True),
    STOP: Rule("Stops the node, and returns when it has ended.", command, required=True),
    PAUSE: Rule("Lets the node stand still, as SIGSTOP.", command, required=True),
    RESUME: Rule("Lets a paused node continue, as SIGCONT.", command, required=True),
    START: Rule("Starts the node in the background.", command, required=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNode:
    """A node of the file."""

    id: int
    roles: Sequence[str]
    address: Address
    commands: Mapping[str, Sequence[str]]
    """The commands KILL, STOP, PAUSE, RESUME and START, each a program with its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeList:
    """The content of a nodes.toml."""

    nodes: Mapping[int, ListedNode]
    expect: Mapping[str, int]
    """The bounds that differ from those of the scenario."""
    command_timeout_ms: int

    def with_role(self, role: str) -> list[int]:
        """Return the ids of the nodes that have the role."""
        return [each.id for each in self.nodes.values() if role in each.roles]


def load_nodes(path: Path) -> NodeList:
    """Return the nodes of a file. Raise ScenarioError if it cannot be read or is not valid."""
    try:
        content = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"it cannot be read: {said_once(error, path)}") from None
    return parse_nodes(content, str(path))


def parse_nodes(content: str, origin: str) -> NodeList:
    """Return the nodes in a text. Raise ScenarioError if it is not valid, or names a program that
    this machine does not have."""
    reading = Reading.of(content, origin)
    top = reading.checked((), document_of(content, origin), TOP)
    expect = reading.checked(("expect",), top["expect"], EXPECT)
    nodes: dict[int, ListedNode] = {}
    for index, each in enumerate(top["nodes"]):
        node = listed(reading, index, each)
        if node.id in nodes:
            reading.refuse(("nodes", index, "id"), f"two nodes have the id {node.id}")
        nodes[node.id] = node
    found = NodeList(
        nodes=nodes,
        expect={name: expect[name] for name in top["expect"]},
        command_timeout_ms=top["command_timeout_ms"],
    )
    for role in (BROKER, CONTROLLER):
        if not found.with_role(role):
            reading.refuse(("nodes",), f"no node has the role {role}")
    return found


def listed(reading: Reading, index: int, values: Mapping[str, Any]) -> ListedNode:
    """Return one node. Raise ScenarioError if it is not valid."""
    path = ("nodes", index)
    checked = reading.checked(path, values, NODE)
    commands = {name: checked[name] for name in (KILL, STOP, PAUSE, RESUME, START)}
    for name, argv in commands.items():
        if shutil.which(argv[0]) is None:
            reading.refuse((*path, name), f"{name}: there is no program {argv[0]!r}")
    ((host, port),) = parse_servers("address", [checked["address"]])
    return ListedNode(
        id=checked["id"], roles=checked["roles"], address=Address(host, port), commands=commands
    )
