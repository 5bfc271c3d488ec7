"""The keys of TLS that can change while a broker runs: its stores, and its demands on clients.

They are the keys of Kafka's list that exist here. Each needs the prefix of one listener and the id
of one broker, because a certificate is for one node. New connections use the new values. Only the
broker itself can read its files. It therefore tries the values before they are stored
(`quorum/node/peers/tls_trials.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from quorate.config.key import ConfigError, Key, Update
from quorate.config.listener_keys import PREFIX, listener_key, split_prefix
from quorate.config.listeners import PROTOCOL_MAP, TLS_PROTOCOLS
from quorate.config.node_config import NodeConfig
from quorate.config.setting import Setting

DYNAMIC_TLS_KEYS = frozenset(
    (
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    )
)
"""The keys without their prefix."""
ORIGIN = "a dynamic config"


def dynamic_tls_key(name: str) -> Key | None:
    """Return the key of a name with the prefix of a listener, or None if `name` is no such name."""
    if not name.startswith(PREFIX) or split_prefix(name)[1] not in DYNAMIC_TLS_KEYS:
        return None
    key = listener_key(name)
    return None if key is None else replace(key, update=Update.PER_BROKER)


def tls_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the configs whose keys are dynamic keys of TLS."""
    return {name: text for name, text in texts.items() if dynamic_tls_key(name) is not None}


def listeners_of(config: NodeConfig, names: Iterable[str]) -> tuple[str, ...]:
    """Return the listeners in the prefixes of `names`, dynamic keys of TLS, each once.

    Raise ConfigError if one of them is no listener of this node, or has no TLS."""
    found = {name: split_prefix(name)[0] or "" for name in names}
    for name, listener in found.items():
        if not (serves := served(config, listener)) or serves not in TLS_PROTOCOLS:
            what = "has no TLS" if serves else "does not exist on this node"
            raise ConfigError(
                f"{name}: would have no effect, because listener {listener} {what}. A change of "
                f"listeners or of {PROTOCOL_MAP} needs a restart"
            )
    return tuple(dict.fromkeys(found.values()))


def served(config: NodeConfig, listener: str) -> str | None:
    """Return the protocol of a listener of this node, or None if the node has no such listener.
    The map of protocols may also name the listeners of other nodes."""
    of = config.listeners
    own = (*of.client, *of.controller, *([of.replication] if of.replication else []))
    return of.protocol(listener) if any(each.name == listener for each in own) else None


def with_dynamic_tls(config: NodeConfig, settings: Mapping[str, Any]) -> NodeConfig:
    """Return the configuration of a node with the dynamic keys of TLS in `settings`, which has the
    typed values of the node's file and of its dynamic configs."""
    changed = {
        name: Setting(value, None, ORIGIN)
        for name, value in settings.items()
        if dynamic_tls_key(name) is not None
    }
    return replace(config, settings={**config.settings, **changed})
