"""The fault rules of a node: the state of its links, clock, process and disk.

`Rules` is a value, and `Faults.apply` replaces all rules in force. Rules travel to nodes of other
processes as JSON: `{"cut": [2], "paused": false}`. A key that is absent has its default, which
means no fault. Peers are identified by node id, by the HOST:PORT of their node port, or, for all
clients of Kafka's protocol, by the word "clients".
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from quorate.quorum.clipped import clipped, quoted
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.rpc.messages import BY_CLASS
from quorate.quorum.seams import Address

Peer = int | str
"""A node id, the HOST:PORT of a node port, or CLIENTS."""
CLIENTS = "clients"
"""The peer at the other end of every link on the listeners for clients."""
MAX_DELAY_MS = 60_000
"""The longest delay that a rule may set."""
MAX_BYTES_PER_S = 1 << 40
MAX_CLOCK_OFFSET_MS = 10 * 365 * 24 * 3_600_000
"""The greatest clock offset, about ten years."""
LINKS = ("nodes", CLIENTS, "all")
"""The allowed values of `slow_links`."""
KINDS = {cls.__name__: kind.number for cls, kind in BY_CLASS.items()}
"""The number of each message type by the name of its class."""
REQUESTS = {
    "".join(word.capitalize() for word in key.name.split("_")) + "Request": key.value
    for key in ApiKey
}
"""The API key of each request of Kafka's protocol by its name, such as FetchRequest."""


class RulesError(ValueError):
    """Fault rules that are not valid. The text names the rule, the given value and the allowed
    values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The faults of one node. Raise RulesError for a value that is not valid.

    Links:

    - `cut`: links to these peers are reset, and new ones fail as unreachable.
    - `hold`: links to these peers stay open but carry nothing; frames are queued. New links wait
      until their timeout.
    - `hold_to`, `hold_from`: the same in one direction: this node's frames do not reach these
      peers, or theirs do not reach this node. New links wait, because a connect needs both ways.
    - `drop`: node messages of these types (names of classes in KINDS) are discarded, in both
      directions. Requests of Kafka's protocol of these kinds (REQUESTS) are discarded when clients
      send them to this node, and when this node sends them.
    - `delay_ms`: each frame is delayed by this time, in each direction.
    - `bytes_per_s`: each link carries at most so many bytes per second in each direction. 0 means
      no limit.
    - `slow_links`: the links that `delay_ms` and `bytes_per_s` affect: those between nodes, those
      of clients, or all.

    Clock and process:

    - `clock_offset_ms`: the node's wall clock differs by this time. Its timers are not affected.
    - `paused`: the node stops running, as under SIGSTOP (faults.py has the limits).

    Disk (disk.py), with absolute paths of files or directories, of which "/" means all:

    - `disk_delay_ms`: each flush takes so much longer.
    - `disk_full`: writes below these paths fail with ENOSPC.
    - `disk_error`: flushes below these paths fail with EIO.

    Rules about a peer by HOST:PORT affect only links that this node opens. By node id they also
    affect links that the peer opens (transport.py).
    """

    cut: tuple[Peer, ...] = ()
    hold: tuple[Peer, ...] = ()
    hold_to: tuple[Peer, ...] = ()
    hold_from: tuple[Peer, ...] = ()
    drop: tuple[str, ...] = ()
    delay_ms: int = 0
    bytes_per_s: int = 0
    slow_links: str = LINKS[0]
    clock_offset_ms: int = 0
    paused: bool = False
    disk_delay_ms: int = 0
    disk_full: tuple[str, ...] = ()
    disk_error: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in PEERS:
            for peer in getattr(self, name):
                allowed = 'a node id, the HOST:PORT of a node\'s port, or "clients"'
                _require(is_peer(peer), name, peer, allowed)
        for message in self.drop:
            known = isinstance(message, str) and (message in KINDS or message in REQUESTS)
            _require(known, "drop", message, f"one of {', '.join(sorted({*KINDS, *REQUESTS}))}")
        for name, (low, high) in NUMBERS.items():
            value = getattr(self, name)
            whole = type(value) is int and low <= value <= high
            _require(whole, name, value, f"a whole number from {low} to {high}")
        for name in PATHS:
            for path in getattr(self, name):
                absolute = isinstance(path, str) and path.startswith("/")
                _require(absolute, name, path, "an absolute path")
        _require(self.slow_links in LINKS, "slow_links", self.slow_links, f"one of {LINKS}")
        _require(type(self.paused) is bool, "paused", self.paused, "true or false")


PEERS = ("cut", "hold", "hold_to", "hold_from")
PATHS = ("disk_full", "disk_error")
NUMBERS = {
    "delay_ms": (0, MAX_DELAY_MS),
    "bytes_per_s": (0, MAX_BYTES_PER_S),
    "clock_offset_ms": (-MAX_CLOCK_OFFSET_MS, MAX_CLOCK_OFFSET_MS),
    "disk_delay_ms": (0, MAX_DELAY_MS),
}
"""The lowest and highest value of each rule that is a number."""


def is_peer(value: object) -> bool:
    """Return True if the value is a node id, a HOST:PORT or CLIENTS."""
    if isinstance(value, str):
        if value == CLIENTS:
            return True
        host, colon, port = value.rpartition(":")
        return bool(host and colon) and port.isdecimal()
    return type(value) is int and value >= 0


def named(
    peers: tuple[Peer, ...], node_id: int | None, address: Address | None, client: bool = False
) -> bool:
    """Return True if the peer with this id or address is in `peers`. None means that the id or the
    address is unknown. `client` is True for a link on a listener for clients."""
    if not peers:
        return False
    if client:
        return CLIENTS in peers
    return (node_id is not None and node_id in peers) or (
        address is not None and str(address) in peers
    )


def covers(paths: tuple[str, ...], path: str) -> bool:
    """Return True if `path` is one of `paths` or lies below one of them."""
    return any(each == "/" or path == each or path.startswith(f"{each}/") for each in paths)


def rules_to_json(rules: Rules) -> str:
    """Return the rules as JSON text."""
    return json.dumps(asdict(rules))


def rules_from_json(text: str | bytes) -> Rules:
    """Return the rules of a JSON text. Raise RulesError if the text does not hold valid rules."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RulesError(f"fault rules: not JSON: {error}") from None
    return rules_from(given)


def rules_from(given: object) -> Rules:
    """Return the rules of a decoded JSON object. Raise RulesError if it holds no valid rules."""
    if not isinstance(given, dict):
        raise RulesError('fault rules: must be an object, as in {"cut": [2]}')
    known = [each.name for each in fields(Rules)]
    for name in given:
        if name not in known:
            raise RulesError(f"fault rules: unknown key {quoted(name)}: must be one of {known}")
    values: dict[str, Any] = dict(given)
    for name in (*PEERS, *PATHS, "drop"):
        if name in values:
            _require(isinstance(values[name], list), name, values[name], "a list")
            values[name] = tuple(values[name])
    return Rules(**values)


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise RulesError(f"fault rules: {name}: value {clipped(repr(value))} must be {rule}")
