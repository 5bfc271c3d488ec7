"""Machines that run a node by the shipped systemd unit, each as a directory of this machine.

A machine has its config in etc, its disk in var, and its journal. The config is the shipped sample
with the lines changed that its comments name. ExecStart of the unit gives the command. systemd
itself does not run, so the test starts and stops the process as systemctl would."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.clients.cluster import WAIT_TIMEOUT_S, wait_for
from tests.deployment import files
from tests.deployment.addresses import Addresses

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
DOMAIN = "example.com"
STOP_S = 60.0
"""TimeoutStopSec of the unit."""
COMMAND_S = 120.0
NODE_PORTS = {"controller": "9093", "broker": "9094", "combined": "9094"}
HOSTS = {"controller": "controller", "broker": "broker", "combined": "node"}
"""The hosts of the samples, without their numbers."""
FIRST_IDS = {"controller": 1, "broker": 101, "combined": 1}
"""The value of node.id in each sample."""
QUORATE = str(Path(sys.executable).with_name("quorate"))


class Machine:
    """One machine with one node. `role` is the instance of the unit."""

    def __init__(self, root: Path, addresses: Addresses, role: str, number: int) -> None:
        self.role = role
        self.name = f"{HOSTS[role]}-{number}"
        self.node_id = FIRST_IDS[role] + number - 1
        self.disk = root / self.name / "var"
        self._journal = root / self.name / "journal"
        self.config = root / self.name / "etc" / f"{role}.properties"
        self._addresses = addresses
        self._process: subprocess.Popen[bytes] | None = None
        self.config.parent.mkdir(parents=True)
        self.disk.mkdir()
        self.config.write_text(self._changed((files.DEPLOYMENT / f"{role}.properties").read_text()))

    def _changed(self, sample: str) -> str:
        """Return the sample with the node's id, hosts and rack, and with ports of this machine."""
        lines = []
        for line in sample.splitlines():
            key, _, value = line.partition("=")
            if key == "node.id":
                assert value == str(FIRST_IDS[self.role])
                line = f"node.id={self.node_id}"
            elif key == "broker.rack":
                line = f"broker.rack=zone-{self.name[-1]}"
            elif key == "advertised.listeners":
                line = line.replace(f"{HOSTS[self.role]}-1.{DOMAIN}", f"{self.name}.{DOMAIN}")
            lines.append(line)
        text = self._addresses.translated(f"{self.name}.{DOMAIN}", "\n".join(lines))
        return text.replace("/var/lib/quorate", str(self.disk)) + "\n"

    @property
    def bootstrap(self) -> str:
        """The address for clients of a broker."""
        return f"127.0.0.1:{self._addresses.port(f'{self.name}.{DOMAIN}', '9092')}"

    @property
    def node_address(self) -> str:
        """The address for other nodes, and for commands that ask a controller."""
        return f"127.0.0.1:{self._addresses.port(f'{self.name}.{DOMAIN}', NODE_PORTS[self.role])}"

    def format(self) -> None:
        """Format the disk, as docs/deployment.md says."""
        command = [QUORATE, "storage", "format", "--cluster-id", CLUSTER_ID]
        done = subprocess.run(
            [*command, "--config", str(self.config)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        program, *arguments = files.unit_command(self.role)
        assert program == "/opt/quorate/bin/quorate"
        (given,) = [each for each in arguments if each.startswith("/etc/quorate/")]
        assert Path(given).name == self.config.name
        command = [QUORATE, *(str(self.config) if each == given else each for each in arguments)]
        with open(self._journal, "ab") as journal:
            self._process = subprocess.Popen(command, stdout=journal, stderr=journal)

    def stop(self) -> None:
        """Stop the node as `systemctl stop` does, and assert that it ended cleanly in time."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_S) == 0, self.journal()

    def kill(self) -> None:
        """End the node by SIGKILL, as a power cut would."""
        process = self._running()
        process.kill()
        process.wait()

    def wait_until_ended(self, timeout_s: float = WAIT_TIMEOUT_S) -> int:
        """Wait until the node ends by itself, and return its exit status."""
        return self._running().wait(timeout_s)

    def end(self) -> None:
        """Kill the process if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def wipe(self) -> None:
        """Remove the content of the disk."""
        for each in self.disk.iterdir():
            shutil.rmtree(each)

    def journal(self, start: int = 0) -> str:
        """Return the lines of the node's log from a length of the log on."""
        return self._journal.read_text()[start:] if self._journal.exists() else ""

    def ready(self) -> tuple[int, str]:
        """Return the status and the text of /readyz, or 0 if the node does not answer."""
        return self.get("/readyz")

    def get(self, path: str) -> tuple[int, str]:
        url = f"http://{self.node_address}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def wait_until_ready(self) -> None:
        wait_for(lambda: self.ready()[0] == 200, f"{self.name} is ready\n{self.journal()[-3000:]}")

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of quorate, as an operator on another machine does."""
    return subprocess.run(
        [QUORATE, *arguments],
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )


def status(bootstrap: str, *options: str) -> tuple[int, str]:
    """Return the exit code and the text of `quorate status`."""
    done = run("status", "--bootstrap-server", bootstrap, *options)
    return done.returncode, done.stdout + done.stderr


def problems(bootstrap: str) -> list[dict[str, Any]] | None:
    """Return the problems in the status, or None if there is no status."""
    done = run("status", "--bootstrap-server", bootstrap, "--format", "json")
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return None
    return list(found["problems"])
