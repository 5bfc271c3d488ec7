"""The security settings in the file of --command-config, with the names of Java and of librdkafka.

A key about security that the command line cannot honour is refused, because the command would
connect with less protection than the file demands. Other keys of clients are ignored, so that a
command can use the file of a producer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.cli.client.errors import Refused
from quorate.cli.client.sasl_login import KEYS as SASL_KEYS
from quorate.cli.client.sasl_login import Login, sasl_login
from quorate.config.http_token import HTTP_TOKEN_FILE, read_tokens
from quorate.config.key import ConfigError, Value
from quorate.config.listeners import (
    PLAINTEXT,
    SASL_PLAINTEXT,
    SASL_PROTOCOLS,
    SASL_SSL,
    SSL,
    TLS_PROTOCOLS,
)
from quorate.config.tls_keys import TLS

if TYPE_CHECKING:
    import ssl

    from quorate.quorum.rpc.tls.settings import TlsSettings

PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
ABOUT_SECURITY = re.compile(r"(security|ssl|sasl|enable\.(ssl|sasl))\..+|principal\..+")
JAVA = {key.name: key for key in TLS}
OURS = {
    "security.protocol": tuple(each.lower() for each in PROTOCOLS),
    "ssl.endpoint.identification.algorithm": ("https", "none", ""),
    "enable.ssl.certificate.verification": ("true", "false"),
    "ssl.protocol": ("tlsv1.3", "tls"),
}
"""Further keys of clients, with their values in lower case. `none` and
enable.ssl.certificate.verification are librdkafka's."""
SERVERS_ONLY = (
    "ssl.client.auth",
    "ssl.principal.mapping.rules",
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
)
PEM_FILES = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
"""librdkafka's names of PEM files, with the keys of Java that take their content."""
PEM_TEXTS = {
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """The protection of a command's connections. Without `tls` they are not encrypted, and without
    `login` the command is anonymous, or the subject of its certificate."""

    tls: ssl.SSLContext | None = None
    login: Login | None = None
    http_token: str | None = field(default=None, repr=False)
    """The token of HTTP requests to nodes, from quorate.http.token.file."""

    @property
    def protocol(self) -> str:
        """Return the security protocol of the connections, one of PROTOCOLS."""
        if self.login is None:
            return PLAINTEXT if self.tls is None else SSL
        return SASL_PLAINTEXT if self.tls is None else SASL_SSL


def client_security(client: Mapping[str, str]) -> ClientSecurity:
    """Return the security that the entries of a client's file demand. Blocks to read certificates.

    Raise Refused for a key about security that is not known, for an invalid value, and for
    certificates that cannot be used."""
    for name, value in client.items():
        _check(name, value)
    protocol = _ours(client, "security.protocol", "PLAINTEXT").upper()
    login = sasl_login(client) if protocol in SASL_PROTOCOLS else None
    try:
        tokens = read_tokens({HTTP_TOKEN_FILE: client.get(HTTP_TOKEN_FILE)})
        token = tokens[0] if tokens else None
    except ConfigError as error:
        raise Refused(str(error)) from None
    if protocol not in TLS_PROTOCOLS:
        return ClientSecurity(login=login, http_token=token)
    from quorate.quorum.rpc.tls.context import client_context

    verify = _ours(client, "enable.ssl.certificate.verification", "true") == "true"
    algorithm = _ours(client, "ssl.endpoint.identification.algorithm", "https")
    try:
        context = client_context(
            _settings(_in_java(client)), verify=verify, check_host=verify and algorithm == "https"
        )
    except ConfigError as error:
        raise Refused(str(error)) from None
    return ClientSecurity(context, login, token)


def _check(name: str, value: str) -> None:
    """Raise Refused if a key about security is not known, or if its value is not allowed."""
    if name in OURS:
        if _ours({name: value}, name, "") not in OURS[name]:
            allowed = PROTOCOLS if name == "security.protocol" else OURS[name]
            shown = ", ".join(each or "empty" for each in allowed)
            raise Refused(f"{name}: value {value!r} must be one of {shown}")
        return
    known = (name in JAVA and name not in SERVERS_ONLY) or name in PEM_FILES or name in PEM_TEXTS
    known = known or name in SASL_KEYS
    if ABOUT_SECURITY.fullmatch(name) and not known:
        raise Refused(f"{name}: the command line does not support this key")


def _ours(client: Mapping[str, str], name: str, default: str) -> str:
    """Return the value of a key of OURS in lower case, without the blanks that a line may end
    with."""
    return client.get(name, default).strip().lower()


def _in_java(client: Mapping[str, str]) -> dict[str, str]:
    """Return the entries with librdkafka's names and files replaced by Java's names and texts."""
    found = {name: value for name, value in client.items() if name in JAVA}
    for name, java in (PEM_FILES | PEM_TEXTS).items():
        if name not in client:
            continue
        value = client[name]
        if name in PEM_FILES:
            try:
                value = Path(value).read_text("ascii")
            except (OSError, UnicodeDecodeError) as error:
                raise Refused(f"{name}: {error}") from None
        found[java] = value
        found[f"{java.rsplit('store', 1)[0]}store.type"] = "PEM"
    return found


def _settings(java: Mapping[str, str]) -> TlsSettings:
    """Return the settings of the entries with Java's names. Raise ConfigError if one is invalid."""
    from quorate.quorum.rpc.tls.settings import TlsSettings

    def value(name: str) -> Value:
        key = JAVA[name]
        return key.parse(java[name]) if name in java else key.default

    return TlsSettings.of(value)
