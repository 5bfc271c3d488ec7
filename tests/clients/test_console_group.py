"""Two console consumers of one group share a topic; when one leaves, the other gets all of it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.clients.cluster import ProcessCluster, quorate, run_quorate, wait_for

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

PATIENCE_S = 90.0
"""For one command on a machine that does much else."""


@contextmanager
def reading(cluster: ProcessCluster, topic: str, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    arguments = ("--topic", topic, "--group", f"{topic}-readers", "--from-beginning")
    with open(output, "wb") as out, open(output.with_suffix(".err"), "wb") as err:
        process = subprocess.Popen(
            quorate("console-consumer", "--bootstrap-server", cluster.bootstrap, *arguments),
            stdout=out,
            stderr=err,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def lines(*outputs: Path) -> list[str]:
    return sorted(line for each in outputs for line in each.read_text().split())


def members(cluster: ProcessCluster, topic: str) -> list[str]:
    """Those that have partitions."""
    told = run_quorate(
        "consumer-groups", "--bootstrap-server", cluster.bootstrap, "--describe", "--members",
        *("--verbose", "--group", f"{topic}-readers"), timeout_s=PATIENCE_S,
    )  # fmt: skip
    return [line for line in told.stdout.splitlines() if f"{topic}:" in line]


def send(cluster: ProcessCluster, topic: str, keys: range) -> None:
    text = "".join(f"{key}\t{key}\n" for key in keys)
    command = quorate("console-producer", "--bootstrap-server", cluster.bootstrap, "--topic", topic)
    subprocess.run(
        [*command, "--property", "parse.key=true"],
        input=text,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )


def test_two_share_a_topic(cluster: ProcessCluster, tmp_path: Path) -> None:
    topic = "shared-out"
    made = run_quorate(
        "topics", "--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic,
        *("--partitions", "4"), timeout_s=PATIENCE_S,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    first, second = tmp_path / "first", tmp_path / "second"
    with ExitStack() as running:
        leaving = running.enter_context(reading(cluster, topic, first))
        wait_for(lambda: len(members(cluster, topic)) == 1, "the first has all", PATIENCE_S)
        running.enter_context(reading(cluster, topic, second))
        wait_for(lambda: len(members(cluster, topic)) == 2, "both have a share", PATIENCE_S)
        send(cluster, topic, range(100))
        wait_for(lambda: len(lines(first, second)) == 100, "all was read", PATIENCE_S)
        assert lines(first) and lines(second)
        leaving.send_signal(signal.SIGINT)
        assert leaving.wait(PATIENCE_S) == 0, first.with_suffix(".err").read_text()
        wait_for(lambda: len(members(cluster, topic)) == 1, "the second has all", PATIENCE_S)
        send(cluster, topic, range(100, 150))
        wait_for(lambda: len(lines(first, second)) >= 150, "the rest was read", PATIENCE_S)
    assert lines(first, second) == sorted(map(str, range(150))), "nothing twice"
