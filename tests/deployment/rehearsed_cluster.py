"""The cluster of the rehearsed day: its machines, and the console that its operator watches."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from quorate.cli.console.access.request_rules import TOKEN_HEADER
from tests.clients.cluster import wait_for
from tests.deployment.addresses import Addresses
from tests.deployment.machines import QUORATE, Machine, problems, run, status


class Console:
    """`quorate console`, which is open all day, as its page sees it."""

    def __init__(self, bootstrap: str) -> None:
        self._process = subprocess.Popen(
            [QUORATE, "console", "--bootstrap-server", bootstrap, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        self._url, _, self._token = said.strip().rpartition("console at ")[2].partition("/#token=")

    def overview(self) -> dict[str, Any]:
        """Return the values above the tables of the page."""
        request = urllib.request.Request(f"{self._url}/api/overview")
        request.add_header(TOKEN_HEADER, self._token)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return dict(json.load(answer))

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)


class Day:
    """The machines of the cluster, and the broker whose disk is small."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.addresses = Addresses()
        self.controllers = [Machine(root, self.addresses, "controller", n) for n in (1, 2, 3)]
        self.brokers = [Machine(root, self.addresses, "broker", n) for n in (1, 2, 3)]
        self.small = self.brokers[2]

    @property
    def machines(self) -> list[Machine]:
        return [*self.controllers, *self.brokers]

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.brokers)

    def active(self) -> Machine:
        """Return the active controller, as the status names it."""
        found = re.search(r"leader (\d+), epoch", status(self.bootstrap)[1])
        assert found is not None
        return next(each for each in self.controllers if each.node_id == int(found[1]))

    def wait_until_whole(self) -> None:
        wait_for(lambda: problems(self.bootstrap) == [], "no partition has a problem", 60.0)

    def said(self, text: str, timeout_s: float = 30.0) -> None:
        """Wait until the log of a controller has `text`."""
        wait_for(
            lambda: any(text in each.journal() for each in self.controllers),
            f"a controller logs {text!r}",
            timeout_s,
        )


def replace_voter(day: Day, machine: Machine) -> None:
    """Do what docs/howto/replace-a-controller.md says."""
    upgrade = ("features", "upgrade", "--feature", "kraft.version=1")
    quorum = ("metadata-quorum", "--bootstrap-server", day.bootstrap)
    voter = str(machine.node_id)
    shown = run(*quorum, "describe", "--replication").stdout
    (old,) = re.findall(rf"^{voter}\s+(\S+)\t.*\tFollower", shown, re.MULTILINE)
    removal = ("--controller-id", voter, "--controller-directory-id", old)
    for command in (
        (*upgrade, "--bootstrap-server", day.bootstrap),
        (*quorum, "remove-controller", *removal),
        (*quorum, "--command-config", str(machine.config), "add-controller"),
    ):
        done = run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
