"""The configuration of one node: typed values by Kafka's names, with the source of each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quorate.config.listener_keys import prefixed
from quorate.config.listeners import REPLICATION, TLS_PROTOCOLS, Listeners, Voter
from quorate.config.sasl_keys import SaslListener
from quorate.config.setting import Setting

MAX_LOG_DIRS = 100
"""Maximum number of log directories of a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig(Mapping[str, Any]):
    """An immutable mapping from key to typed value, such as `config["broker.session.timeout.ms"]`.

    The fields hold values that are derived from settings. `unknown` holds settings whose names are
    not known, as text. They have no effect. `log_dirs` are absolute paths, in the order of the
    setting, at least one. `metadata_log_dir` is an absolute path, by default the first of them."""

    settings: Mapping[str, Setting]
    unknown: Mapping[str, Setting] = field(default_factory=dict)
    node_id: int
    roles: tuple[str, ...]
    listeners: Listeners
    voters: tuple[Voter, ...] = ()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    sasl: Mapping[str, SaslListener] = field(default_factory=dict)
    """The settings of each listener with SASL, by the name of the listener."""
    # The value of CLUSTER_ID. The cluster id of a formatted directory takes precedence.
    cluster_id: str | None = None

    def __getitem__(self, name: str) -> Any:
        return self.settings[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    @property
    def log_dir(self) -> str:
        """Return the first log directory. A node with one directory has no other."""
        return self.log_dirs[0]

    @property
    def directories(self) -> tuple[str, ...]:
        """Return the log directories, and before them the metadata directory if it is another."""
        return tuple(dict.fromkeys((self.metadata_log_dir, *self.log_dirs)))

    @property
    def is_broker(self) -> bool:
        """Return True if the node has the role of a broker."""
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        """Return True if the node has the role of a controller."""
        return "controller" in self.roles

    @property
    def inter_broker_listener(self) -> str:
        """Return the name of the listener of brokers for other nodes, in upper case as all names of
        listeners."""
        return str(self["inter.broker.listener.name"] or REPLICATION).upper()

    @property
    def node_listeners(self) -> tuple[str, ...]:
        """Return the names of the listeners that nodes connect to, here or on controllers."""
        own = self.listeners.replication
        controllers = (name.upper() for name in self["controller.listener.names"])
        return tuple(dict.fromkeys((*controllers, *([own.name] if own else []))))

    @property
    def node_listeners_do_tls(self) -> bool:
        """Return True if nodes connect to each other with TLS. They have all one protocol."""
        return any(self.listeners.protocol(name) in TLS_PROTOCOLS for name in self.node_listeners)

    @property
    def host_names(self) -> tuple[str, ...]:
        """Return the host names of this node that the Host header of an HTTP request may contain.

        They are the hosts of its advertised listeners, its host in controller.quorum.voters, and
        quorate.http.host.names.
        """
        advertised = (each.host for each in self.listeners.advertised)
        voter = (each.host for each in self.voters if each.id == self.node_id)
        return tuple(dict.fromkeys((*advertised, *voter, *self["quorate.http.host.names"])))

    def of_listener(self, listener: str, key: str) -> Any:
        """Return the value of `key` for a listener: that with the listener's prefix, or else the
        value of the key itself."""
        own = self.settings.get(prefixed(listener, key))
        return self[key] if own is None else own.value

    def origin(self, name: str) -> str:
        """Return the source of the value of a key, as in `Setting`. Raise KeyError if the key is
        unknown."""
        return self.settings[name].origin
