"""Clients before they are authenticated: records of TLS, and the frames of SASL.

An input is a list of pieces (`streams.py`). Each input has a connection of its own.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from quorate.quorum.protocol import headers
from quorate.quorum.protocol.apis import APIS
from quorate.quorum.protocol.codec import encode
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest
from quorate.quorum.protocol.schemas.group_admin import ListGroupsRequest
from quorate.quorum.protocol.schemas.metadata import MetadataRequest
from quorate.quorum.protocol.schemas.sasl_authenticate import SaslAuthenticateRequest
from quorate.quorum.protocol.schemas.sasl_handshake import SaslHandshakeRequest
from quorate.quorum.protocol.wire import Message
from quorate.quorum.sasl.oauthbearer_messages import client_first
from tests.fuzz.mutations import mutated
from tests.fuzz.streams import in_list, pieces
from tests.fuzz.target import IncrementalWork, Target
from tests.ports.node import BROKER_PORT, PortCluster
from tests.ports.test_sasl import plain, secured
from tests.tokens import AUDIENCE, VALIDATOR, TokenProvider, part
from tests.unit.rpc.tls.memory import Client, Connection, Side, client_context
from tests.unit.rpc.tls.test_tls_protocol import context

STEP_S, DELAY_S = 0.005, 0.2
"""The virtual time of one frame, and of a failure that is answered late."""
MAX_PIECES = 12


def request(message: Message, version: int) -> bytes:
    api = APIS[message.API_KEY]
    header = headers.request_header(
        api.key, version, 7, "fuzz", api.request_header_version(version)
    )
    return bytes(header + encode(message, version))


def token(data: bytes) -> bytes:
    return request(SaslAuthenticateRequest(auth_bytes=data), 2)


def handshake(mechanism: str, version: int = 1) -> bytes:
    return request(SaslHandshakeRequest(mechanism=mechanism), version)


VERSIONS = request(ApiVersionsRequest(client_software_name="f", client_software_version="1"), 3)
METADATA = request(MetadataRequest(topics=()), 9)
GROUPS = request(ListGroupsRequest(), 4)
PLAIN_TOKENS = (b"\0alice\0wrong", b"alice\0alice\0", b"\0\0", b"\0nobody\0secret", b"", b"\0" * 9)
SCRAM_TOKENS = (
    b"n,,n=alice,r=abc",
    b"n,a=alice,n=alice,r=abc,tokenauth=true",
    b"y,,n==2C=3D,r=abc",
    b"c=biws,r=abc,p=AAAA",
    b"c=biws,r=abcdef,p=" + b"A" * 43 + b"=",
)
HEADERS = ({"alg": "none"}, {"alg": "ES256", "kid": "k1"}, {"alg": "HS256", "kid": "k1"}, 7)
CLAIMS = {"sub": "alice", "aud": AUDIENCE, "iat": 0, "exp": 10**11}
BEARER_TOKENS = (
    *(client_first(f"{part(each)}.{part(CLAIMS)}.c2ln") for each in HEADERS),
    client_first(TokenProvider({"k1": ("ES256", 1)}).token(10**12, seconds=10**9)),
    *(b"\x01", b"n,a=alice,\x01auth=Bearer a.b.c\x01host=x\x01\x01", b"n,,\x01\x01"),
)
FRAMES = (
    *(handshake(name) for name in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI")),
    *(handshake(name, 0) for name in ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER")),
    *(token(each) for each in (*PLAIN_TOKENS, *SCRAM_TOKENS, *BEARER_TOKENS)),
    *(VERSIONS, METADATA, GROUPS, *PLAIN_TOKENS, *SCRAM_TOKENS, *BEARER_TOKENS),
    *(b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1", bytes(4), b"\xff" * 40),
)
"""The frames of clients that do not know a password, and of others."""


class SaslPort(Target):
    """A listener with SASL. No input knows a password or the key of the token provider, so none may
    authenticate."""

    def __init__(self, node: PortCluster) -> None:
        self.node = node
        self.steps = IncrementalWork(node.loop)
        process: Any = node.cluster.brokers[0].process
        (self._gate,) = process.broker.services.gates
        self._admitted = 0

    def feed(self, data: bytes) -> None:
        raw = self.node.connect(BROKER_PORT)
        for frame in list(pieces(data))[:MAX_PIECES]:
            if not raw.closed:
                raw.link.send(frame)
                self.node.run(STEP_S)
        self.node.run(DELAY_S)
        raw.link.abort()
        assert self._gate.successful == self._admitted, "a client without a password was admitted"

    def systematic(self) -> Iterator[bytes]:
        for first in FRAMES:
            yield in_list([first])
            for second in FRAMES[: len(FRAMES) // 2]:
                yield in_list([first, second])

    def drawn(self, chance: random.Random) -> bytes:
        frames = [chance.choice(FRAMES) for _ in range(chance.randrange(1, MAX_PIECES))]
        frames = [mutated(each, chance) if chance.random() < 0.3 else each for each in frames]
        return in_list(frames)

    def check(self) -> None:
        raw = self.node.connect(BROKER_PORT)
        assert plain(self.node, raw).error_code == 0
        self._admitted += 1
        raw.link.abort()


RAW, HONEST, SEND, DAMAGED, PAUSE, RESUME, ANSWER, CLOSE = range(8)
"""The first byte of a piece: what happens with the rest of it."""
SOME_RECORDS = (
    b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
    b"\x16\x03\x01\xff\xff",
    b"\x15\x03\x03\x00\x02\x02\x28",
    b"\x17\x03\x03\x00\x10" + bytes(16),
    b"\x14\x03\x03\x00\x01\x01",
    b"\x80\x2e\x01\x00\x02",
    b"\x18\x03\x03\x00\x03\x01\x40\x00",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00\x00\x00\x10",
)


class FailingClient(Client):
    """A client that ends with an alert if the server's bytes are wrong."""

    def step(self, data: bytes = b"") -> bytes:
        try:
            return super().step(data)
        except ssl.SSLError:
            return self.outgoing.read()

    def send(self, data: bytes) -> bytes:
        try:
            return super().send(data)
        except ssl.SSLError:
            return self.outgoing.read()


class TlsRecords(Target):
    """One connection of our TLS protocol, beside an honest client whose bytes are cut and damaged.

    The protocol above must get a prefix of what the client has encrypted, whatever arrives."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._errors: list[dict[str, Any]] = []
        self._loop.set_exception_handler(lambda _, error: self._errors.append(error))
        self._server, self._client = context(), client_context()

    def feed(self, data: bytes) -> None:
        self._loop.run_until_complete(self._played(list(pieces(data))[:MAX_PIECES]))
        assert not self._errors, self._errors

    async def _played(self, steps: list[bytes]) -> None:
        connection = Connection(Side(self._server), FailingClient(self._client))
        sent = bytearray()
        for step in steps:
            if connection.socket.closed:
                break
            await self._step(connection, step[:1] or b"\0", step[1:], sent)
            received = bytes(connection.plain.received)
            assert sent.startswith(received), "bytes that the client did not send"
        connection.protocol.connection_lost(None)
        await asyncio.sleep(0)

    async def _step(
        self, connection: Connection, kind: bytes, rest: bytes, sent: bytearray
    ) -> None:
        client, transport = connection.client, connection.plain.transport
        what = kind[0] % (CLOSE + 1)
        if what == RAW:
            await connection.deliver(rest)
        elif what == HONEST:
            await connection.exchange()
        elif what == SEND and client.secured:
            sent += rest
            await connection.deliver(client.send(rest))
        elif what == DAMAGED:
            await connection.deliver(damaged(client.step(connection.socket.take()), rest))
        elif what == PAUSE:
            transport.pause_reading()
        elif what == RESUME:
            transport.resume_reading()
        elif what == ANSWER and connection.side.completed:
            transport.write(rest)
        elif what == CLOSE:
            transport.close()

    def systematic(self) -> Iterator[bytes]:
        for each in SOME_RECORDS:
            yield in_list([bytes([RAW]) + each])
            yield in_list([bytes([DAMAGED]), bytes([RAW]) + each])
            yield in_list([bytes([HONEST]), bytes([RAW]) + each])
            yield in_list([bytes([HONEST]), bytes([SEND]) + each, bytes([ANSWER]) + each])

    def drawn(self, chance: random.Random) -> bytes:
        steps = []
        for _ in range(chance.randrange(1, MAX_PIECES)):
            kind = chance.choice((RAW, HONEST, HONEST, SEND, DAMAGED, PAUSE, RESUME, ANSWER, CLOSE))
            rest = mutated(chance.choice(SOME_RECORDS), chance)
            steps.append(bytes([kind]) + rest)
        return in_list(steps)

    def check(self) -> None:
        self.feed(in_list([bytes([HONEST]), bytes([SEND]) + b"honest"]))

    def close(self) -> None:
        self._loop.close()


def damaged(data: bytes, how: bytes) -> bytes:
    """Return the client's bytes, cut or with changed bits as `how` says."""
    changed = bytearray(data)
    for at in range(0, len(how) - 2, 3):
        place = int.from_bytes(how[at : at + 2], "big")
        if changed:
            changed[place % len(changed)] ^= how[at + 2]
    return bytes(changed[: len(changed) - len(how) % 2])


@contextmanager
def sasl_port() -> Iterator[Target]:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "keys.json"
        file.write_bytes(TokenProvider().jwks())
        keys = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.plaintext.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{file}",
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        with secured(keys) as node:
            yield SaslPort(node)


@contextmanager
def tls_records() -> Iterator[Target]:
    target = TlsRecords()
    try:
        yield target
    finally:
        target.close()
