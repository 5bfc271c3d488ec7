"""The settings of one node: typed values by Kafka's names, each with where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from quorate.config.listeners import Listeners, Voter

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Setting:
    """`text` is Kafka's text; `origin` is "default", "FILE:LINE", "environment NAME" or
    "override"."""

    value: Any
    text: str | None
    origin: str = DEFAULT

    @property
    def is_default(self) -> bool:
        return self.origin == DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig(Mapping[str, Any]):
    """`config["broker.session.timeout.ms"]` is the typed value; what follows is derived from such
    values.

    `unknown` holds the settings of names that are not ours, as text: kept, without effect."""

    settings: Mapping[str, Setting]
    unknown: Mapping[str, Setting] = field(default_factory=dict)
    node_id: int
    roles: tuple[str, ...]
    listeners: Listeners
    voters: tuple[Voter, ...] = ()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    log_dir: str
    metadata_log_dir: str
    cluster_id: str | None = None  # what CLUSTER_ID says; a formatted directory holds the truth

    def __getitem__(self, name: str) -> Any:
        return self.settings[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)

    def __len__(self) -> int:
        return len(self.settings)

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names of this node, with which a Host header may ask for its HTTP.

        They are the hosts of its advertised listeners, its host in controller.quorum.voters, and
        quorate.http.host.names."""
        advertised = (each.host for each in self.listeners.advertised)
        voter = (each.host for each in self.voters if each.id == self.node_id)
        return tuple(dict.fromkeys((*advertised, *voter, *self["quorate.http.host.names"])))

    def origin(self, name: str) -> str:
        return self.settings[name].origin
