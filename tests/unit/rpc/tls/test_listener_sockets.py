"""A TLS port on real sockets, on both event loops: its limits hold from accept on, and each client
that does not fit gets one clear line."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.rpc.kafka.connection_quotas import ConnectionLimits, ConnectionQuotas
from quorate.quorum.rpc.kafka.server import KafkaServer
from quorate.quorum.rpc.tls import tls_protocol
from quorate.quorum.rpc.tls.listener_tls import ListenerTls
from quorate.quorum.rpc.transport import AioListener, AioTransport
from quorate.quorum.seams import Accept, Address, Link, Wire
from tests.certificates import ALICE, certificate
from tests.unit.rpc.nets import MAX_FRAME_BYTES, Recorder
from tests.unit.rpc.tls.memory import client_context
from tests.unit.rpc.tls.test_tls_protocol import settings_of

pytestmark = pytest.mark.timeout(30)
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
NewLoop = Callable[[], asyncio.AbstractEventLoop]
FRAME = b"\x00\x00\x00\x05hello"
SILENT = 5000
SERVED_S, SILENT_S = 60.0, 1000.0
"""Far less than the silent clients may take, also on a busy machine."""


class Port:
    """A listener with TLS. It answers each frame with the same frame."""

    def __init__(self, client_auth: str = "none") -> None:
        self.tls = ListenerTls("SECURE", settings_of(client_auth), AsyncioClock())
        self.handler = Recorder(lambda link, frame: link.send(frame))
        self.listener: AioListener

    async def open(self, *wires: Wire, accept: Accept | None = None) -> Address:
        made = await AioTransport().listen(
            Address("127.0.0.1", 0),
            dict.fromkeys(wires or (Wire.KAFKA,), accept or self.handler),
            max_frame_bytes=MAX_FRAME_BYTES,
            tls=self.tls,
        )
        assert isinstance(made, AioListener)
        self.listener = made
        return made.address


async def connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(
        address.host, address.port, ssl=client_context(), server_hostname="localhost"
    )


async def refused(address: Address, sent: bytes) -> None:
    """Send bytes without TLS, and wait until the server has closed the connection."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(sent)
    try:
        assert len(await reader.read()) < 10, "only an alert"
    except ConnectionResetError:
        pass
    finally:
        writer.close()


def run(loop: NewLoop, scenario: Callable[[], object]) -> None:
    failures: list[object] = []

    async def checked() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, each: failures.append(each))
        work = scenario()
        assert asyncio.iscoroutine(work)
        await work
        assert not failures

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(checked())


@LOOPS
@pytest.mark.parametrize("wires", [(Wire.KAFKA,), (Wire.NODE, Wire.KAFKA, Wire.HTTP)])
def test_frames_over_tls(loop: NewLoop, wires: tuple[Wire, ...]) -> None:
    """Also on a port that must first find out the protocol, and with large frames."""

    async def scenario() -> None:
        port = Port()
        address = await port.open(*wires)
        reader, writer = await connect(address)
        large = (900_000).to_bytes(4, "big") + bytes(900_000)
        writer.write(FRAME + large)
        assert await reader.readexactly(len(FRAME) + len(large)) == FRAME + large
        writer.close()
        await port.listener.close()
        assert (port.tls.completed, dict(port.tls.failures)) == (1, {})

    run(loop, scenario)


@LOOPS
@pytest.mark.parametrize("client_auth", ["requested", "required"])
@pytest.mark.parametrize("wires", [(Wire.KAFKA,), (Wire.NODE, Wire.KAFKA, Wire.HTTP)])
def test_the_handler_learns_the_identity_before_the_first_frame(
    loop: NewLoop, client_auth: str, wires: tuple[Wire, ...], tmp_path: Path
) -> None:
    """On a port of several protocols, the link begins after the handshake."""
    keystore = tmp_path / "keystore.pem"
    keystore.write_bytes(certificate(ALICE).keystore_pem)

    async def scenario() -> None:
        port = Port(client_auth)
        server = KafkaServer({}, AsyncioClock())
        principal: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def accept(link: Link) -> Recorder:
            connection = server.accept(link)
            handler = Recorder(lambda link, frame: principal.set_result(str(connection.principal)))
            handler.on_identified = connection.on_identified  # type: ignore[attr-defined]
            return handler(link)

        address = await port.open(*wires, accept=accept)
        context = client_context()
        context.load_cert_chain(keystore)
        _, writer = await asyncio.open_connection(
            address.host, address.port, ssl=context, server_hostname="localhost"
        )
        writer.write(FRAME)
        async with asyncio.timeout(5):
            assert await principal == f"User:{ALICE}"
        writer.close()
        await port.listener.close()

    run(loop, scenario)


@LOOPS
def test_clients_without_tls_get_one_line_per_interval(
    loop: NewLoop, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        port = Port()
        address = await port.open()
        for sent in (FRAME, b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n"):
            await refused(address, sent)
        assert port.tls.failures == {"not TLS": 3}
        await port.listener.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        run(loop, scenario)
    (line,) = caplog.messages
    assert "with listener SECURE failed: the client does not begin a TLS handshake" in line


def test_a_tls_client_at_a_plaintext_port_gets_a_clear_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        listener = await AioTransport().listen(
            Address("127.0.0.1", 0), {Wire.KAFKA: Recorder()}, max_frame_bytes=MAX_FRAME_BYTES
        )
        for _ in range(3):  # clients try again; they must not fill the log
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await connect(listener.address)
        await listener.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        run(asyncio.new_event_loop, scenario)
    (line,) = caplog.messages
    assert "does it use security.protocol=SSL on a PLAINTEXT listener?" in line


@LOOPS
def test_silent_and_half_open_connections_do_not_keep_out_a_good_client(loop: NewLoop) -> None:
    """The limits count a connection from accept on. Those without a request make room first."""
    most = 50

    async def scenario() -> None:
        port = Port()
        quotas = ConnectionQuotas(AsyncioClock(), ConnectionLimits(max_connections=most))
        server = KafkaServer({}, AsyncioClock(), quotas=quotas)
        address = await port.open(accept=server.accept)
        hello = ssl.MemoryBIO()
        client = client_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        begun = hello.read()
        silent = []
        for number in range(4 * most):
            _, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(begun if number % 2 else b"")
            silent.append(writer)
        async with asyncio.timeout(2):
            _, writer = await connect(address)
        assert len(quotas) == most
        for each in (*silent, writer):
            each.transport.abort()
        await port.listener.close()

    run(loop, scenario)


@pytest.mark.long
@pytest.mark.timeout(300)
@LOOPS
def test_a_new_client_is_served_beside_5000_silent_ones(
    loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of them have begun a handshake. Handshakes that are not completed hold no other up."""
    monkeypatch.setattr(tls_protocol, "HANDSHAKE_TIMEOUT_S", SILENT_S)

    async def scenario() -> None:
        port = Port()
        address = await port.open()
        opened = [await asyncio.open_connection(address.host, address.port) for _ in range(SILENT)]
        for _, each in opened[: SILENT // 2]:
            each.write(b"\x16")
        try:
            async with asyncio.timeout(SERVED_S):
                reader, writer = await connect(address)
                writer.write(FRAME)
                assert await reader.readexactly(len(FRAME)) == FRAME
            assert (port.tls.completed, dict(port.tls.failures)) == (1, {})
            writer.transport.abort()
        finally:
            for _, each in opened:
                each.transport.abort()
            for _, each in opened:  # uvloop's close waits forever for one that is left
                with suppress(OSError):
                    await each.wait_closed()
        await port.listener.close()

    run(loop, scenario)


@LOOPS
def test_a_silent_connection_is_closed_in_time(
    loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_protocol, "HANDSHAKE_TIMEOUT_S", 0.1)

    async def scenario() -> None:
        port = Port()
        address = await port.open()
        await refused(address, b"")
        assert port.tls.failures == {"timed out": 1}
        await port.listener.close()

    run(loop, scenario)


@LOOPS
def test_the_listener_closes_connections_in_the_handshake(loop: NewLoop) -> None:
    async def scenario() -> None:
        port = Port()
        address = await port.open(Wire.NODE, Wire.KAFKA, Wire.HTTP)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        await asyncio.sleep(0.05)
        async with asyncio.timeout(2):
            await port.listener.close()
            with pytest.raises(ConnectionResetError):
                await reader.read()
                raise ConnectionResetError
        writer.close()

    run(loop, scenario)
