"""The fault rules of a node: the state of its links, and whether it is paused.

`Rules` is a value, and `Faults.apply` replaces all rules in force. Rules travel to nodes of other
processes as JSON: `{"cut": [2], "paused": false}`. A key that is absent has its default, which
means no fault. Peers are identified by node id or by the HOST:PORT of their node port.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from quorate.quorum.clipped import clipped, quoted
from quorate.quorum.rpc.messages import BY_CLASS
from quorate.quorum.seams import Address

Peer = int | str
"""A node id, or the HOST:PORT of a node port."""
MAX_DELAY_MS = 60_000
"""The longest delay that a rule may set."""
KINDS = {cls.__name__: kind.number for cls, kind in BY_CLASS.items()}
"""The number of each message type by the name of its class."""


class RulesError(ValueError):
    """Fault rules that are not valid. The text names the rule, the given value and the allowed
    values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The faults of one node. Raise RulesError for a value that is not valid.

    - `cut`: links to these peers are reset, and new ones fail as unreachable.
    - `hold`: links to these peers stay open but carry nothing; frames are queued. New links wait
      until their timeout.
    - `drop`: node messages of these types (names of classes) are discarded, in both directions.
      Kafka's messages, also those between nodes, are not affected.
    - `delay_ms`: each frame is delayed by this time, in each direction, on links of node messages
      and on all links that this node opens.
    - `paused`: the node stops running, as under SIGSTOP (faults.py has the limits).

    `cut` and `hold` by HOST:PORT affect only links that this node opens. By node id they also
    affect message links that the peer opens (transport.py).
    """

    cut: tuple[Peer, ...] = ()
    hold: tuple[Peer, ...] = ()
    drop: tuple[str, ...] = ()
    delay_ms: int = 0
    paused: bool = False

    def __post_init__(self) -> None:
        for name in ("cut", "hold"):
            for peer in getattr(self, name):
                _require(is_peer(peer), name, peer, "a node id or the HOST:PORT of a node's port")
        for message in self.drop:
            known = isinstance(message, str) and message in KINDS
            _require(known, "drop", message, f"one of {', '.join(sorted(KINDS))}")
        delay_ms = self.delay_ms
        whole = type(delay_ms) is int and 0 <= delay_ms <= MAX_DELAY_MS
        _require(whole, "delay_ms", delay_ms, f"a whole number from 0 to {MAX_DELAY_MS}")
        _require(type(self.paused) is bool, "paused", self.paused, "true or false")


def is_peer(value: object) -> bool:
    """Return True if the value is a node id or a HOST:PORT."""
    if isinstance(value, str):
        host, colon, port = value.rpartition(":")
        return bool(host and colon) and port.isdecimal()
    return type(value) is int and value >= 0


def named(peers: tuple[Peer, ...], node_id: int | None, address: Address | None) -> bool:
    """Return True if the peer with this id or address is in `peers`. None means that the id or the
    address is unknown."""
    if not peers:
        return False
    return (node_id is not None and node_id in peers) or (
        address is not None and str(address) in peers
    )


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
    for name in ("cut", "hold", "drop"):
        if name in values:
            _require(isinstance(values[name], list), name, values[name], "a list")
            values[name] = tuple(values[name])
    return Rules(**values)


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise RulesError(f"fault rules: {name}: value {clipped(repr(value))} must be {rule}")
