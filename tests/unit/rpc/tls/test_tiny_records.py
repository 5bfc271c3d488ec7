"""TLS records of a single byte: a client may send thousands of them at once."""

from __future__ import annotations

import asyncio

import pytest

from quorate.quorum.rpc.tls import tls_protocol
from tests.unit.rpc.tls.memory import Client, Connection, Side, client_context
from tests.unit.rpc.tls.test_tls_protocol import context, run


@pytest.mark.parametrize("early", [False, True])
def test_tiny_records_are_decrypted_in_slices(early: bool) -> None:
    """A record may hold a single byte. Those of one read took 15 ms, and uvloop reads up to 32
    times in one iteration of its loop."""

    async def scenario() -> None:
        connection = Connection(Side(context()), Client(client_context()))
        records = 3 * tls_protocol.MAX_RECORDS + 1
        if early:  # they follow the last message of the handshake
            out = connection.client.step()
            while not connection.client.secured:
                await connection.deliver(out)
                out = connection.client.step(connection.socket.take())
            pieces = [connection.client.send(b"x") for _ in range(records)]
            connection.protocol.data_received(out + b"".join(pieces))
            await asyncio.sleep(0)  # the step of the handshake
        else:
            await connection.handshake()
            pieces = [connection.client.send(b"x") for _ in range(records)]
            connection.protocol.data_received(b"".join(pieces))
        for number in (1, 2, 3):
            assert len(connection.plain.received) == number * tls_protocol.MAX_RECORDS
            assert not connection.socket.reading
            await asyncio.sleep(0)
        assert len(connection.plain.received) == records
        assert connection.socket.reading

    run(scenario)


def test_a_pause_holds_while_tiny_records_wait() -> None:
    async def scenario() -> None:
        connection = Connection(Side(context()), Client(client_context()))
        await connection.handshake()
        pieces = [connection.client.send(b"x") for _ in range(2 * tls_protocol.MAX_RECORDS)]
        connection.protocol.data_received(b"".join(pieces))
        connection.plain.transport.pause_reading()
        for _ in range(3):
            await asyncio.sleep(0)
            assert len(connection.plain.received) == tls_protocol.MAX_RECORDS
            assert not connection.socket.reading
        connection.plain.transport.resume_reading()
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(connection.plain.received) == 2 * tls_protocol.MAX_RECORDS
        assert connection.socket.reading

    run(scenario)
