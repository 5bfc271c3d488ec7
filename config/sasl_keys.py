"""The configuration keys of SASL listeners, and the settings of each of these listeners.

The keys in PREFIXABLE may have the prefix of one listener, `listener.name.<name in lower case>.`. A
key with the prefix takes precedence over the same key without it. The JAAS value of a mechanism
must have it: `listener.name.<name>.<mechanism in lower case>.sasl.jaas.config`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quorate.config.jaas import PLAIN_MODULE, SCRAM_MODULE, LoginModule, parse_jaas
from quorate.config.key import ConfigError, Key, Kind, at_least

PLAIN = "PLAIN"
MODULES = {PLAIN: PLAIN_MODULE, "SCRAM-SHA-256": SCRAM_MODULE, "SCRAM-SHA-512": SCRAM_MODULE}
"""The supported mechanisms, with the login module of each."""
ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
PLAIN_USER = "user_"
"""The prefix of an option of PlainLoginModule that names a user. Its value is the password."""
OWN_IDENTITY = ("username", "password")
"""Options with which a broker of Kafka connects to others. Nodes of Quorate do not use SASL."""

PREFIXABLE = (
    Key(
        ENABLED,
        Kind.LIST,
        ("GSSAPI",),
        f"The mechanisms by which clients may authenticate: {', '.join(MODULES)}. The default is "
        "not supported, so every SASL listener needs a value.",
    ),
    Key(
        "sasl.server.max.receive.size",
        Kind.INT,
        512 << 10,
        "The largest frame that a client may send before it is authenticated.",
        at_least(1),
    ),
    Key(
        "connections.max.reauth.ms",
        Kind.LONG,
        0,
        "The time after which a client must authenticate again, or its connection is closed. "
        "0: never.",
        at_least(0),
    ),
)
"""The keys that may have the prefix of a listener."""
FAILURE_DELAY = Key(
    "connection.failed.authentication.delay.ms",
    Kind.INT,
    100,
    "The time after which a failed authentication is answered and its connection closed.",
    at_least(0),
)
SASL = (*PREFIXABLE, FAILURE_DELAY)
JAAS_KEYS = tuple(
    Key(
        f"{name.lower()}.{JAAS}",
        Kind.PASSWORD,
        None,
        f"The login module of {name} on one listener. That of PLAIN names the users.",
    )
    for name in MODULES
)
"""The keys of the JAAS values, without the prefix of the listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslListener:
    """The settings of one SASL listener. `plain_users` maps the users of PLAIN to passwords."""

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_receive_bytes: int
    max_reauth_ms: int


def sasl_listeners(
    settings: Mapping[str, Any], protocols: Mapping[str, str], sasl_protocols: Sequence[str]
) -> dict[str, SaslListener]:
    """Return the settings of each listener whose protocol is in `sasl_protocols`.

    `settings` are those of the node by name, and `protocols` those of the listeners. Raise
    ConfigError, prefixed with the source, if a value is not supported."""
    return {
        name: sasl_listener(settings, name)
        for name, protocol in protocols.items()
        if protocol in sasl_protocols
    }


def sasl_listener(settings: Mapping[str, Any], name: str) -> SaslListener:
    """Return the settings of one listener. Raise ConfigError, prefixed with the source."""
    prefix = f"listener.name.{name.lower()}."

    def of(key: str) -> Any:
        return settings.get(prefix + key, settings[key])

    enabled = of(ENABLED)
    unsupported = [each for each in enabled.value if each not in MODULES]
    if unsupported or not enabled.value:
        raise ConfigError(
            f"{enabled.origin}: {ENABLED}: value {','.join(enabled.value)!r} of listener {name} "
            f"must be some of {', '.join(MODULES)}"
        )
    users: dict[str, str] = {}
    for mechanism in MODULES:
        key = f"{prefix}{mechanism.lower()}.{JAAS}"
        setting = settings.get(key)
        if setting is None:
            continue
        if mechanism not in enabled.value:
            raise ConfigError(
                f"{setting.origin}: {key}: must not be set: {ENABLED} of listener {name} does not "
                f"contain {mechanism}"
            )
        try:
            users.update(plain_users(key, mechanism, parse_jaas(key, setting.text)))
        except ConfigError as error:
            raise ConfigError(f"{setting.origin}: {error}") from None
    if PLAIN in enabled.value and not users:
        raise ConfigError(
            f"{enabled.origin}: {prefix}plain.{JAAS}: must be set and name a user, as in "
            f'{PLAIN_MODULE} required user_NAME="PASSWORD";'
        )
    return SaslListener(
        mechanisms=enabled.value,
        plain_users=users,
        max_receive_bytes=of("sasl.server.max.receive.size").value,
        max_reauth_ms=of("connections.max.reauth.ms").value,
    )


def plain_users(key: str, mechanism: str, module: LoginModule) -> dict[str, str]:
    """Return the users that the login module of a mechanism names. Raise ConfigError if it is
    another module, or has an option without an effect."""
    if module.name != MODULES[mechanism]:
        raise ConfigError(f"{key}: value [hidden] must begin with {MODULES[mechanism]}")
    users = {}
    for option, value in module.options.items():
        name = option.removeprefix(PLAIN_USER)
        if mechanism == PLAIN and name != option and name and value:
            users[name] = value
        elif option not in OWN_IDENTITY:
            allowed = f"{PLAIN_USER}NAME with a password" if mechanism == PLAIN else "none"
            raise ConfigError(
                f"{key}: value [hidden] has an option without an effect. Allowed: {allowed}"
            )
    return users
