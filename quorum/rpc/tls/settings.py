"""The TLS settings of one listener or of one client, from its `ssl.` keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quorate.config.principal_mapping import MappingRule, parse_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """A keystore or a truststore: a file, or texts in PEM. `prefix` begins the names of its keys,
    such as ssl.keystore. `key_password` opens an encrypted key in PEM."""

    prefix: str
    type: str
    location: str | None
    password: str | None = field(repr=False)
    pem: str | None = field(repr=False)
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The settings of one end. `cipher_suites` have the names of IANA; none means the
    default."""

    keystore: StoreSettings
    truststore: StoreSettings
    client_auth: str
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    rules: tuple[MappingRule, ...]
    allow_dn_changes: bool = False
    allow_san_changes: bool = False

    @classmethod
    def of(cls, value: Callable[[str], Any]) -> TlsSettings:
        """Return the settings that `value` gives for each key of TLS, such as ssl.client.auth.

        Raise ConfigError if the mapping rules are malformed."""

        def text(key: str) -> str | None:
            return value(f"ssl.{key}") or None

        parts = (text("keystore.key"), text("keystore.certificate.chain"))
        return cls(
            keystore=StoreSettings(
                prefix="ssl.keystore",
                type=text("keystore.type") or "",
                location=text("keystore.location"),
                password=text("keystore.password"),
                pem="\n".join(filter(None, parts)) or None,
                key_password=text("key.password"),
            ),
            truststore=StoreSettings(
                prefix="ssl.truststore",
                type=text("truststore.type") or "",
                location=text("truststore.location"),
                password=text("truststore.password"),
                pem=text("truststore.certificates"),
            ),
            client_auth=value("ssl.client.auth"),
            protocols=value("ssl.enabled.protocols"),
            cipher_suites=value("ssl.cipher.suites"),
            rules=parse_rules(value("ssl.principal.mapping.rules")),
            allow_dn_changes=value("ssl.allow.dn.changes"),
            allow_san_changes=value("ssl.allow.san.changes"),
        )
