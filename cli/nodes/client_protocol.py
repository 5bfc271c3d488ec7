"""The check that a command can connect to the listeners that the brokers have for clients.

A command that connects to every broker of its own cluster knows their configs. It is refused before
anything starts if its connections would have another security protocol."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.cli.client.errors import Refused
from quorate.config.listeners import Listener, Listeners
from quorate.config.node_config import NodeConfig


def listener_of_commands(listeners: Listeners) -> Listener:
    """Return the listener whose address cluster.json names: the first one for clients, or that of
    a node which is only a controller."""
    return (listeners.client or listeners.controller)[0]


def refuse_other_protocol(configs: Iterable[NodeConfig], protocol: str, remedy: str) -> None:
    """Raise Refused if the first listener for clients of any broker has another security protocol
    than `protocol`. The error ends with `remedy`."""
    for config in configs:
        if not config.is_broker:
            continue
        name = listener_of_commands(config.listeners).name
        found = config.listeners.protocol(name)
        if found != protocol:
            raise Refused(
                f"listener {name} of broker {config.node_id} has the protocol {found}, and this "
                f"command connects with {protocol}. {remedy}"
            )
