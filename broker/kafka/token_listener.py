"""OAUTHBEARER on one client listener: the keys of the token provider, and the rules of tokens."""

from __future__ import annotations

from quorate.config.key import ConfigError
from quorate.config.oauthbearer_keys import JWKS_URL, OAuthBearerSettings
from quorate.quorum.rpc.jwks.refresher import KeyRefresher, RefreshTimes
from quorate.quorum.rpc.jwks.source import KeyFile, SourceFailed, source_of
from quorate.quorum.rpc.tls.context import endpoint_context
from quorate.quorum.sasl.bearer_token import BearerToken, UnknownKey
from quorate.quorum.sasl.key_set import KeySet, KeySetRefused, parse_key_set
from quorate.quorum.sasl.token_claims import ClaimRules, bearer_token
from quorate.quorum.sasl.token_signature import verified_claims
from quorate.quorum.seams import Clock


class TokenListener:
    """The tokens of one listener. The event loop owns it."""

    def __init__(self, listener: str, settings: OAuthBearerSettings, clock: Clock) -> None:
        """Read the keys, if they are in a file, and the truststore for an endpoint. Blocks. Raise
        ConfigError if they cannot be used.

        An endpoint is first asked after the start. Until it answers, all tokens are refused."""
        self._clock = clock
        self._rules = ClaimRules(
            audiences=settings.audiences,
            issuer=settings.issuer,
            clock_skew_ms=settings.clock_skew_ms,
            scope_claim=settings.scope_claim,
            user_claim=settings.user_claim,
        )
        source = source_of(settings.jwks_url, endpoint_context(settings.truststore))
        times = RefreshTimes(
            settings.refresh_ms, settings.retry_backoff_ms, settings.retry_backoff_max_ms
        )
        keys = keys_in(source) if isinstance(source, KeyFile) else None
        self.refresher = KeyRefresher(listener, source, times, clock, keys)

    def verify(self, token: str) -> BearerToken:
        """Return the user that a token proves. Raise TokenRefused. A token with an unknown key asks
        for newer keys, which a later authentication uses."""
        try:
            claims = verified_claims(token, self.refresher.keys)
        except UnknownKey:
            self.refresher.refresh_early()
            raise
        return bearer_token(claims, self._rules, self._clock.wall_ms())


def keys_in(file: KeyFile) -> KeySet:
    """Return the keys in a file. Blocks. Raise ConfigError if it has none that can be used."""
    try:
        return parse_key_set(file.read_now())
    except (SourceFailed, KeySetRefused) as error:
        raise ConfigError(f"{JWKS_URL}: {file.path}: {error}") from None
