"""The keys of --command-config about OAUTHBEARER, with the names of Java and of librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quorate.cli.client.errors import Refused
from quorate.cli.client.token_source import URL_KEY, TokenSettings, TokenSource
from quorate.config.jaas import OAUTHBEARER_MODULE, parse_jaas
from quorate.config.key import ConfigError
from quorate.config.listeners import is_loopback
from quorate.config.oauthbearer_keys import TRUSTSTORE

if TYPE_CHECKING:
    import ssl

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
JAAS = "sasl.jaas.config"
ALLOWED = {
    "sasl.login.callback.handler.class": (
        f"{PACKAGE}OAuthBearerLoginCallbackHandler",
        f"{PACKAGE}secured.OAuthBearerLoginCallbackHandler",
    ),
    "sasl.oauthbearer.header.urlencode": ("true", "false"),
    "sasl.oauthbearer.method": ("oidc",),
}
"""The keys with few values. The others ask for a token that the client makes itself, or that a
callback of a program makes."""
CLIENT_IDS = ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id")
SECRETS = ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret")
SCOPE = "sasl.oauthbearer.scope"
CA_FILE, CA_TEXT = "https.ca.location", "https.ca.pem"
KEYS = frozenset((URL_KEY, *ALLOWED, *CLIENT_IDS, *SECRETS, SCOPE, CA_FILE, CA_TEXT))
"""The keys of clients about OAUTHBEARER that commands honour."""
OPTIONS = ("clientId", "clientSecret", "scope")
"""The options of the JAAS value, apart from those of a truststore. Keys take precedence."""


def token_source(client: Mapping[str, str]) -> TokenSource:
    """Return the tokens that a client's file asks for. Blocks to read certificates.

    Raise Refused for a setting that cannot be honoured. No error quotes a secret."""
    for name, allowed in ALLOWED.items():
        if client.get(name, allowed[0]).strip() not in allowed:
            raise Refused(f"{name}: value {client[name]!r} must be {' or '.join(allowed)}")
    jaas = _jaas_options(client)
    url = client.get(URL_KEY, "").strip()
    if not url:
        raise Refused(f"{URL_KEY}: must be set, because OAUTHBEARER needs tokens of a provider")
    scheme = _checked_scheme(url)
    client_id = _first(client, CLIENT_IDS) or jaas.get("clientId", "")
    secret = _first(client, SECRETS) or jaas.get("clientSecret", "")
    if scheme != "file" and not (client_id and secret):
        raise Refused(
            f"the file must name the client of the token endpoint: clientId and clientSecret in "
            f"{JAAS}, or {CLIENT_IDS[1]} and {SECRETS[1]}"
        )
    settings = TokenSettings(
        url=url,
        client_id=client_id.strip(),
        client_secret=secret.strip(),
        scope=client.get(SCOPE) or jaas.get("scope"),
        encodes=client.get("sasl.oauthbearer.header.urlencode", "").strip() == "true",
        tls=_endpoint_tls(client, jaas) if scheme == "https" else None,
    )
    return TokenSource(settings)


def _first(client: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the value of the first of `names` that is set, or an empty text."""
    return next((client[name] for name in names if client.get(name)), "")


def _jaas_options(client: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of the JAAS value."""
    if JAAS not in client:
        return {}
    try:
        module = parse_jaas(JAAS, client[JAAS])
    except ConfigError as error:
        raise Refused(str(error)) from None
    if module.name != OAUTHBEARER_MODULE:
        raise Refused(f"{JAAS}: value [hidden] must begin with {OAUTHBEARER_MODULE}")
    if set(module.options) - {*OPTIONS, *TRUSTSTORE}:
        allowed = ", ".join((*OPTIONS, *TRUSTSTORE))
        raise Refused(f"{JAAS}: value [hidden] may only have the options {allowed}")
    return module.options


def _checked_scheme(url: str) -> str:
    """Return the scheme of a URL. Raise Refused if a secret would travel in clear."""
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise Refused(f"{URL_KEY}: value {url!r} is no URL") from None
    if "@" in parts.netloc or (parts.scheme != "file" and not url.isascii()):
        raise Refused(  # it may have a password, so no error quotes it
            f"{URL_KEY}: value [hidden] must have ASCII characters only, and neither a user nor a "
            f"password. {CLIENT_IDS[1]} and {SECRETS[1]} name the client"
        )
    if parts.scheme == "file" and parts.path and parts.netloc in ("", "localhost"):
        return parts.scheme
    if good and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    ):
        return parts.scheme
    raise Refused(
        f"{URL_KEY}: value {url!r} must begin with https:// or file:///. With http:// the secret "
        "of the client would travel in clear, so that it may only be a server on this machine"
    )


def _endpoint_tls(client: Mapping[str, str], jaas: Mapping[str, str]) -> ssl.SSLContext:
    """Return the TLS of connections to the endpoint. Without a truststore, the authorities of the
    system are trusted."""
    from quorate.quorum.rpc.tls.context import endpoint_context

    found = {name: text for name, text in jaas.items() if name in TRUSTSTORE}
    if CA_FILE in client:
        found = {"ssl.truststore.type": "PEM", "ssl.truststore.location": client[CA_FILE]}
    elif CA_TEXT in client:
        found = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": client[CA_TEXT]}
    try:
        return endpoint_context(found)
    except ConfigError as error:
        raise Refused(f"{URL_KEY}: {error}") from None
