"""A Spark standalone cluster of this machine: one master, some workers, loopback only."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from quorate.quorum.analytics.spark.java import ensure_java

SPARK_HOME = Path(pyspark.__file__).parent
LOCALHOST = "127.0.0.1"
START_S = 90.0
JOB_S = 600.0


def environment() -> dict[str, str]:
    ensure_java()
    return os.environ | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOCALHOST,
        "SPARK_DAEMON_MEMORY": "128m",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@contextmanager
def standalone(directory: Path, workers: int = 2) -> Iterator[str]:
    """Yield the master's address when all workers are connected. Stop all of them at the end."""
    port = free_port()
    master = f"spark://{LOCALHOST}:{port}"
    with ExitStack() as stack:
        own = ("--host", LOCALHOST, "--webui-port", "0")
        daemon = stack.enter_context(running(directory, "master.Master", *own, "--port", str(port)))
        reached(daemon, port)
        for number in range(workers):
            size = ("--cores", "1", "--memory", "512m")
            place = ("--work-dir", str(directory / f"worker-{number}"), "--port", str(free_port()))
            worker = stack.enter_context(
                running(directory, "worker.Worker", *own, *size, *place, master)
            )
            reached(worker, int(place[-1]))
        yield master


@contextmanager
def running(directory: Path, daemon: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    with (
        open(directory / "daemons.log", "ab") as log,
        subprocess.Popen(
            (spark_class, f"org.apache.spark.deploy.{daemon}", *arguments),
            env=environment(),
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()  # a worker takes its executors with it
            process.wait(START_S)


def reached(process: subprocess.Popen[bytes], port: int) -> None:
    end_s = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection((LOCALHOST, port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end_s:
                raise
            time.sleep(0.1)


def free_port() -> int:
    with socket.create_server((LOCALHOST, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def submit(master: str, settings: dict[str, str], job: str, *arguments: str) -> str:
    """Run the job and return its output."""
    given = {
        "spark.ui.enabled": "false",
        "spark.driver.host": LOCALHOST,
        "spark.driver.bindAddress": LOCALHOST,
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        **settings,
    }
    options: Sequence[str] = [
        part for name, value in given.items() for part in ("--conf", f"{name}={value}")
    ]
    command = (str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, *options)
    done = subprocess.run(
        (*command, job, *arguments), env=environment(), capture_output=True, timeout=JOB_S
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return done.stdout.decode()
