"""The commands end with one sentence when a peer sends bytes that are no answer."""

from __future__ import annotations

import http.server
import json
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quorate.cli.client.connection import skip_tags
from quorate.cli.client.node_http import NodeHttp
from quorate.cli.main import main
from quorate.cli.status.explanations import NEXT_OFFSET, NotServed, get_from
from quorate.quorum.log.batches.batch import build_batch
from quorate.quorum.log.batches.compression import Codec
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.schemas import fetch, list_offsets, metadata
from quorate.quorum.protocol.varint import DecodeError
from tests.unit.cli.fake_kafka import API_VERSIONS, HEADER, FakeKafka

Damage = Callable[[bytes], bytes]


class DamagingKafka(FakeKafka):
    """A fake server that changes the bytes of every response of one API."""

    def __init__(self, answers: dict[Any, Any], api_key: int, damage: Damage) -> None:
        self._api_key, self._damage = api_key, damage
        super().__init__(answers)

    def _answer(self, frame: bytes) -> bytes | None:
        answer = super()._answer(frame)
        if answer is None or HEADER.unpack_from(frame)[0] != self._api_key:
            return answer
        return answer[:4] + self._damage(answer[4:])


def one_topic(server: list[FakeKafka]) -> dict[Any, Any]:
    """Return the answers of a broker with one partition, whose only batch has a damaged payload."""
    batch = bytearray(
        build_batch([Record(0, 1, b"k", b"v" * 100)], leader_epoch=0, codec=Codec.GZIP)
    )
    batch[70:90] = bytes(20)

    def described(_: Any) -> metadata.MetadataResponse:
        node = metadata.MetadataResponseBroker(node_id=1, host=server[0].host, port=server[0].port)
        partition = metadata.MetadataResponsePartition(
            partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
        )
        topic = metadata.MetadataResponseTopic(name="t", partitions=(partition,))
        return metadata.MetadataResponse(brokers=(node,), topics=(topic,))

    def offsets(_: Any) -> list_offsets.ListOffsetsResponse:
        found = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=0)
        topic = list_offsets.ListOffsetsTopicResponse(name="t", partitions=(found,))
        return list_offsets.ListOffsetsResponse(topics=(topic,))

    def fetched(_: Any) -> fetch.FetchResponse:
        data = fetch.PartitionData(partition_index=0, high_watermark=1, records=bytes(batch))
        topic = fetch.FetchableTopicResponse(topic="t", partitions=(data,))
        return fetch.FetchResponse(responses=(topic,))

    return {
        metadata.MetadataRequest: described,
        list_offsets.ListOffsetsRequest: offsets,
        fetch.FetchRequest: fetched,
    }


def output_of(api_key: int, damage: Damage, *arguments: str) -> str:
    """Return the only error line of a command that must end with status 1."""
    servers: list[FakeKafka] = []
    server = DamagingKafka(one_topic(servers), api_key, damage)
    servers.append(server)
    try:
        command, *rest = arguments
        given = [command, "--bootstrap-server", server.address, "--timeout", "2", *rest]
        result = CliRunner().invoke(main, given)
    finally:
        server.close()
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), "no traceback"
    (line,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    return line


@pytest.mark.parametrize("api_key", [API_VERSIONS, metadata.MetadataRequest.API_KEY])
@pytest.mark.parametrize(
    "damage",
    [lambda body: body[:-1], lambda body: b"", lambda body: b"\xff" * 40],
    ids=["cut off", "empty", "noise"],
)
def test_an_answer_that_cannot_be_decoded_is_one_sentence(api_key: int, damage: Damage) -> None:
    line = output_of(api_key, damage, "consumer-groups", "--list")
    assert "that cannot be decoded: " in line
    assert line.endswith("Check that a Kafka broker or controller listens on that port.")


def test_a_batch_that_cannot_be_decoded_is_one_sentence() -> None:
    arguments = ("console-consumer", "--topic", "t", "--from-beginning", "--max-messages", "1")
    line = output_of(-1, lambda body: body, *arguments)
    assert line.startswith("Error: t-0: the leader sent a batch at offset 0")


def test_a_response_header_that_is_cut_off_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="cut off"):
        skip_tags(struct.pack(">i", 7) + b"\x02\x01", 4)
    with pytest.raises(DecodeError, match="cut off"):
        skip_tags(struct.pack(">i", 7), 4)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is no cluster.json"),
        ("[]", "is no cluster.json"),
        ('{"bootstrap": 7, "controllers": [], "brokers": []}', "must be texts"),
        ('{"controllers": [], "brokers": []}', "lists no broker"),
    ],
)
def test_status_checks_the_cluster_file(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "cluster.json").write_text(content)
    result = CliRunner().invoke(main, ["status", "--dir", str(tmp_path)])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), "no traceback"
    assert says in result.output


def test_status_refuses_an_endless_cluster_file(tmp_path: Path) -> None:
    entry = {"bootstrap": "h:1", "controllers": [], "brokers": [], "pad": "x" * (1 << 20)}
    (tmp_path / "cluster.json").write_text(json.dumps(entry))
    result = CliRunner().invoke(main, ["status", "--dir", str(tmp_path)])
    assert result.exit_code == 1
    assert "has more than 1048576 bytes" in result.output


def test_status_without_a_cluster_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["status", "--dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "--bootstrap-server or --dir must be given" in result.output


@pytest.mark.parametrize(
    ("body", "offset"),
    [(b"{", "4"), (b"\xff\xfe", "4"), (b"[" * 100_000, "4"), (b"{}", "soon")],
    ids=["no JSON", "no UTF-8", "deep", "no offset"],
)
def test_a_change_log_that_cannot_be_decoded_counts_as_none(body: bytes, offset: str) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header(NEXT_OFFSET, offset)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(NotServed):
            get_from(NodeHttp(), [("127.0.0.1", server.server_port)], "/v1/changes")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
