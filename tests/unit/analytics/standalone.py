"""Servers of Spark on this machine, loopback only: a standalone cluster, and Spark Connect."""

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
from quorate.quorum.analytics.spark.session import JAVA_OPTIONS

SPARK_HOME = Path(pyspark.__file__).parent
LOCALHOST = "127.0.0.1"
START_S = 300.0
JOB_S = 600.0
TINY = {
    # Compiling a plan costs more than running it over a few hundred rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def environment(python: str = sys.executable) -> dict[str, str]:
    """Return an environment in which Spark's Python workers run `python`."""
    ensure_java()
    return os.environ | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOCALHOST,
        "SPARK_DAEMON_MEMORY": "512m",  # A Connect server needs 450 MiB.
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }


@contextmanager
def standalone(directory: Path, workers: int = 2) -> Iterator[str]:
    """Yield the master's address when all workers are connected. Stop all of them at the end."""
    port = free_port()
    master = f"spark://{LOCALHOST}:{port}"
    with ExitStack() as stack:
        own = ("--host", LOCALHOST, "--webui-port", "0")
        name = daemon_class("master.Master")
        master_process = running(directory, "spark-class", name, *own, "--port", str(port))
        reached(stack.enter_context(master_process), port)
        for number in range(workers):
            size = ("--cores", "1", "--memory", "512m")
            place = ("--work-dir", str(directory / f"worker-{number}"), "--port", str(free_port()))
            arguments = (daemon_class("worker.Worker"), *own, *size, *place, master)
            worker = running(directory, "spark-class", *arguments)
            reached(stack.enter_context(worker), int(place[-1]))
        yield master


def daemon_class(name: str) -> str:
    return f"org.apache.spark.deploy.{name}"


@contextmanager
def connect_server(directory: Path, python: str = sys.executable) -> Iterator[str]:
    """Yield the address of a Spark Connect server with a local master. Stop it at the end."""
    port = free_port()
    settings = configured({"spark.connect.grpc.binding.port": str(port)})
    arguments = ("--master", "local[2]", *settings, "--class", CONNECT_SERVER)
    with running(directory, "spark-submit", *arguments, python=python) as server:
        reached(server, port)
        yield f"sc://{LOCALHOST}:{port}"


@contextmanager
def running(
    directory: Path, program: str, *arguments: str, python: str = sys.executable
) -> Iterator[subprocess.Popen[bytes]]:
    with (
        open(directory / "daemons.log", "ab") as log,
        subprocess.Popen(
            (str(SPARK_HOME / "bin" / program), *arguments),
            env=environment(python),
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
    """Run the job by spark-submit and return its output."""
    program = str(SPARK_HOME / "bin" / "spark-submit")
    return run((program, "--master", master, *configured(settings), job, *arguments))


def configured(settings: dict[str, str]) -> Sequence[str]:
    """Return the options of spark-submit for these settings and those of a small driver."""
    given = {
        "spark.ui.enabled": "false",
        "spark.driver.host": LOCALHOST,
        "spark.driver.bindAddress": LOCALHOST,
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        **TINY,
        **settings,
    }
    return [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]


def run(command: Sequence[str], **variables: str) -> str:
    """Run the command with these variables of the environment, and return its output."""
    done = subprocess.run(
        command, env=environment() | variables, capture_output=True, timeout=JOB_S
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return done.stdout.decode()
