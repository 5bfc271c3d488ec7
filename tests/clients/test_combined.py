"""A node that is controller and broker at once: the ready-made config/server.properties, with free
ports and a directory of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorate.cli.nodes.cluster_dir import free_ports
from tests.clients.cluster import quorate, run_quorate, wait_for
from tests.clients.librdkafka import admin, create_topic, producer

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


@contextmanager
def node(file: Path, overrides: list[str], log: Path) -> Iterator[None]:
    """Ends in order: the next start finds a clean directory."""
    options = [part for each in overrides for part in ("--override", each)]
    with open(log, "ab") as err:
        process = subprocess.Popen(quorate("server", str(file), *options), stderr=err)
    try:
        yield
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_one_process_is_both_and_keeps_what_it_was_given(tmp_path: Path) -> None:
    client, controller = free_ports(2)
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
        f"listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}\n"
        "controller.listener.names=CONTROLLER\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    formatted = run_quorate("storage", "format", "-t", CLUSTER_ID, "-c", str(file))
    assert formatted.returncode == 0, formatted.stderr
    log = tmp_path / "node.log"
    bootstrap = f"127.0.0.1:{client}"
    acknowledged: list[int | None] = []
    with node(file, [], log):
        wait_for(lambda: "is running" in log.read_text(), "the broker runs")
        create_topic(admin(bootstrap), "both", 1, 1)
        writer = producer(bootstrap)
        for number in range(100):
            writer.produce(
                "both",
                str(number),
                on_delivery=lambda error, message: acknowledged.append(message.offset()),
            )
        assert writer.flush(30) == 0
        status = run_quorate(
            "metadata-quorum", "--bootstrap-server", bootstrap, "describe", "--status"
        )
        assert "LeaderId:               1" in status.stdout, status.stdout + status.stderr
    assert acknowledged == list(range(100))
    with node(file, ["num.partitions=2"], log):
        read = run_quorate(
            "console-consumer",
            "--bootstrap-server",
            bootstrap,
            "--topic",
            "both",
            "--from-beginning",
            "--max-messages",
            "100",
        )
        assert read.stdout.split() == [str(number) for number in range(100)], read.stderr
