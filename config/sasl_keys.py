"""The configuration keys of SASL listeners, and the settings of each of these listeners.

The keys in PREFIXABLE may have the prefix of one listener, `listener.name.<name in lower case>.`. A
key with the prefix takes precedence over the same key without it. The keys in WITH_MECHANISM must
have the prefix of a listener and a mechanism, as in
`listener.name.<name>.<mechanism in lower case>.sasl.jaas.config`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from quorate.config import oauthbearer_keys
from quorate.config.jaas import (
    OAUTHBEARER_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    LoginModule,
    parse_jaas,
)
from quorate.config.key import ConfigError, Key, Kind, at_least
from quorate.config.oauthbearer_keys import (
    OAUTHBEARER,
    OAuthBearerSettings,
    oauthbearer_settings,
    truststore_options,
)
from quorate.config.setting import Setting

PLAIN = "PLAIN"
MODULES = {
    PLAIN: PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    OAUTHBEARER: OAUTHBEARER_MODULE,
}
"""The supported mechanisms, with the login module of each."""
ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
PLAIN_USER = "user_"
"""The prefix of an option of PlainLoginModule that names a user. Its value is the password."""
OWN_IDENTITY = ("username", "password")
"""Options with which a broker of Kafka connects to others. Nodes of Quorate do not use SASL."""

MAX_REAUTH = Key(
    "connections.max.reauth.ms",
    Kind.LONG,
    0,
    "The time after which a client must authenticate again, or its connection is closed. 0: never, "
    "or when its token expires. It may have the prefix of a listener and a mechanism.",
    at_least(0),
)
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
    MAX_REAUTH,
    *oauthbearer_keys.KEYS,
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
WITH_MECHANISM = (
    *(
        Key(
            f"{name.lower()}.{JAAS}",
            Kind.PASSWORD,
            None,
            f"The login module of {name} on one listener. That of PLAIN names the users.",
        )
        for name in MODULES
    ),
    *(
        replace(MAX_REAUTH, name=f"{name.lower()}.{MAX_REAUTH.name}", default=None)
        for name in MODULES
    ),
    *oauthbearer_keys.WITH_MECHANISM,
)
"""The keys that must have the prefix of a listener and a mechanism, without that of the
listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslListener:
    """The settings of one SASL listener. `plain_users` maps the users of PLAIN to passwords, and
    `max_reauth_ms` each mechanism to its longest session. `oauthbearer` is None if the listener
    does not have that mechanism."""

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_receive_bytes: int
    max_reauth_ms: Mapping[str, int]
    oauthbearer: OAuthBearerSettings | None = None


def sasl_listeners(
    settings: Mapping[str, Setting], protocols: Mapping[str, str], sasl_protocols: Sequence[str]
) -> dict[str, SaslListener]:
    """Return the settings of each listener whose protocol is in `sasl_protocols`.

    `settings` are those of the node by name, and `protocols` those of the listeners. Raise
    ConfigError, prefixed with the source, if a value is not supported, or has no effect."""
    found = {
        name: sasl_listener(settings, name)
        for name, protocol in protocols.items()
        if protocol in sasl_protocols
    }
    if not any(each.oauthbearer for each in found.values()):
        refuse_unused(settings, {each.name for each in oauthbearer_keys.KEYS}, "any listener")
    return found


def sasl_listener(settings: Mapping[str, Setting], name: str) -> SaslListener:
    """Return the settings of one listener. Raise ConfigError, prefixed with the source."""
    prefix = f"listener.name.{name.lower()}."

    def of(key: str) -> Setting:
        return settings.get(prefix + key, settings[key])

    enabled = of(ENABLED)
    unsupported = [each for each in enabled.value if each not in MODULES]
    if unsupported or not enabled.value:
        raise ConfigError(
            f"{enabled.origin}: {ENABLED}: value {','.join(enabled.value)!r} of listener {name} "
            f"must be some of {', '.join(MODULES)}"
        )
    refuse_other_mechanisms(settings, name, enabled.value)
    users: dict[str, str] = {}
    truststore: dict[str, str] = {}
    for mechanism in enabled.value:
        key = f"{prefix}{mechanism.lower()}.{JAAS}"
        setting = settings.get(key)
        if setting is None:
            continue
        try:
            module = login_module(key, mechanism, setting.text or "")
            if mechanism == OAUTHBEARER:
                truststore = truststore_options(key, module)
            else:
                users.update(plain_users(key, mechanism, module))
        except ConfigError as error:
            raise ConfigError(f"{setting.origin}: {error}") from None
    if PLAIN in enabled.value and not users:
        raise ConfigError(
            f"{enabled.origin}: {prefix}plain.{JAAS}: must be set and name a user, as in "
            f'{PLAIN_MODULE} required user_NAME="PASSWORD";'
        )
    max_reauth = MAX_REAUTH.name
    return SaslListener(
        mechanisms=enabled.value,
        plain_users=users,
        max_receive_bytes=of("sasl.server.max.receive.size").value,
        max_reauth_ms={
            each: settings.get(f"{prefix}{each.lower()}.{max_reauth}", of(max_reauth)).value
            for each in enabled.value
        },
        oauthbearer=(
            oauthbearer_settings(settings, name, truststore)
            if OAUTHBEARER in enabled.value
            else None
        ),
    )


def refuse_other_mechanisms(
    settings: Mapping[str, Setting], listener: str, enabled: Sequence[str]
) -> None:
    """Raise ConfigError if a key is set for a mechanism that the listener does not have."""
    prefix = f"listener.name.{listener.lower()}."
    for mechanism in MODULES:
        if mechanism in enabled:
            continue
        own = f"{mechanism.lower()}."
        names = {prefix + each.name for each in WITH_MECHANISM if each.name.startswith(own)}
        if mechanism == OAUTHBEARER:
            names |= {prefix + each.name for each in oauthbearer_keys.KEYS}
        refuse_unused(settings, names, f"listener {listener}", mechanism)


def refuse_unused(
    settings: Mapping[str, Setting], names: set[str], where: str, mechanism: str = OAUTHBEARER
) -> None:
    """Raise ConfigError if one of the keys `names` is set, because `where` does not have the
    mechanism."""
    for name in sorted(names):
        setting = settings.get(name)
        if setting is not None and not setting.is_default:
            raise ConfigError(
                f"{setting.origin}: {name}: must not be set: {ENABLED} of {where} does not "
                f"contain {mechanism}"
            )


def login_module(key: str, mechanism: str, text: str) -> LoginModule:
    """Return the login module of a mechanism. Raise ConfigError if it is another one, or if the
    text is no JAAS value."""
    module = parse_jaas(key, text)
    if module.name != MODULES[mechanism]:
        raise ConfigError(f"{key}: value [hidden] must begin with {MODULES[mechanism]}")
    return module


def plain_users(key: str, mechanism: str, module: LoginModule) -> dict[str, str]:
    """Return the users that the login module of a mechanism names. Raise ConfigError if it has an
    option without an effect."""
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
