"""The login of a command by SASL: the credential and mechanism of --command-config, and the
messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from quorate.cli.client.errors import Refused
from quorate.cli.client.token_settings import KEYS as TOKEN_KEYS
from quorate.cli.client.token_settings import token_source
from quorate.cli.client.token_source import TokenSource
from quorate.config.jaas import parse_jaas
from quorate.config.key import ConfigError
from quorate.config.oauthbearer_keys import OAUTHBEARER
from quorate.config.sasl_keys import JAAS, MODULES, PLAIN
from quorate.quorum.protocol.schemas.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from quorate.quorum.protocol.schemas.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from quorate.quorum.protocol.wire import Message

Steps = Generator[Message, Message, int]
"""Yields each request of a login and takes its response. Returns the lifetime of the session in ms,
or 0 if it does not end."""
MECHANISM = "sasl.mechanism"
LIBRDKAFKA = {"sasl.mechanisms": MECHANISM}
"""librdkafka's other name of a key."""
KEYS = frozenset((MECHANISM, *LIBRDKAFKA, JAAS, "sasl.username", "sasl.password")) | TOKEN_KEYS
"""The keys of clients about SASL that commands honour."""


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """A user with its password, and the mechanism that proves them."""

    mechanism: str
    user: str
    password: str = field(repr=False)

    @property
    def title(self) -> str:
        """Return the text that names the user for the operator."""
        return f"User:{self.user}"


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """The tokens of a provider, each of which proves its user (OAUTHBEARER)."""

    source: TokenSource

    @property
    def mechanism(self) -> str:
        """Return the mechanism that shows the tokens."""
        return OAUTHBEARER

    @property
    def title(self) -> str:
        """Return the text that names the user for the operator."""
        return "the user of the token"


Login = SaslLogin | TokenLogin


def sasl_login(client: Mapping[str, str]) -> Login:
    """Return the login of a client's file. Blocks to read certificates. Raise Refused if the file
    names no mechanism that is supported, no user with a password, or no provider of tokens. No
    error quotes a password."""
    mechanism = client.get(MECHANISM) or client.get("sasl.mechanisms") or "GSSAPI"
    if mechanism not in MODULES:
        raise Refused(
            f"{MECHANISM}: value {mechanism!r} must be one of {', '.join(MODULES)} (the default is "
            "GSSAPI)"
        )
    if mechanism == OAUTHBEARER:
        return TokenLogin(token_source(client))
    user, password = client.get("sasl.username"), client.get("sasl.password")
    if JAAS in client:
        try:
            module = parse_jaas(JAAS, client[JAAS])
        except ConfigError as error:
            raise Refused(str(error)) from None
        if module.name != MODULES[mechanism]:
            raise Refused(f"{JAAS}: value [hidden] must begin with {MODULES[mechanism]}")
        if set(module.options) - {"username", "password"}:
            raise Refused(f"{JAAS}: value [hidden] may only have the options username and password")
        user, password = module.options.get("username"), module.options.get("password")
    if not user or not password:
        raise Refused(
            f"the file must name a user: username and password in {JAAS}, or sasl.username and "
            "sasl.password"
        )
    return SaslLogin(mechanism, user, password)


def log_in(login: Login, ask: Callable[[Message], Message], address: str) -> int:
    """Authenticate over `ask`, which sends a request and returns its response. Return the lifetime
    of the session in ms, or 0 if it does not end. Raise Refused as `login_steps` does."""
    steps = login_steps(login, address)
    request = next(steps)
    while True:
        answer = ask(request)
        try:
            request = steps.send(answer)
        except StopIteration as ended:
            return int(ended.value)


def login_steps(login: Login, address: str) -> Steps:
    """Authenticate by the requests that are yielded. Blocks to get a token, if the login has none
    that is valid for long enough.

    Raise Refused if the node does not accept the login, or does not know the credential."""
    shaken = yield SaslHandshakeRequest(mechanism=login.mechanism)
    assert isinstance(shaken, SaslHandshakeResponse)
    if shaken.error_code:
        offered = ", ".join(shaken.mechanisms) or "none: its listener has no SASL"
        raise Refused(f"{address} does not offer {login.mechanism}. Its mechanisms: {offered}")
    if isinstance(login, TokenLogin):
        return (yield from _token_steps(login, address))
    if login.mechanism == PLAIN:
        last = yield from _exchange(f"\0{login.user}\0{login.password}".encode(), login, address)
        return last.session_lifetime_ms
    return (yield from _scram_steps(login, address))


def _exchange(
    token: bytes, login: Login, address: str
) -> Generator[Message, Message, SaslAuthenticateResponse]:
    """Send a token and return the response. Raise Refused if the node refuses it."""
    answer = yield SaslAuthenticateRequest(auth_bytes=token)
    assert isinstance(answer, SaslAuthenticateResponse)
    if answer.error_code:
        text = re.sub(r"\s+", " ", answer.error_message or "no reason is given")
        name = repr(login.user) if isinstance(login, SaslLogin) else "of the token"
        raise Refused(f"{address} refuses user {name}: {text}")
    return answer


def _token_steps(login: TokenLogin, address: str) -> Steps:
    """Authenticate by OAUTHBEARER. A node answers to a token that it refuses, and fails the login
    after another message."""
    from quorate.quorum.sasl.oauthbearer_messages import END, client_first

    last = yield from _exchange(client_first(login.source.current()), login, address)
    if last.auth_bytes:
        yield from _exchange(END, login, address)
        raise Refused(f"{address} neither accepts nor refuses the token")
    return last.session_lifetime_ms


def _scram_steps(login: SaslLogin, address: str) -> Steps:
    """Authenticate by SCRAM."""
    from random import SystemRandom

    from quorate.quorum.sasl.random_text import random_text
    from quorate.quorum.sasl.scram_client import ScramClient, ServerRefused
    from quorate.quorum.sasl.scram_mechanisms import BY_NAME
    from quorate.quorum.sasl.scram_messages import Malformed

    client = ScramClient(
        BY_NAME[login.mechanism], login.user, login.password, random_text(SystemRandom())
    )
    try:
        first = yield from _exchange(client.first(), login, address)
        final = client.final(bytes(first.auth_bytes))
        last = yield from _exchange(final, login, address)
        client.check(bytes(last.auth_bytes))
    except (ServerRefused, Malformed) as error:
        raise Refused(f"{address}: {error}") from None
    return last.session_lifetime_ms
