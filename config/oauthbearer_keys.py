"""The configuration keys of the SASL mechanism OAUTHBEARER (KIP-768), and its settings on one
listener.

As in Kafka, a key may have the prefix of a listener, or that of a listener and the mechanism:
`listener.name.<name in lower case>.oauthbearer.<key>`. The longer name takes precedence. The key of
the callback handler must have the longer prefix. Kafka's default handler accepts tokens without a
signature, so a listener must name the one that verifies them.

The options `ssl.truststore.` of the JAAS value choose the authorities that issue the certificate of
an https endpoint. Without them, it is an authority of the system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from quorate.config.jaas import LoginModule
from quorate.config.key import ConfigError, Key, Kind, Value, at_least

OAUTHBEARER = "OAUTHBEARER"
MECHANISM_PREFIX = "oauthbearer."
HANDLER_CLASS = "sasl.server.callback.handler.class"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
CERTIFICATES, LOCATION = "ssl.truststore.certificates", "ssl.truststore.location"
TRUSTSTORE = (CERTIFICATES, LOCATION, "ssl.truststore.password", "ssl.truststore.type")
"""The options of the JAAS value with an effect."""
OWN_IDENTITY = ("clientId", "clientSecret", "scope")
"""Options with which a broker of Kafka connects to others. Nodes of Quorate do not use SASL."""


def is_jwks_url(value: Value) -> str | None:
    """Check for the URL of a file, or of an endpoint with TLS."""
    try:
        url = urlsplit(str(value))
        is_file = url.scheme == "file" and url.netloc in ("", "localhost") and bool(url.path)
        is_https = url.scheme == "https" and bool(url.hostname) and (url.port or 443) > 0
    except ValueError:
        is_file = is_https = False
    if is_file or is_https:
        return None
    return "https://HOST/PATH or file:///PATH, because others could replace keys sent over http"


def is_name(value: Value) -> str | None:
    """Check for a text that is not empty."""
    return None if value else "the name of a claim"


def is_issuer(value: Value) -> str | None:
    """Check for a text that is not empty. An empty one would admit the tokens of all issuers."""
    return None if value else "the issuer of the tokens, or the key must not be set"


KEYS = (
    Key(
        JWKS_URL,
        Kind.STRING,
        None,
        "The keys that verify tokens, as a JSON Web Key Set: an https endpoint of the provider, or "
        "a file.",
        is_jwks_url,
    ),
    Key(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind.LONG,
        3_600_000,
        "The time after which the keys are read again.",
        at_least(1),
    ),
    Key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Kind.LONG,
        100,
        "The time after the first failed attempt to read the keys. It doubles with each attempt.",
        at_least(1),
    ),
    Key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Kind.LONG,
        10_000,
        "The longest time between two attempts to read the keys.",
        at_least(1),
    ),
    Key(
        "sasl.oauthbearer.expected.audience",
        Kind.LIST,
        None,
        "The audiences, one of which a token must name. Without it, a token must name none.",
    ),
    Key(
        "sasl.oauthbearer.expected.issuer",
        Kind.STRING,
        None,
        "The issuer that a token must name. Default: any issuer.",
        is_issuer,
    ),
    Key(
        "sasl.oauthbearer.clock.skew.seconds",
        Kind.INT,
        30,
        "The seconds by which the clocks of the provider and the broker may differ.",
        at_least(0),
    ),
    Key(
        "sasl.oauthbearer.scope.claim.name",
        Kind.STRING,
        "scope",
        "The claim with the scopes of a token. A token with malformed scopes is refused.",
        is_name,
    ),
    Key(
        "sasl.oauthbearer.sub.claim.name",
        Kind.STRING,
        "sub",
        "The claim with the name of the user.",
        is_name,
    ),
)
"""The keys that may have the prefix of a listener, or that of a listener and the mechanism."""
HANDLER = Key(
    f"{MECHANISM_PREFIX}{HANDLER_CLASS}",
    Kind.STRING,
    None,
    "The class that verifies tokens. Only Kafka's own validator of signed tokens is supported.",
)
WITH_MECHANISM = (
    HANDLER,
    *(replace(each, name=MECHANISM_PREFIX + each.name, default=None) for each in KEYS),
)
"""The keys that must have the prefix of a listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthBearerSettings:
    """The settings of OAUTHBEARER on one listener.

    `audiences` is empty, and `issuer` is None, if none is expected. `truststore` has the options
    of the JAAS value for the https endpoint, under the names of the keys of TLS."""

    jwks_url: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    audiences: tuple[str, ...]
    issuer: str | None
    clock_skew_ms: int
    scope_claim: str
    user_claim: str
    truststore: Mapping[str, str] = field(default_factory=dict, repr=False)


def truststore_options(key: str, module: LoginModule | None) -> dict[str, str]:
    """Return the options of a JAAS value that choose a truststore. Raise ConfigError if another
    option has no effect."""
    options = {} if module is None else module.options
    found = {name: text for name, text in options.items() if name in TRUSTSTORE}
    if set(options) - set(found) - set(OWN_IDENTITY):
        raise ConfigError(
            f"{key}: value [hidden] has an option without an effect. Allowed: "
            f"{', '.join(TRUSTSTORE)}"
        )
    return found


def check_truststore(key: str, truststore: Mapping[str, str], url: str) -> None:
    """Raise ConfigError if the options of the JAAS value `key` choose no authorities, or if no
    endpoint shows a certificate."""
    if urlsplit(url).scheme == "file":
        raise ConfigError(
            f"{key}: value [hidden] must not have a truststore: {JWKS_URL} names a file, so that "
            "no certificate is verified"
        )
    if not truststore.get(LOCATION) and not truststore.get(CERTIFICATES):
        raise ConfigError(
            f"{key}: value [hidden] has options of a truststore, but neither {LOCATION} nor "
            f"{CERTIFICATES}. All authorities of the system would be trusted"
        )


def oauthbearer_settings(
    settings: Mapping[str, Any], listener: str, truststore: Mapping[str, str]
) -> OAuthBearerSettings:
    """Return the settings of one listener.

    Raise ConfigError, prefixed with the source, if the listener does not name the validator or the
    keys."""
    prefix = f"listener.name.{listener.lower()}."
    handler = settings.get(prefix + HANDLER.name)
    if handler is None or handler.value != VALIDATOR:
        origin = "" if handler is None else f"{handler.origin}: "
        raise ConfigError(
            f"{origin}{prefix}{HANDLER.name}: must be {VALIDATOR}. Kafka's default accepts tokens "
            "without a signature, and Quorate loads no Java classes"
        )

    def of(key: str) -> Any:
        names = (f"{prefix}{MECHANISM_PREFIX}{key}", prefix + key, key)
        return next(settings[name] for name in names if name in settings).value

    if of(JWKS_URL) is None:
        raise ConfigError(
            f"{prefix}{MECHANISM_PREFIX}{JWKS_URL}: must be set. It names the keys that verify "
            "tokens"
        )
    if truststore:
        check_truststore(f"{prefix}{MECHANISM_PREFIX}sasl.jaas.config", truststore, of(JWKS_URL))
    return OAuthBearerSettings(
        jwks_url=of(JWKS_URL),
        refresh_ms=of("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        retry_backoff_ms=of("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        retry_backoff_max_ms=of("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        audiences=tuple(each for each in of("sasl.oauthbearer.expected.audience") or () if each),
        issuer=of("sasl.oauthbearer.expected.issuer"),
        clock_skew_ms=of("sasl.oauthbearer.clock.skew.seconds") * 1000,
        scope_claim=of("sasl.oauthbearer.scope.claim.name"),
        user_claim=of("sasl.oauthbearer.sub.claim.name"),
        truststore=truststore,
    )
