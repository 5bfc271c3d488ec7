"""All targets by name, with the number of inputs that `make test` has time for."""

from __future__ import annotations

from typing import NamedTuple

from tests.fuzz import (
    answers,
    authentication,
    controller_answers,
    directory_files,
    ports,
    produced,
    stored,
    streams,
    tools,
)
from tests.fuzz.target import Opened


class Entry(NamedTuple):
    opened: Opened
    quick_inputs: int


TARGETS: dict[str, Entry] = {
    "client-port": Entry(ports.client_port, 2_000),
    "pipelines": Entry(ports.pipelines, 400),
    "controller-port": Entry(ports.controller_port, 2_000),
    "replication-port": Entry(ports.replication_port, 2_000),
    "node-greeting": Entry(ports.node_greeting, 2_000),
    "node-messages": Entry(ports.node_messages, 2_000),
    "messages-of-a-broker": Entry(ports.messages_of_a_broker, 2_500),
    "node-messages-to-a-broker": Entry(ports.node_messages_to_a_broker, 2_000),
    "answers": Entry(answers.answers, 250),
    "controller-answers": Entry(controller_answers.controller_answers, 60),
    "produced-batches": Entry(produced.produced_batches, 1_000),
    "http-port": Entry(ports.http_port, 800),
    "kafka-link": Entry(streams.kafka_link, 1_000),
    "web-socket-link": Entry(streams.web_socket_link, 2_000),
    "http-link": Entry(streams.http_link, 1_500),
    "record-batches": Entry(stored.record_batches, 20_000),
    "records": Entry(stored.records, 20_000),
    "snapshots": Entry(stored.snapshots, 8_000),
    "fault-control": Entry(tools.fault_control, 5_000),
    "archives": Entry(tools.archives, 300),
    "sasl-port": Entry(authentication.sasl_port, 400),
    "tls-records": Entry(authentication.tls_records, 300),
    "directory-files": Entry(directory_files.directory_files, 2_000),
    "small-files": Entry(stored.small_files, 20_000),
}
