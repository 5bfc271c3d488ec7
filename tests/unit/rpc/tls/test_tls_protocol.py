"""The TLS protocol over bytes that tests cut as they like."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.config.principal_mapping import parse_rules
from quorate.quorum.rpc.tls import tls_protocol
from quorate.quorum.rpc.tls.context import server_context
from quorate.quorum.rpc.tls.issuing import Issued
from quorate.quorum.rpc.tls.settings import StoreSettings, TlsSettings
from quorate.quorum.rpc.tls.tls_transport import PIECE_BYTES
from tests.certificates import ALICE, authority, certificate
from tests.unit.rpc.tls.memory import Client, Connection, Side, client_context

FULL_ABOVE_BYTES = 64 * 1024
ALERT = b"an alert of OpenSSL, 31 bytes.."
PIECES = st.lists(st.integers(1, 600), max_size=40)


@cache
def node() -> Issued:
    return certificate("CN=node")


@cache
def alice() -> Issued:
    return certificate(ALICE)


def settings_of(client_auth: str = "none", protocols: tuple[str, ...] = ()) -> TlsSettings:
    empty = StoreSettings(prefix="", type="PEM", location=None, password=None, pem=None)
    return TlsSettings(
        keystore=StoreSettings(
            prefix="ssl.keystore",
            type="PEM",
            location=None,
            password=None,
            pem=node().keystore_pem.decode(),
        ),
        truststore=StoreSettings(
            prefix="ssl.truststore",
            type="PEM",
            location=None,
            password=None,
            pem=authority().certificate_pem.decode(),
        )
        if client_auth != "none"
        else empty,
        client_auth=client_auth,
        protocols=protocols or ("TLSv1.2", "TLSv1.3"),
        cipher_suites=(),
        rules=parse_rules("DEFAULT"),
    )


@cache
def context(client_auth: str = "none", protocol: str = "") -> ssl.SSLContext:
    return server_context(settings_of(client_auth, (protocol,) if protocol else ()))


def with_certificate(tmp: Path, issued: Issued) -> ssl.SSLContext:
    file = tmp / "client.pem"
    file.write_bytes(issued.keystore_pem)
    made = client_context()
    made.load_cert_chain(file)
    return made


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await scenario()

    asyncio.run(bounded())


@settings(max_examples=40)
@given(pieces=PIECES, sent=st.lists(st.binary(max_size=700), max_size=5), small=st.booleans())
def test_any_cut_of_the_bytes_gives_the_same_plaintext(
    pieces: list[int], sent: list[bytes], small: bool
) -> None:
    """The buffer of decryption may be smaller than a record, and requests may follow the handshake
    in the same packet."""

    async def scenario() -> None:
        side = Side(context(), 64 if small else 1 << 18)
        connection = Connection(side, Client(client_context()))
        await connection.handshake(pieces)
        for data in sent:
            await connection.exchange(connection.client.send(data), pieces)
        assert bytes(connection.plain.received) == b"".join(sent)
        assert connection.plain.calls[:2] == ["made", "identified"]
        connection.plain.transport.write(b"answer")
        await connection.exchange()
        assert connection.client.received == b"answer"
        assert (side.completed, side.failures) == (1, [])

    run(scenario)


@settings(max_examples=25)
@given(pieces=PIECES, version=st.sampled_from(["TLSv1.2", "TLSv1.3"]))
def test_data_behind_the_last_message_of_the_handshake(pieces: list[int], version: str) -> None:
    async def scenario() -> None:
        connection = Connection(Side(context("none", version)), Client(client_context()))
        out = connection.client.step()
        while not connection.client.secured:
            await connection.deliver(out, pieces)
            out = connection.client.step(connection.socket.take())
        await connection.exchange(out + connection.client.send(b"early"), pieces)
        assert bytes(connection.plain.received) == b"early"

    run(scenario)


@settings(max_examples=60)
@given(noise=st.binary(min_size=1, max_size=300), cut=st.integers(0, 3000), plain=st.booleans())
def test_noise_closes_the_connection_and_nothing_else(noise: bytes, cut: int, plain: bool) -> None:
    """At any place of a handshake or of a session: no exception, no plaintext that the client did
    not send."""

    async def scenario() -> None:
        side = Side(context())
        connection = Connection(side, Client(client_context()))
        if plain:
            await connection.handshake()
            data = connection.client.send(b"x" * 500)
        else:
            data = connection.client.step()
        await connection.deliver(data[: cut % (len(data) + 1)] + noise)
        assert bytes(connection.plain.received) != b"x" * 500 or cut % (len(data) + 1) == len(data)
        connection.protocol.connection_lost(None)
        assert connection.plain.calls[-1] == "lost"

    run(scenario)


def test_plaintext_is_refused_by_its_first_byte() -> None:
    async def scenario() -> None:
        side = Side(context())
        connection = Connection(side, Client(client_context()))
        await connection.deliver(b"\x00\x00\x00\x20\x00\x12")
        assert connection.socket.aborted
        assert side.failures == ["not TLS"]
        assert not connection.plain.received

    run(scenario)


def test_a_handshake_that_is_not_completed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_protocol, "HANDSHAKE_TIMEOUT_S", 0.05)

    async def scenario() -> None:
        side = Side(context())
        silent, half = (Connection(side, Client(client_context())) for _ in range(2))
        await half.deliver(half.client.step())
        done = Connection(side, Client(client_context()))
        await done.handshake()
        await asyncio.sleep(0.1)
        assert silent.socket.aborted and half.socket.aborted
        assert not done.socket.is_closing()
        assert side.failures == ["timed out"] * 2

    run(scenario)


def test_a_client_that_leaves_during_the_handshake_is_counted() -> None:
    async def scenario() -> None:
        side = Side(context())
        connection = Connection(side, Client(client_context()))
        await connection.deliver(connection.client.step())
        connection.protocol.connection_lost(None)
        assert side.failures == ["closed by the client"]
        assert connection.plain.calls == ["made", "lost"]

    run(scenario)


def test_the_socket_is_not_read_while_a_step_waits_or_the_protocol_pauses() -> None:
    async def scenario() -> None:
        connection = Connection(Side(context()), Client(client_context()))
        connection.protocol.data_received(connection.client.step())
        assert not connection.socket.is_reading()  # the step is due in the next iteration
        await connection.deliver(b"")
        assert connection.socket.is_reading()
        await connection.exchange()
        connection.plain.on_data = connection.plain.transport.pause_reading
        first = connection.client.send(b"one")
        connection.side.buffer = bytearray(3)
        await connection.deliver(first + connection.client.send(b"two"))
        assert (bytes(connection.plain.received), connection.socket.is_reading()) == (b"one", False)
        connection.plain.transport.resume_reading()
        await connection.deliver(b"")
        assert bytes(connection.plain.received) == b"onetwo"

    run(scenario)


def test_a_paused_handshake_does_not_go_on() -> None:
    """Quotas pause a connection at accept (KIP-612)."""

    async def scenario() -> None:
        connection = Connection(Side(context()), Client(client_context()))
        connection.plain.transport.pause_reading()
        assert not connection.socket.is_reading()
        connection.plain.transport.resume_reading()
        assert connection.socket.is_reading()
        await connection.handshake()

    run(scenario)


def test_a_large_response_is_encrypted_as_the_socket_takes_it() -> None:
    async def scenario() -> None:
        connection = Connection(Side(context()), Client(client_context()), FULL_ABOVE_BYTES)
        await connection.handshake()
        data = bytes(range(256)) * 40_000  # 10 MB
        connection.plain.transport.write(memoryview(data))
        pending_bytes = connection.plain.transport.get_write_buffer_size()
        assert pending_bytes >= len(data)
        assert len(connection.socket.written) < 2 * PIECE_BYTES
        assert connection.plain.calls[-1] == "pause"
        connection.plain.transport.close()  # sends what is pending first
        assert not connection.socket.is_closing()
        while not connection.socket.is_closing():
            connection.client.step(connection.socket.take())
            await asyncio.sleep(0)
        connection.client.step(connection.socket.take())
        assert bytes(connection.client.received) == data
        assert connection.client.ended
        assert connection.plain.calls[-1] == "resume"

    run(scenario)


class AnsweringSession(ssl.SSLObject):
    """A session that answers whatever it reads, as that of TLS 1.2 answers each demand for a
    renegotiation with an alert. It begins when `outgoing` is set."""

    outgoing: ssl.MemoryBIO | None = None

    def read(self, *args: Any, **how: Any) -> Any:
        if self.outgoing is not None:
            self.outgoing.write(ALERT)
        return super().read(*args, **how)


def test_the_answers_of_openssl_are_sent_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """They must not gather in memory until the protocol above sends something."""

    async def scenario() -> None:
        made = server_context(settings_of())
        monkeypatch.setattr(made, "sslobject_class", AnsweringSession)
        connection = Connection(Side(made), Client(client_context()))
        await connection.handshake()
        session = connection.protocol._session
        assert isinstance(session, AnsweringSession)
        session.outgoing = connection.protocol._outgoing
        answered = 0
        for _ in range(tls_protocol.MAX_ANSWER_BYTES):
            await connection.deliver(connection.client.send(b"x"))
            if connection.socket.aborted:
                break
            sent = connection.socket.take()
            assert sent and not sent.replace(ALERT, b"")
            answered += len(sent)
        assert connection.socket.aborted
        assert 0 < answered <= tls_protocol.MAX_ANSWER_BYTES

    run(scenario)


@pytest.mark.parametrize("notify", [True, False])
def test_the_end_of_the_client_with_and_without_close_notify(notify: bool) -> None:
    async def scenario() -> None:
        connection = Connection(Side(context()), Client(client_context()))
        await connection.handshake()
        await connection.exchange(connection.client.send(b"last"))
        if notify:
            with pytest.raises(ssl.SSLWantReadError):
                connection.client.session.unwrap()
            await connection.deliver(connection.client.outgoing.read())
            assert connection.socket.is_closing()
        else:
            assert not connection.protocol.eof_received()
        assert connection.plain.calls == ["made", "identified", "data", "eof"]

    run(scenario)


def test_many_handshakes_run_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two slices, the event loop serves others."""

    async def scenario() -> None:
        side = Side(context())
        connections = [Connection(side, Client(client_context())) for _ in range(40)]
        for each in connections:
            each.protocol.data_received(each.client.step())
        iterations = 0
        while any(not each.socket.written for each in connections):
            await asyncio.sleep(0)
            iterations += 1
        assert 2 < iterations <= 60

    from quorate.quorum.rpc.tls import handshakes

    monkeypatch.setattr(handshakes, "SLICE_S", 0.001)
    run(scenario)


def test_a_required_certificate_gives_the_identity(tmp_path: Path) -> None:
    async def scenario() -> None:
        side = Side(context("required"))
        connection = Connection(side, Client(with_certificate(tmp_path, alice())))
        await connection.handshake()
        identity = connection.plain.identity
        assert identity is not None and identity.verified
        assert str(identity.principal) == f"User:{ALICE}"

    run(scenario)


def test_an_error_that_no_code_expects_ends_only_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A library may raise anything about the certificate of a client."""

    def fail(self: Side, session: ssl.SSLObject) -> None:
        raise RuntimeError("a surprise of a library")

    unhandled: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, each: unhandled.append(each))
        side = Side(context())
        connection, other = (Connection(side, Client(client_context())) for _ in range(2))
        with monkeypatch.context() as patched:
            patched.setattr(Side, "identity_of", fail)
            await connection.exchange()
        assert connection.socket.is_closing() and side.failures == ["unexpected"]
        await other.handshake()

    run(scenario)
    assert not unhandled


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("wrong", ["none", "expired", "other authority"])
def test_a_wrong_certificate_is_refused_with_an_alert(
    tmp_path: Path, version: str, wrong: str
) -> None:
    issued = {
        "none": None,
        "expired": certificate(ALICE, expired=True),
        "other authority": certificate(ALICE, by=authority("other")),
    }[wrong]
    made = client_context() if issued is None else with_certificate(tmp_path, issued)

    async def scenario() -> None:
        side = Side(context("required", version))
        connection = Connection(side, Client(made))
        with pytest.raises(ssl.SSLError, match="alert"):
            await connection.exchange()
        assert connection.socket.is_closing() and "identified" not in connection.plain.calls
        reason = (
            "PEER_DID_NOT_RETURN_A_CERTIFICATE" if wrong == "none" else "CERTIFICATE_VERIFY_FAILED"
        )
        assert side.failures == [reason]

    run(scenario)
