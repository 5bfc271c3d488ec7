"""The keys that one listener can have for itself: `listener.name.<name in lower case>.<key>`.

A key with the prefix takes precedence over the same key without it. A key that no listener obeys
ends the start, because the operator would believe that it protects connections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from quorate.config.key import ConfigError, Key, table
from quorate.config.listeners import PROTOCOL_MAP, SASL_PROTOCOLS, TLS_PROTOCOLS, Listeners
from quorate.config.sasl_keys import PREFIXABLE, WITH_MECHANISM
from quorate.config.setting import Setting
from quorate.config.tls_keys import TLS

PREFIX = "listener.name."

LISTENER_KEYS: Mapping[str, Key] = table(*TLS, *PREFIXABLE, *WITH_MECHANISM)
"""The keys that may have the prefix, by their names without it. Those of a mechanism must
have it."""
PROTOCOLS = {
    **dict.fromkeys((key.name for key in TLS), TLS_PROTOCOLS),
    **dict.fromkeys((key.name for key in (*PREFIXABLE, *WITH_MECHANISM)), SASL_PROTOCOLS),
}
"""The protocols of the listeners that obey a key."""
ENDINGS = tuple(f".{key}" for key in LISTENER_KEYS)
LONGEST = max(map(len, ENDINGS))
MAX_LISTENER_CHARS = 255
"""The maximum length of a listener's name in a prefix. Clients also send such names."""
LISTENER = re.compile(rf"[a-z0-9_.-]{{1,{MAX_LISTENER_CHARS}}}")


def prefixed(listener: str, key: str) -> str:
    """Return the name of `key` with the prefix of `listener`."""
    return f"{PREFIX}{listener.lower()}.{key}"


def split_prefix(name: str) -> tuple[str | None, str]:
    """Return the listener in the prefix of a key, in upper case, and the key without the prefix.
    The listener is None if there is no prefix, or if the key cannot have one."""
    if not name.startswith(PREFIX) or not name.endswith(ENDINGS):
        return None, name
    dot = name.find(".", max(len(PREFIX), len(name) - LONGEST))
    while dot >= 0:
        listener, key = name[len(PREFIX) : dot], name[dot + 1 :]
        if key in LISTENER_KEYS and LISTENER.fullmatch(listener):
            return listener.upper(), key
        dot = name.find(".", dot + 1)
    return None, name


def listener_key(name: str) -> Key | None:
    """Return the key of a name with a prefix, under that name. Return None if `name` has no prefix,
    or if its key cannot have one."""
    listener, key = split_prefix(name)
    return None if listener is None else replace(LISTENER_KEYS[key], name=name)


def check_listener_keys(settings: Mapping[str, Setting], listeners: Listeners) -> None:
    """Raise ConfigError if a key of LISTENER_KEYS is set and no listener obeys it."""
    known = listeners.protocols
    for name, setting in settings.items():
        listener, key = split_prefix(name)
        if setting.is_default or key not in LISTENER_KEYS:
            continue
        if listener is None and setting.value == LISTENER_KEYS[key].default:
            continue
        if listener is not None and listener not in known:
            raise ConfigError(f"{setting.origin}: {name}: must name a listener: {', '.join(known)}")
        protocols = PROTOCOLS[key]
        of_key = known if listener is None else [listener]
        if not any(known[each] in protocols for each in of_key):
            what = "TLS" if protocols is TLS_PROTOCOLS else "SASL"
            raise ConfigError(
                f"{setting.origin}: {name}: must not be set: no listener that it applies to has "
                f"{what}. Set the protocol of one in {PROTOCOL_MAP} to {' or '.join(protocols)}"
            )
