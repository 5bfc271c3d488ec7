"""Attacks on connections that are not authenticated, or whose bytes are encrypted.

In a cluster without TLS or SASL, most of them have nothing to attack.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from quorate.quorum.seams import Address
from tests.attacks.raw import Raw, framed, head_of, request
from tests.attacks.registry import attack
from tests.attacks.shapes import struct_bytes
from tests.attacks.target import Target

TINY_RECORDS, QUICK_TINY_RECORDS = 300_000, 30_000
"""300,000 records of a single byte once held the event loop of a broker for 0.6 s."""
LARGE_BYTES, QUICK_LARGE_BYTES = 50 << 20, 4 << 20
TOKENS, QUICK_TOKENS = 200, 5
AT_ONCE = 20
"""Failed logins are answered after a pause, so many are tried at the same time."""
GARBAGE = 500
HEADS = (b"\x16\x03\x01\x02\x00\x01", b"\x15\x03\x03", b"\x00\x00\x00\x10", b"GET ")
TIMEOUT_S = 5.0
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "x" * 30_000)
TOKEN_FORMS = (
    b"",
    b"\x00",
    b"n,,n=admin,r=" + b"x" * 200,
    b"n,,n=" + b"=2C" * 5_000 + b",r=x",
    b"n,a=admin,n=admin,r=x",
    b"c=biws,r=x,p=" + b"A" * 30_000,
    b"\x00admin\x00" + b"p" * 30_000,
    b"n,,\x01auth=Bearer " + b"a.b." * 8_000 + b"\x01\x01",
)


async def told(target: Target, address: Address, *frames: bytes) -> None:
    """Send frames over a connection without a login, and count what happened."""
    with suppress(OSError, TimeoutError):
        connection = await Raw.open(address, login=False)
        try:
            for each in frames:
                await connection.send(each, TIMEOUT_S)
                if await connection.frame(TIMEOUT_S) is None:
                    target.outcome["closed" if connection.reader.at_eof() else "silent"] += 1
                    return
                target.outcome["answered"] += 1
        finally:
            connection.close()


def with_logins(target: Target) -> list[Address]:
    """Return the brokers that demand a login. Note it if there is none."""
    found = [each for each in target.brokers if Raw.security_of(each).login is not None]
    if not found:
        target.outcome["no login"] += 1
    return found


async def at_once(tasks: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all, AT_ONCE at a time."""
    for start in range(0, len(tasks), AT_ONCE):
        await asyncio.gather(*tasks[start : start + AT_ONCE])


@attack(6)
async def requests_before_a_login(target: Target) -> None:
    """Send the usual request of every API, and one large frame, before any login."""
    frames = [framed(bytes(QUICK_LARGE_BYTES if target.quick else LARGE_BYTES))]
    for key, api in APIS.items():
        if key not in (SaslHandshakeRequest.API_KEY, SaslAuthenticateRequest.API_KEY):
            version = api.max_version
            body = struct_bytes(api.request, version, version >= api.flexible_since)
            frames.append(framed(head_of(key, version) + body))
    for address in with_logins(target):
        await at_once([told(target, address, each) for each in frames])


@attack(4)
async def impossible_logins(target: Target) -> None:
    """Try every mechanism with tokens that are malformed, huge, random, or of another mechanism."""
    chance = random.Random(11)
    count = QUICK_TOKENS if target.quick else TOKENS
    for address in with_logins(target):
        for mechanism in MECHANISMS:
            shake = framed(request(SaslHandshakeRequest(mechanism=mechanism), 1))
            tokens = [
                *TOKEN_FORMS,
                *(chance.randbytes(chance.randrange(400)) for _ in range(count)),
            ]
            for token in tokens:
                asked = framed(request(SaslAuthenticateRequest(auth_bytes=token), 2))
                await told(target, address, shake, asked, asked)


@attack(7)
async def clients_of_another_protocol(target: Target) -> None:
    """Send plaintext to every port, and bytes that look like a TLS handshake."""
    chance = random.Random(12)

    async def one(address: Address, data: bytes) -> None:
        with suppress(OSError, TimeoutError):
            connection = await Raw.open(address, tls=False)
            await connection.send(data, TIMEOUT_S)
            answer = await connection.frame(1.0)
            target.outcome["closed" if answer is None else "answered"] += 1
            connection.close()

    addresses = (*target.brokers, *target.controllers)
    await at_once(
        [one(each, head + chance.randbytes(GARBAGE)) for each in addresses for head in HEADS]
    )


@attack(4)
async def tls_records_of_one_byte(target: Target) -> None:
    """Send one request in TLS records of a single byte each, to every broker."""
    count = QUICK_TINY_RECORDS if target.quick else TINY_RECORDS
    for address in target.brokers:
        if Raw.security_of(address).tls is None:
            target.outcome["no TLS"] += 1
            continue
        with suppress(OSError, TimeoutError):
            connection = await Raw.open(address)
            try:
                for byte in framed(bytes(count)):
                    connection.writer.write(bytes((byte,)))
                await connection.send(b"", TIMEOUT_S)
                answer = await connection.frame(TIMEOUT_S)
                target.outcome["closed" if answer is None else "answered"] += 1
            finally:
                connection.close()
