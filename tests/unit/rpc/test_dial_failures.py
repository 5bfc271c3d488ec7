"""Connections that a node cannot open. If TLS is the cause, the node logs the reason, once."""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import socket
import ssl
from typing import Any

import pytest

from quorate.quorum.clock import AsyncioClock
from quorate.quorum.rpc.connector import Connector, ConnectorSettings
from quorate.quorum.rpc.dial_failures import unreachable
from quorate.quorum.rpc.handshake import NodeSettings
from quorate.quorum.rpc.tls.dialing_transport import DialingTransport
from quorate.quorum.rpc.tls.issuing import Issued
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import (
    ANONYMOUS_PEER,
    Address,
    PeerIdentity,
    PeerUnreachable,
    TlsFailed,
    Wire,
)
from tests.certificates import authority, certificate
from tests.unit.rpc.nets import RUNNERS, Net, Recorder, on_real_nets
from tests.unit.rpc.test_connector import hello_of
from tests.unit.rpc.tls.test_listener_sockets import Port

pytestmark = pytest.mark.timeout(30)
OURS, OTHER = authority(), authority("another")
LOG = "quorate.quorum.rpc.handshake"


class Dial:
    """The TLS of a node that connects. It trusts `trusted`, and shows a certificate of `own`."""

    def __init__(self, tmp_path: Any, trusted: Issued, own: Issued) -> None:
        made = trusted.certificate_pem.decode()
        self.dial_context = ssl.create_default_context(cadata=made)
        self.dial_context.check_hostname = False
        keystore = tmp_path / "own.pem"
        keystore.write_bytes(certificate("CN=node", by=own).keystore_pem)
        self.dial_context.load_cert_chain(keystore)

    def dialed_identity(self, transport: Any) -> PeerIdentity:
        return ANONYMOUS_PEER


class Watching:
    def on_up(self, channel: Any) -> None: ...

    def on_down(self, channel: Any) -> None: ...

    def on_refused(self) -> None: ...


class Attempts(DialingTransport):
    """Sets `enough` when `wanted` attempts have failed because of TLS."""

    def __init__(self, dial: Dial, wanted: int) -> None:
        super().__init__(AioTransport(), dial)
        self._left = wanted
        self.enough = asyncio.Event()

    async def connect(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().connect(*args, **options)
        except TlsFailed:
            self._left -= 1
            if not self._left:
                self.enough.set()
            raise


@pytest.mark.parametrize(
    ("trusted", "own", "reason"),
    [
        (OTHER, OURS, "the certificate of the peer is refused: self-signed certificate in"),
        (OURS, OTHER, "the peer does not trust the certificate of this node"),
    ],
)
async def test_a_connector_logs_the_failure_once(
    trusted: Issued, own: Issued, reason: str, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOG)
    port = Port("requested")
    address = await port.open(Wire.NODE, Wire.KAFKA)
    transport = Attempts(Dial(tmp_path, trusted, own), 3)
    node = NodeSettings(clock=AsyncioClock(), hello=lambda: hello_of(1), handlers={})
    settings = ConnectorSettings(node=node, backoff_ms=1, max_backoff_ms=2)
    connector = Connector(address, transport, random.Random(1), settings, Watching())
    connector.start()
    async with asyncio.timeout(10):
        await transport.enough.wait()
    connector.close()
    await port.listener.close()
    (line,) = [each.getMessage() for each in caplog.records if each.name == LOG]
    assert f"{address}: {reason}" in line


@pytest.mark.parametrize("nested", [0, 1, 2])
def test_the_reason_is_that_of_openssl(nested: int) -> None:
    error: Exception = ssl.SSLError(1, "wrong version number")
    vars(error)["reason"] = "WRONG_VERSION_NUMBER"
    for _ in range(nested):
        outer = ssl.SSLError(1, "of a library, without a reason")
        outer.__cause__, error = error, outer
    failure = unreachable(Address("b", 1), error)
    assert isinstance(failure, TlsFailed)
    assert "the peer does not use TLS" in str(failure)


def test_a_failure_without_tls_has_no_other_text() -> None:
    failure = unreachable(Address("b", 1), ConnectionResetError("reset"))
    assert not isinstance(failure, TlsFailed)
    assert str(failure) == "cannot reach b:1: ConnectionResetError('reset')"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "no answer in time"),
        (socket.gaierror(-2, "Name or service not known"), "the host name does not resolve"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "No route to host"),
    ],
)
def test_an_error_of_the_system_is_named_in_words(error: OSError, reason: str) -> None:
    assert str(unreachable(Address("b", 1), error)) == f"cannot reach b:1: {reason}"
    wrapped = ValueError("of aiohttp")
    vars(wrapped)["os_error"] = error
    assert str(unreachable(Address("b", 1), wrapped)) == f"cannot reach b:1: {reason}"


HOSTS = (
    "a" * 64,
    ".",
    "a..b",
    "a\0b",
    "\u00fc" * 70,
    "xn--\u00ff",
    "\u3002",
    "a/b",
    "a@b",
    "[",
    "::g",
)
"""Texts of registrations, voters and operators that no name and no address can be."""


@on_real_nets
@pytest.mark.parametrize("wire", [Wire.NODE, Wire.KAFKA])
def test_a_host_that_cannot_exist_is_unreachable(kind: str, wire: Wire) -> None:
    """Another exception would end the task that connects, and thus the node. Brokers and voters
    state the hosts that other nodes connect to."""

    async def scenario(net: Net) -> None:
        for host in HOSTS:
            with pytest.raises(PeerUnreachable):
                await net.connect(Address(host, 1), wire, Recorder())
        assert not net.failures

    RUNNERS[kind](scenario)
