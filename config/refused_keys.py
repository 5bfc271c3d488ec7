"""Refuses Kafka's properties that would deceive the operator if the node ignored them.

A node that starts with `sasl.jaas.config` seems protected, and is open to every client. Such a
property therefore ends the start with one sentence. Properties whose absence only costs comfort or
speed are accepted and reported (`not_in_effect.py`).

An empty value, and a value that says what the node does anyway, are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from quorate.config.key import ConfigError
from quorate.config.listener_keys import listener_key
from quorate.config.node_keys import NODE_KEYS
from quorate.config.setting import Setting

NO_NODE_SASL = "nodes do not authenticate to each other by SASL"
NO_SASL_CHOICE = "Quorate has no such choice for SASL"
NO_BARE_JAAS = (
    "it must have the prefix listener.name.<listener>.<mechanism>. of one listener and mechanism"
)
NO_CLASSES = "Quorate loads no Java classes"
NOT_OURS = "Quorate does TLS with OpenSSL and has no such choice"
NO_HOST_NAMES = "nodes know each other by the URIs in their certificates and compare no host names"
NO_PROTOCOL = "listener.security.protocol.map names the protocol of the listeners of nodes"
NO_PLUGINS = "there are no plug-ins, so no policy would be applied"
JWT_VALIDATORS = tuple(
    f"org.apache.kafka.common.security.oauthbearer.{each}JwtValidator"
    for each in ("Default", "Broker")
)

PROTOCOL = "security.inter.broker.protocol"
DECEIVING = (
    # (pattern of the whole name, values that are accepted, reason)
    (r"(listener\.name\..+\.)?ssl\.endpoint\.identification\.algorithm", ("https",), NO_HOST_NAMES),
    (r"(listener\.name\..+\.)?ssl\.protocol", ("TLSv1.3",), NOT_OURS),
    (r"(listener\.name\..+\.)?ssl\.keymanager\.algorithm", ("SunX509", "PKIX"), NOT_OURS),
    (r"(listener\.name\..+\.)?ssl\.trustmanager\.algorithm", ("PKIX",), NOT_OURS),
    (r"(listener\.name\..+\.)?ssl\..+", (), NOT_OURS),
    (r"(.+\.)?sasl\.jaas\.config", (), NO_BARE_JAAS),
    (r"(plain|scram-sha-(256|512)|oauthbearer)\..+", (), NO_BARE_JAAS),
    (r"sasl\.mechanism\.(inter\.broker|controller)\.protocol", (), NO_NODE_SASL),
    (r"(.+\.)?sasl\.oauthbearer\.jwt\.validator\.class", JWT_VALIDATORS, NO_CLASSES),
    (r"sasl\..+", (), NO_SASL_CHOICE),
    (r"listener\.name\..+\.sasl\..+", (), NO_SASL_CHOICE),
    (r"(listener\.name\..+\.)?principal\.builder\.class", (), NO_CLASSES),
    (r"security\.inter\.broker\.protocol", ("PLAINTEXT",), NO_PROTOCOL),
    (r"security\.providers", (), NO_CLASSES),
    (r"delegation\.token\.secret\.key", (), "there are no delegation tokens"),
    (r"create\.topic\.policy\.class\.name", (), NO_PLUGINS),
    (r"alter\.config\.policy\.class\.name", (), NO_PLUGINS),
    (r"client\.quota\.callback\.class", (), NO_PLUGINS),
    (
        r"remote\.log\.storage\.system\.enable",
        ("false",),
        "there is no tiered storage, so all records would stay on the local disk",
    ),
)
"""The refused properties. The first pattern that matches decides. Keys that have an effect are not
refused, even if a pattern matches. Values are compared without regard to case and surrounding
blanks."""

_PATTERNS = tuple((re.compile(pattern), values, why) for pattern, values, why in DECEIVING)


def why_refused(name: str, text: str) -> str | None:
    """Return the reason for which a node refuses to start with this property, or None if it does
    not refuse it."""
    value = text.strip().lower()
    found = _row(name)
    if found is None or not value or value in map(str.lower, found[0]):
        return None
    if listener_key(name.lower()) is not None:
        return f"the prefix of a listener is in lower case. Set {name.lower()}"
    return found[1]


def may_be_refused(name: str) -> bool:
    """Return True if `DECEIVING` lists the property, so that only some of its values are
    accepted."""
    return _row(name) is not None


def _row(name: str) -> tuple[tuple[str, ...], str] | None:
    """Return the accepted values and the reason of a property, or None if it is a key."""
    if name in NODE_KEYS or listener_key(name) is not None:
        return None
    rows = ((values, why) for pattern, values, why in _PATTERNS if pattern.fullmatch(name))
    return next(rows, None)


def refuse_deceiving(settings: Mapping[str, Setting]) -> None:
    """Raise ConfigError, with the source, for the first setting that `DECEIVING` lists, or if the
    listener between brokers is named in two ways, as in Kafka."""
    both = settings.get("inter.broker.listener.name"), settings.get(PROTOCOL)
    if all(each is not None and each.text for each in both):
        raise ConfigError(
            f"{settings[PROTOCOL].origin}: {PROTOCOL}: must not be set together with "
            "inter.broker.listener.name"
        )
    for name, setting in settings.items():
        reason = why_refused(name, setting.text or "")
        if reason is not None:
            raise ConfigError(f"{setting.origin}: {name}: must not be set: {reason}")
