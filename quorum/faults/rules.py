"""The rules of a node's faults: what is wrong with its links, and whether it stands still.

A value: `Faults.apply` puts a whole new one in force. As JSON, `{"cut": [2], "paused": false}`, it
is sent to nodes of other processes; what is not named there is at its default, that is, in order.
Peers are named by node id or by the HOST:PORT of their node-to-node port.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from quorate.quorum.clipped import clipped, quoted
from quorate.quorum.rpc.messages import BY_CLASS
from quorate.quorum.seams import Address

Peer = int | str
MAX_DELAY_MS = 60_000
KINDS = {cls.__name__: kind.number for cls, kind in BY_CLASS.items()}


class RulesError(ValueError):
    """Names the rule that is wrong, what was given, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`cut`: links to these peers are reset, new ones fail as unreachable. `hold`: links to these
    stay open and carry nothing, new ones hang until their timeout; what was sent queues. `drop`:
    messages of these types vanish on node links, both ways. `delay_ms`: each frame on node links
    takes so much longer, each way. `paused`: the node stands still as under SIGSTOP."""

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
    if isinstance(value, str):
        host, colon, port = value.rpartition(":")
        return bool(host and colon) and port.isdigit()
    return type(value) is int and value >= 0


def named(peers: tuple[Peer, ...], node_id: int | None, address: Address | None) -> bool:
    """Is the peer with this id or address among them? Either may be unknown."""
    if not peers:
        return False
    return (node_id is not None and node_id in peers) or (
        address is not None and str(address) in peers
    )


def rules_to_json(rules: Rules) -> str:
    return json.dumps(asdict(rules))


def rules_from_json(text: str | bytes) -> Rules:
    """Raise RulesError for anything that is no JSON of rules."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RulesError(f"fault rules: not JSON: {error}") from None
    return rules_from(given)


def rules_from(given: object) -> Rules:
    """Return the rules of a decoded JSON value. Raise RulesError for any other value."""
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
