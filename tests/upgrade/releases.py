"""The previous release as an installed wheel, and a cluster whose nodes run either release.

No release is published yet. The previous one is therefore the last commit before eligible leader
replicas were a feature, PREVIOUS. Its wheel is built from the history of this repository with the
build tools of the test environment, and installed into a directory of its own. That needs no
network. A node of the previous release runs with this directory at the front of the import path.
"""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from quorate.cli.nodes.cluster_dir import alive
from tests.clients.cluster import ProcessCluster, quorate, wait_for

PREVIOUS = "1142a53de5768f5b78bf1a878ab7aaf8b8b077ba"
"""The two releases differ in one feature: eligible.leader.replicas.version 1 is new."""
REPOSITORY = Path(__file__).parents[2]
PATHS = ("PYTHONPATH", "PYTHONSAFEPATH")
"""The variables that name the places of Python's imports. Without the second one, Python prefers
the current directory."""
GONE_S = 60.0
BUILD_S = 300.0


def available() -> bool:
    """Return True if the history has the previous release, and pip can build wheels."""
    known = subprocess.run(
        ["git", "-C", str(REPOSITORY), "cat-file", "-e", f"{PREVIOUS}^{{commit}}"],
        capture_output=True,
        check=False,
    )
    installed = {each.name.lower() for each in importlib.metadata.distributions()}
    return known.returncode == 0 and {"pip", "setuptools"} <= installed


def installed(root: Path) -> Path:
    """Build the wheel of the previous release below `root`, install it, and return its folder."""
    archive = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", PREVIOUS], capture_output=True, check=True
    )
    source, wheels, site = root / "source", root / "wheels", root / "site"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(source)]
    found = ["--no-index", "--find-links", str(wheels)]
    for command in (build, ["install", "--no-deps", "--target", str(site), *found, "quorate"]):
        done = subprocess.run(
            [*pip, *command], capture_output=True, text=True, timeout=BUILD_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return site


@contextmanager
def release(site: Path | None) -> Iterator[None]:
    """Let processes that start in the block run the release in `site`, or this tree if None."""
    before = {name: os.environ.pop(name, None) for name in PATHS}
    if site is not None:
        os.environ |= {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class MixedCluster(ProcessCluster):
    """A cluster whose nodes run the previous release until `change` starts them in another."""

    def __init__(self, root: Path, previous: Path) -> None:
        super().__init__(root)
        self.previous = previous

    def start(self, *options: str) -> None:
        with release(self.previous):
            super().start(*options)

    def change(self, node_id: int, site: Path | None) -> None:
        """Stop the node in order, and start it again in another release."""
        self.stop_node(node_id)
        self.start_node(node_id, site)

    def stop_node(self, node_id: int) -> None:
        pid = self.node(node_id)["pid"]
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not alive(pid), f"node {node_id} has stopped", GONE_S)

    def start_node(self, node_id: int, site: Path | None) -> None:
        with release(site):
            self.restart(node_id)

    def start_only(self, node_id: int, site: Path) -> subprocess.Popen[bytes]:
        """Start a node that may end by itself, and return its process."""
        with release(site), open(self.directory.node_log(node_id), "ab") as log:
            process = subprocess.Popen(
                quorate("server", str(self.directory.node_file(node_id))), stderr=log
            )
        self._restarted.append(process)
        self._pids.add(process.pid)
        return process
