"""Parses listeners, advertised listeners and voters.

A broker has listeners for clients, and one listener that only other nodes use. A controller has
controller listeners.

The listener for other nodes is separate, because node-to-node messages are not Kafka's
(docs/differences.md). It is the listener that inter.broker.listener.name names. The default name is
REPLICATION. If no listener has this name, or if it is the broker's only listener, a listener
REPLICATION on a free port of the same host is added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address

from quorate.config.key import ConfigError, is_number

REPLICATION = "REPLICATION"
PLAINTEXT = "PLAINTEXT"
SSL = "SSL"
SASL_PLAINTEXT = "SASL_PLAINTEXT"
SASL_SSL = "SASL_SSL"
PROTOCOL_CODES = {PLAINTEXT: 0, SSL: 1, SASL_PLAINTEXT: 2, SASL_SSL: 3}
"""The supported security protocols, with Kafka's codes in the metadata."""
TLS_PROTOCOLS = (SSL, SASL_SSL)
SASL_PROTOCOLS = (SASL_PLAINTEXT, SASL_SSL)
PROTOCOL_MAP = "listener.security.protocol.map"
MAX_PORT = 65_535
LISTENER = re.compile(r"^([A-Za-z0-9_.-]+)://(\[[0-9A-Fa-f:.]+\]|[^:/\[\]]*):([0-9]{1,5})$")
SERVER = re.compile(r"^(\[[0-9A-Fa-f:.]+\]|[^:/@\[\]]+):([0-9]{1,5})$")
META_ADDRESSES = ("0.0.0.0", "::")
"""The addresses that bind every interface. No client can connect to them."""
WILDCARDS = ("", *META_ADDRESSES)


@dataclass(frozen=True, slots=True)
class Listener:
    """A named address. A host of "", 0.0.0.0 or :: binds every interface. Port 0 takes a free
    port."""

    name: str
    host: str
    port: int

    @property
    def wildcard(self) -> bool:
        """Return True if the listener binds every interface."""
        return self.host in WILDCARDS

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Voter:
    """One voter in controller.quorum.voters."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """The listeners of a node by use, and the advertised address of each of them.

    `replication` is the listener for other nodes; a node that is no broker has none."""

    client: tuple[Listener, ...] = ()
    controller: tuple[Listener, ...] = ()
    replication: Listener | None = None
    advertised: tuple[Listener, ...] = ()
    protocols: Mapping[str, str] = field(default_factory=dict)
    """The security protocol of each listener by name. A listener without an entry is PLAINTEXT."""

    def advertisement(self, name: str) -> Listener | None:
        """Return the advertised address of a listener, or None."""
        return next((each for each in self.advertised if each.name == name), None)

    def protocol(self, name: str) -> str:
        """Return the security protocol of a listener."""
        return self.protocols.get(name, PLAINTEXT)

    @property
    def with_tls(self) -> tuple[str, ...]:
        """Return the names of the listeners that do TLS."""
        return tuple(name for name, each in self.protocols.items() if each in TLS_PROTOCOLS)


def is_loopback(host: str) -> bool:
    """Return True if only processes of this machine can connect to `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refused(key: str, text: str, allowed: str) -> ConfigError:
    """Return a ConfigError that says what the value must be."""
    return ConfigError(f"{key}: value {text!r} must be {allowed}")


def parse_listeners(key: str, text: str) -> tuple[Listener, ...]:
    """Return the listeners in "NAME://host:port,...". Names become upper case. Port 0 is allowed.

    Raise ConfigError if one is malformed or a name occurs twice."""
    found: list[Listener] = []
    for item in (part.strip() for part in text.split(",")):
        match = LISTENER.match(item)
        if match is None or int(match[3]) > MAX_PORT:
            raise refused(key, item, "NAME://host:port, with a port up to 65535")
        listener = Listener(match[1].upper(), match[2].strip("[]"), int(match[3]))
        if any(listener.name == other.name for other in found):
            raise refused(key, text, f"a list in which each name occurs once ({listener.name})")
        found.append(listener)
    return tuple(found)


def parse_servers(key: str, items: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return (host, port) for each "host:port". Raise ConfigError if one is malformed, or if a port
    is not from 1 to 65535."""
    found = []
    for item in items:
        match = SERVER.match(item)
        if match is None or not 0 < int(match[2]) <= MAX_PORT:
            raise refused(key, item, "host:port, with a port from 1 to 65535")
        found.append((match[1].strip("[]"), int(match[2])))
    return tuple(found)


def parse_voters(key: str, items: Sequence[str]) -> tuple[Voter, ...]:
    """Return the voters in "id@host:port", sorted by id.

    Raise ConfigError if one is malformed or an id occurs twice."""
    found: list[Voter] = []
    for item in items:
        number, _, server = item.partition("@")
        if not is_number(number) or not SERVER.match(server):
            raise refused(key, item, "id@host:port")
        ((host, port),) = parse_servers(key, [server])
        if any(int(number) == other.id for other in found):
            raise refused(key, item, "a voter whose id occurs only once")
        found.append(Voter(int(number), host, port))
    return tuple(sorted(found, key=lambda voter: voter.id))


def resolve_protocols(
    listeners: Sequence[Listener],
    node_names: Sequence[str],
    protocols: str,
    *,
    is_set: bool,
) -> Mapping[str, str]:
    """Return the security protocol of each of `listeners`, those of the node's property, and of
    `node_names`.

    `node_names` are the listeners that other nodes connect to, here or on controllers: they are
    all PLAINTEXT or all SSL. `protocols` is listener.security.protocol.map. If it is set
    (`is_set`), it must name every listener, as in Kafka, except an implied REPLICATION, which has
    the protocol of the other `node_names`. The default map does not name other listeners, which are
    PLAINTEXT. The result also has the other listeners that the map names if it is set. Raise
    ConfigError for a protocol that is not supported."""
    by_name = split_protocol_map(protocols)
    for name, given in by_name.items():
        if given not in PROTOCOL_CODES:
            raise ConfigError(
                f"{PROTOCOL_MAP}: value {given!r} of listener {name} must be "
                f"{' or '.join(PROTOCOL_CODES)} (others are not supported)"
            )
    bound = {each.name for each in listeners}
    nodes = {name.upper() for name in node_names}
    of_nodes = next((by_name[name] for name in sorted(nodes) if name in by_name), PLAINTEXT)
    found = dict(by_name) if is_set else {}
    for name in sorted(bound | nodes):
        protocol = by_name.get(name)
        if protocol is None and is_set and (name in bound or name != REPLICATION):
            raise ConfigError(f"{PROTOCOL_MAP}: value {protocols!r} must name listener {name}")
        found[name] = protocol = protocol or (of_nodes if name in nodes else PLAINTEXT)
        if name in nodes and protocol not in (PLAINTEXT, SSL):
            raise ConfigError(
                f"{PROTOCOL_MAP}: value {protocol!r} of listener {name} must be "
                f"{PLAINTEXT} or {SSL} (other nodes use it)"
            )
    if len({found[name] for name in nodes}) > 1:
        raise ConfigError(
            f"{PROTOCOL_MAP}: value {protocols!r} must give {' and '.join(sorted(nodes))} the same "
            "protocol, because nodes connect to all of them"
        )
    return found


def resolve_listeners(
    *,
    listeners: str,
    advertised: str | None,
    controller_names: Sequence[str],
    inter_broker_name: str | None,
    roles: Sequence[str],
    hostname: str,
) -> Listeners:
    """Return the listeners of a node by use.

    A listener without an entry in `advertised` advertises its own address. If it binds every
    interface, or its entry has no host, it advertises the first host in `advertised`, or
    `hostname`. Raise ConfigError if the listeners do not fit the roles or each other, or if
    `advertised` has the address of no host."""
    bound = parse_listeners("listeners", listeners)
    names = {name.upper() for name in controller_names}
    controller = tuple(each for each in bound if each.name in names)
    others = tuple(each for each in bound if each.name not in names)
    check_roles(listeners, roles, controller, others)
    by_name = (
        {each.name: each for each in parse_listeners("advertised.listeners", advertised)}
        if advertised
        else {}
    )
    replication = None
    if "broker" in roles:
        others, replication = set_replication_apart(others, inter_broker_name)
    public = [*others, *controller, *([replication] if replication else [])]
    for name, entry in by_name.items():
        if name not in {each.name for each in public}:
            raise refused("advertised.listeners", name, "a name that listeners contains")
        if entry.host in META_ADDRESSES:
            raise refused(
                "advertised.listeners",
                str(entry),
                "an address to which clients can connect, which the meta-address is not",
            )
    fallback = next((each.host for each in by_name.values() if not each.wildcard), hostname)
    return Listeners(
        client=others,
        controller=controller,
        replication=replication,
        advertised=tuple(
            replace(each, host=fallback) if each.wildcard else each
            for each in (by_name.get(each.name, each) for each in public)
        ),
    )


def check_roles(
    text: str,
    roles: Sequence[str],
    controller: Sequence[Listener],
    others: Sequence[Listener],
) -> None:
    """Raise ConfigError if the listeners do not fit the roles of the node."""
    if "controller" in roles and not controller:
        raise refused("listeners", text, "a list with a listener of controller.listener.names")
    if "broker" in roles and not others:
        raise refused("listeners", text, "a list with a listener for clients")
    if "controller" not in roles and controller:
        raise refused("listeners", text, "free of controller listeners when the node is a broker")
    if "broker" not in roles and others:
        raise refused("listeners", text, "controller listeners only when the node is a controller")


def set_replication_apart(
    others: tuple[Listener, ...], inter_broker_name: str | None
) -> tuple[tuple[Listener, ...], Listener]:
    """Return (client listeners, replication listener).

    The replication listener is the one that `inter_broker_name` names; None means REPLICATION. If
    it is missing, or is the only listener, a new one on a free port is returned. The name of a new
    one is REPLICATION. Raise ConfigError if any other listener than REPLICATION is missing."""
    chosen = (inter_broker_name or REPLICATION).upper()
    named = next((each for each in others if each.name == chosen), None)
    if named is None and inter_broker_name and chosen != REPLICATION:
        raise refused("inter.broker.listener.name", inter_broker_name, "a name of listeners")
    if named is None or len(others) == 1:
        return others, Listener(REPLICATION, others[0].host, 0)
    return tuple(each for each in others if each is not named), named


def split_protocol_map(text: str) -> Mapping[str, str]:
    """Return the protocol of each listener name, both in upper case."""
    pairs = (item.partition(":") for item in text.split(",") if item.strip())
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}
