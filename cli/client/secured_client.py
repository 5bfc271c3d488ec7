"""Connections of a KafkaClient with the TLS and the login of --command-config.

`connection.py` is the blocking client of commands. This is the end of commands that have an event
loop, and many requests in flight."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.connection import SESSION_SHARE
from quorate.cli.client.errors import Refused
from quorate.cli.client.sasl_login import Login, TokenLogin, login_steps
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings, KafkaClient
from quorate.quorum.rpc.tls.dialing_transport import ClientTls, DialingTransport
from quorate.quorum.seams import Address, Clock, Transport


class LoginRefused(ClientError):
    """The node did not accept the login, for example because it does not know the credential yet.
    No request was sent."""

    sent = False


@dataclass(frozen=True, slots=True)
class SecuredClient:
    """A connection that is logged in, and the time in ms at which another one must replace it."""

    client: KafkaClient
    due_ms: int | None = None
    """None means that the session does not end."""

    def usable(self, now_ms: int) -> bool:
        """Return True if the connection is open and its session does not end soon."""
        return not self.client.closed and (self.due_ms is None or now_ms < self.due_ms)


def with_tls(transport: Transport, security: ClientSecurity) -> Transport:
    """Return a transport whose connections begin with the TLS handshake of `security`, if any."""
    if security.tls is None:
        return transport
    return DialingTransport(transport, ClientTls(security.tls))


async def connected(
    transport: Transport,
    clock: Clock,
    address: Address,
    settings: ClientSettings,
    login: Login | None,
) -> SecuredClient:
    """Connect, agree on versions, and log in.

    Raise TransportError if there is no connection, and ClientError if the node does not answer, or
    refuses the login."""
    client = await KafkaClient.connect(transport, clock, address, settings)
    try:
        await client.negotiate()
        lifetime_ms = 0 if login is None else await _log_in(client, login, address)
    except BaseException:
        client.close()
        raise
    due_ms = clock.now_ms() + int(lifetime_ms * SESSION_SHARE) if lifetime_ms else None
    return SecuredClient(client, due_ms)


async def _log_in(client: KafkaClient, login: Login, address: Address) -> int:
    """Authenticate, and return the lifetime of the session in ms. 0 means that it does not end."""
    if isinstance(login, TokenLogin):
        try:
            await asyncio.to_thread(login.source.current)
        except Refused as refused:
            raise LoginRefused(refused.message) from None
    steps = login_steps(login, str(address))
    request = next(steps)
    while True:
        answer = await client.call(request)
        try:
            request = steps.send(answer)
        except StopIteration as ended:
            return int(ended.value)
        except Refused as refused:
            raise LoginRefused(refused.message) from None
