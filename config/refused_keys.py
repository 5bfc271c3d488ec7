"""Refuses Kafka's properties that would deceive the operator if the node ignored them.

A node that starts with `authorizer.class.name` seems protected, and is open to every client. Such a
property therefore ends the start with one sentence. Properties whose absence only costs comfort or
speed are accepted and reported (`not_in_effect.py`).

An empty value, and a value that says what the node does anyway, are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from quorate.config.key import ConfigError
from quorate.config.node_config import Setting

NO_ACLS = "there are no ACLs, so every client may do everything"
NO_AUTHENTICATION = "there is neither TLS nor SASL, so every connection is open and unencrypted"
NO_PLUGINS = "there are no plug-ins, so no policy would be applied"

PROTOCOL = "security.inter.broker.protocol"
DECEIVING = (
    # (pattern of the whole name, values that are accepted, reason)
    (r"authorizer\.class\.name", (), NO_ACLS),
    (r"super\.users", (), NO_ACLS),
    (r"allow\.everyone\.if\.no\.acl\.found", ("true",), NO_ACLS),
    (r"ssl\..+", (), NO_AUTHENTICATION),
    (r"sasl\..+", (), NO_AUTHENTICATION),
    (r"listener\.name\..+\.(ssl|sasl)\..+", (), NO_AUTHENTICATION),
    (r"(listener\.name\..+\.)?principal\.builder\.class", (), NO_AUTHENTICATION),
    (r"(listener\.name\..+\.)?connections\.max\.reauth\.ms", ("0",), NO_AUTHENTICATION),
    (r"security\.inter\.broker\.protocol", ("PLAINTEXT",), NO_AUTHENTICATION),
    (r"security\.providers", (), NO_AUTHENTICATION),
    (r"delegation\.token\.secret\.key", (), NO_AUTHENTICATION),
    (r"create\.topic\.policy\.class\.name", (), NO_PLUGINS),
    (r"alter\.config\.policy\.class\.name", (), NO_PLUGINS),
    (r"client\.quota\.callback\.class", (), NO_PLUGINS),
    (
        r"remote\.log\.storage\.system\.enable",
        ("false",),
        "there is no tiered storage, so all records would stay on the local disk",
    ),
)
"""The refused properties. Values are compared without regard to case and surrounding blanks."""

_PATTERNS = tuple((re.compile(pattern), values, why) for pattern, values, why in DECEIVING)


def why_refused(name: str, text: str) -> str | None:
    """Return the reason for which a node refuses to start with this property, or None if it does
    not refuse it."""
    value = text.strip().lower()
    for pattern, accepted, reason in _PATTERNS:
        if pattern.fullmatch(name) and value and value not in map(str.lower, accepted):
            return reason
    return None


def may_be_refused(name: str) -> bool:
    """Return True if `DECEIVING` lists the property, so that only some of its values are
    accepted."""
    return any(pattern.fullmatch(name) for pattern, _, _ in _PATTERNS)


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
