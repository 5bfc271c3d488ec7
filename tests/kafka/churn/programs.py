"""The Java programs of the churn: a worker of Kafka Connect, and a Streams application."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from quorate.cli.nodes.cluster_dir import free_ports
from tests.clients.cluster import wait_for
from tests.kafka.tools import libs

HERE = Path(__file__).parent
SOURCES = ("ChurnSource.java", "ChurnCounts.java")
JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
START_TIMEOUT_S = 120.0
ANSWER_TIMEOUT_S = 30.0
CONNECT_TOPICS = ("connect-offsets", "connect-configs", "connect-status")


def missing_streams() -> str:
    """Return the reason for which the Streams application cannot run, or ""."""
    if not list(libs().glob("kafka-streams-*.jar")):
        return f"no jar of Kafka Streams in {libs()} (make test-kafka fetches it)"
    return ""


def compiled(directory: Path) -> str:
    """Compile the programs. Return the class path that has them and Kafka's jars."""
    jars = ":".join(str(each) for each in sorted(libs().glob("*.jar")))
    sources = [str(HERE / each) for each in SOURCES]
    compiler = ("java", *JAVA_OPTIONS, "-m", "jdk.compiler/com.sun.tools.javac.Main")
    done = subprocess.run(
        [*compiler, "-d", str(directory), "-cp", jars, *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    services = directory / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "org.apache.kafka.connect.source.SourceConnector").write_text("ChurnSource\n")
    return f"{directory}:{libs()}/*"


class Worker:
    """A distributed worker of Kafka Connect with a REST port."""

    def __init__(self, root: Path, classpath: str, bootstrap: str) -> None:
        self._root, self._classpath = root, classpath
        (self._port,) = free_ports(1)
        root.mkdir()
        (root / "worker.properties").write_text(
            f"bootstrap.servers={bootstrap}\n"
            "group.id=churn-connect\n"
            f"listeners=http://127.0.0.1:{self._port}\n"
            "key.converter=org.apache.kafka.connect.json.JsonConverter\n"
            "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
            "value.converter.schemas.enable=false\n"
            "plugin.discovery=service_load\n"
            "offset.flush.interval.ms=250\n"
            "offset.storage.topic=connect-offsets\n"
            "config.storage.topic=connect-configs\n"
            "status.storage.topic=connect-status\n"
            "scheduled.rebalance.max.delay.ms=0\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the worker, and wait until it has read its three topics."""
        command = ("java", *JAVA_OPTIONS, "-cp", self._classpath)
        with open(self._root / "worker.log", "ab") as log:
            self._process = subprocess.Popen(
                (
                    *command,
                    "org.apache.kafka.connect.cli.ConnectDistributed",
                    str(self._root / "worker.properties"),
                ),
                stdout=log,
                stderr=log,
            )
        wait_for(lambda: self.ask("GET", "/connectors") is not None, "Connect", START_TIMEOUT_S)

    def kill(self) -> None:
        """End the worker without any of its last writes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Return the response to a request, or None if the worker refuses it for now."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as response:
                content = response.read()
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None
        return json.loads(content) if content else {}

    def configure(self, number: int, partitions: int) -> None:
        """Give the connector a config that differs by `number`, after up to ANSWER_TIMEOUT_S."""
        config = {
            "connector.class": "ChurnSource",
            "tasks.max": "1",
            "topic": "made",
            "partitions": str(partitions),
            "number": str(number),
            "padding": "x" * 2_000,
        }
        wait_for(
            lambda: self.ask("PUT", "/connectors/churn/config", config),
            f"config {number}",
            START_TIMEOUT_S,
        )

    def offsets(self) -> dict[str, int]:
        """Return the stored position of each source partition."""
        found = self.ask("GET", "/connectors/churn/offsets")
        rows = found["offsets"] if found else []
        return {each["partition"]["place"]: each["offset"]["at"] for each in rows}


class Counts:
    """The Streams application, with its state in a directory of its own."""

    def __init__(self, directory: Path, classpath: str, bootstrap: str, topic: str) -> None:
        command = ("java", *JAVA_OPTIONS, "-cp", classpath, "ChurnCounts")
        directory.mkdir(parents=True)
        with open(directory / "streams.log", "ab") as log:
            self._process = subprocess.Popen(
                (*command, bootstrap, str(directory / "state"), topic),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def counts(self) -> tuple[int, int]:
        """Return the number of keys in the store, and the sum of their counts."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        keys, total = self._lines.get(timeout=START_TIMEOUT_S).split()
        return int(keys), int(total)

    def kill(self) -> None:
        """End the application without a last commit."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
