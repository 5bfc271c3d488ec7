"""The login of a command by SASL: the user and mechanism of --command-config, and the tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from quorate.cli.client.errors import Refused
from quorate.config.jaas import parse_jaas
from quorate.config.key import ConfigError
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

R = TypeVar("R", bound=Message)
Ask = Callable[[Message, type[R]], R]
MECHANISM = "sasl.mechanism"
LIBRDKAFKA = {"sasl.mechanisms": MECHANISM}
"""librdkafka's other name of a key."""
KEYS = frozenset((MECHANISM, *LIBRDKAFKA, JAAS, "sasl.username", "sasl.password"))
"""The keys of clients about SASL that commands honour."""


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """A user with its password, and the mechanism that proves them."""

    mechanism: str
    user: str
    password: str = field(repr=False)


def sasl_login(client: Mapping[str, str]) -> SaslLogin:
    """Return the login of a client's file. Raise Refused if it names no mechanism that is
    supported, or no user with a password. No error quotes a password."""
    mechanism = client.get(MECHANISM) or client.get("sasl.mechanisms") or "GSSAPI"
    if mechanism not in MODULES:
        raise Refused(
            f"{MECHANISM}: value {mechanism!r} must be one of {', '.join(MODULES)} (the default is "
            "GSSAPI)"
        )
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


def log_in(login: SaslLogin, ask: Ask[Message], address: str) -> int:
    """Authenticate over `ask`, which sends a request and returns its response. Return the lifetime
    of the session in ms, or 0 if it does not end.

    Raise Refused if the node does not accept the login, or does not know the credential."""
    shaken = ask(SaslHandshakeRequest(mechanism=login.mechanism), SaslHandshakeResponse)
    assert isinstance(shaken, SaslHandshakeResponse)
    if shaken.error_code:
        offered = ", ".join(shaken.mechanisms) or "none: its listener has no SASL"
        raise Refused(f"{address} does not offer {login.mechanism}. Its mechanisms: {offered}")

    def exchange(token: bytes) -> SaslAuthenticateResponse:
        answer = ask(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code:
            text = re.sub(r"\s+", " ", answer.error_message or "no reason is given")
            raise Refused(f"{address} refuses user {login.user!r}: {text}")
        return answer

    if login.mechanism == PLAIN:
        return exchange(f"\0{login.user}\0{login.password}".encode()).session_lifetime_ms
    return log_in_by_scram(login, exchange, address)


def log_in_by_scram(
    login: SaslLogin, exchange: Callable[[bytes], SaslAuthenticateResponse], address: str
) -> int:
    """Authenticate by SCRAM over `exchange`, which sends a token. Return the lifetime of the
    session in ms."""
    from random import SystemRandom

    from quorate.quorum.sasl.random_text import random_text
    from quorate.quorum.sasl.scram_client import ScramClient, ServerRefused
    from quorate.quorum.sasl.scram_mechanisms import BY_NAME
    from quorate.quorum.sasl.scram_messages import Malformed

    client = ScramClient(
        BY_NAME[login.mechanism], login.user, login.password, random_text(SystemRandom())
    )
    try:
        first = exchange(client.first())
        last = exchange(client.final(bytes(first.auth_bytes)))
        client.check(bytes(last.auth_bytes))
    except (ServerRefused, Malformed) as error:
        raise Refused(f"{address}: {error}") from None
    return last.session_lifetime_ms
