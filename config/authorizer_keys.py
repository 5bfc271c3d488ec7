"""The configuration keys of the authorizer.

`super.users` is read from each node's own file. Its elements are separated by semicolons, because
the name of a certificate has commas.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.config.key import ConfigError, Key, Kind, Value, one_of
from quorate.config.setting import Setting

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The name of Kafka's authorizer, whose decisions Quorate's authorizer makes."""
CLASS_NAME, SUPER_USERS, ALLOW_EVERYONE = (
    "authorizer.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
)
NEEDS_AUTHORIZER = (SUPER_USERS, ALLOW_EVERYONE)


def principals(text: str) -> frozenset[str]:
    """Return the elements of super.users, without the blanks around them."""
    return frozenset(each.strip() for each in text.split(";") if each.strip())


def check_principals(value: Value) -> str | None:
    """Check for a text of principals with semicolons between them."""
    assert isinstance(value, str)
    for each in principals(value):
        kind, colon, name = each.partition(":")
        if not (kind and colon and name):
            return "principals such as User:alice;User:bob"
    return None


AUTHORIZER = (
    Key(
        CLASS_NAME,
        Kind.STRING,
        "",
        "The authorizer that checks each request: Kafka's StandardAuthorizer, or none.",
        one_of("", STANDARD_AUTHORIZER),
    ),
    Key(
        SUPER_USERS,
        Kind.STRING,
        "",
        "The principals that may do everything, as User:a;User:b.",
        check_principals,
    ),
    Key(
        ALLOW_EVERYONE,
        Kind.BOOLEAN,
        False,
        "A resource without ACLs is open to every client.",
    ),
)


def refuse_without_authorizer(settings: Mapping[str, Setting]) -> None:
    """Raise ConfigError if a key of the authorizer is set, but no authorizer.

    The key would deceive the operator, because the node is open to every client. The value `true`
    of allow.everyone.if.no.acl.found says what such a node does."""
    named = settings.get(CLASS_NAME)
    if named is not None and (named.text or "").strip():
        return
    for name in NEEDS_AUTHORIZER:
        setting = settings.get(name)
        text = "" if setting is None else (setting.text or "").strip().lower()
        if setting is not None and text and (name, text) != (ALLOW_EVERYONE, "true"):
            raise ConfigError(
                f"{setting.origin}: {name}: must not be set without {CLASS_NAME}: there would be "
                "no ACLs, so every client could do everything"
            )
