"""Bytes that no client should send: that connection ends with one log line, and nobody else
notices."""

from __future__ import annotations

import socket
import struct
from itertools import count

import pytest

from quorate.cli.nodes.cluster_dir import NodeEntry
from tests.clients.cluster import ProcessCluster, wait_for
from tests.clients.librdkafka import ANSWER_TIMEOUT_S, admin

pytestmark = pytest.mark.clients

TIMEOUT_S = 10.0
numbers = count()
MAX_REQUEST_BYTES = 104_857_600  # socket.request.max.bytes


def header(api_key: int, version: int, correlation_id: int = 7) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, 2) + b"me"


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


API_VERSIONS_V0 = header(18, 0)

# name: the bytes, and what stands in the log line
BAD_FRAMES = {
    "unknown api": (framed(header(9999, 0)), "API key 9999"),
    "api between kafka's nodes": (framed(header(4, 7)), "API key 4"),
    "header cut off": (framed(b"\x00\x03"), "malformed"),
    "empty frame": (framed(b""), "malformed"),
    "negative size": (struct.pack(">i", -1), "-1"),
    "oversized": (struct.pack(">i", MAX_REQUEST_BYTES + 1), str(MAX_REQUEST_BYTES + 1)),
    "tls": (bytes.fromhex("16030100c8010000c40303") + b"\x00" * 200, str(0x16030100)),
}
BAD_REQUESTS = {
    "version from the future": (framed(header(3, 99)), "Metadata version 99"),
    "version from the past": (framed(header(0, 2)), "Produce version 2"),
    "body cut off": (framed(header(3, 9)), "malformed"),
    "array longer than the frame": (
        framed(header(3, 1) + struct.pack(">i", 2**31 - 1)),
        "malformed",
    ),
    "http": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", str(int.from_bytes(b"GET ", "big"))),
}


def connected(node: tuple[str, int], host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(node, timeout=TIMEOUT_S, source_address=(host, 0))


def read_frame(connection: socket.socket) -> bytes:
    size = int.from_bytes(read_exactly(connection, 4), "big")
    return read_exactly(connection, size)


def read_exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        assert chunk, f"closed after {len(data)} of {count} bytes"
        data += chunk
    return data


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("case", BAD_FRAMES | BAD_REQUESTS)
def test_bad_bytes_to_a_broker(cluster: ProcessCluster, case: str) -> None:
    bytes_and_line = (BAD_FRAMES | BAD_REQUESTS)[case]
    refused_alone(cluster, cluster.entry()["brokers"][0], *bytes_and_line)


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_bad_bytes_to_a_controller(cluster: ProcessCluster, case: str) -> None:
    refused_alone(cluster, cluster.entry()["controllers"][0], *BAD_FRAMES[case])


def refused_alone(cluster: ProcessCluster, node: NodeEntry, data: bytes, told: str) -> None:
    address = (node["host"], node["port"])
    # Each client has a host of its own, because a node limits the lines about one host.
    host = f"127.0.0.{10 + next(numbers)}"
    with connected(address) as other, connected(address, host) as bad:
        peer = f"{host}:{bad.getsockname()[1]}"
        bad.sendall(data)
        assert is_closed(bad)
        other.sendall(framed(API_VERSIONS_V0))
        assert read_frame(other)[:6] == struct.pack(">ih", 7, 0)

    def lines() -> list[str]:
        return [line for line in cluster.node_log(node["id"]).splitlines() if peer in line]

    wait_for(lines, "the log has a line about it")
    (line,) = lines()
    assert told in line and "WARNING" in line, line


def test_a_future_version_of_api_versions_is_answered(cluster: ProcessCluster) -> None:
    """KIP-511: in version 0, with the versions that can be asked."""
    node = cluster.entry()["brokers"][0]
    with connected((node["host"], node["port"])) as connection:
        connection.sendall(framed(header(18, 99) + b"\x00"))
        answer = read_frame(connection)
    correlation_id, error, count, api_key, low, high = struct.unpack(">ihihhh", answer)
    assert (correlation_id, error, count, api_key) == (7, 35, 1, 18)
    assert (low, high) == (0, 4)


def test_requests_in_small_pieces_and_many_at_once(cluster: ProcessCluster) -> None:
    """TCP has no frames; answers come in the order of the requests."""
    node = cluster.entry()["brokers"][0]
    with connected((node["host"], node["port"])) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(API_VERSIONS_V0):
            connection.sendall(bytes([byte]))
        assert read_frame(connection)[:4] == struct.pack(">i", 7)
        connection.sendall(b"".join(framed(header(18, 0, number)) for number in range(100)))
        answered = [int.from_bytes(read_frame(connection)[:4], "big") for _ in range(100)]
    assert answered == list(range(100))


def test_a_client_that_never_reads_harms_nobody(cluster: ProcessCluster) -> None:
    node = cluster.entry()["brokers"][0]
    with connected((node["host"], node["port"])) as connection:
        connection.setblocking(False)
        requests = b"".join(framed(API_VERSIONS_V0) for _ in range(5_000))
        for _ in range(20):
            try:
                connection.send(requests)
            except BlockingIOError:
                break
        topics = admin(cluster.bootstrap).list_topics(timeout=ANSWER_TIMEOUT_S)
        assert len(topics.brokers) == 3


def test_no_fetch_as_a_replica_by_the_client_port(cluster: ProcessCluster) -> None:
    """Otherwise any client could move the high watermark. Fetch v4, replica 5, no topics."""
    node = cluster.entry()["brokers"][0]
    with connected((node["host"], node["port"])) as connection:
        body = struct.pack(">iiiibi", 5, 0, 0, 1000, 0, 0)
        connection.sendall(framed(header(1, 4) + body))
        assert is_closed(connection)
