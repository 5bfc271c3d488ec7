"""The shipped files, and the nodes that they describe."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
DEPLOYMENT = ROOT / "config" / "deployment"
RUN_NODE = DEPLOYMENT / "run-node.sh"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
MANIFESTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((DEPLOYMENT / "kubernetes.yaml").read_text())
)
UNIT = (DEPLOYMENT / "quorate@.service").read_text()


class Node(NamedTuple):
    """A node as a container runs it: the service that it belongs to, and the arguments of
    run-node.sh, which are a file of the image and overrides."""

    service: str
    arguments: tuple[str, ...]

    @property
    def file(self) -> Path:
        return DEPLOYMENT / Path(self.arguments[0]).name

    @property
    def overrides(self) -> dict[str, str]:
        options = [each.removeprefix("--override=") for each in self.arguments[1:]]
        return dict(each.split("=", 1) for each in options)


def compose_nodes() -> list[Node]:
    return [
        Node(name, tuple(service["command"]))
        for name, service in COMPOSE["services"].items()
        if service.get("entrypoint") == ["run-node.sh"]
    ]


def stateful_sets() -> list[dict[str, Any]]:
    return [each for each in MANIFESTS if each["kind"] == "StatefulSet"]


def pods() -> list[Node]:
    """All pods of the stateful sets. A shell evaluates their arguments, as in the container."""
    found = []
    for each in stateful_sets():
        name, (container,) = (
            each["metadata"]["name"],
            each["spec"]["template"]["spec"]["containers"],
        )
        (script,) = container["args"]
        for ordinal in range(each["spec"]["replicas"]):
            environment = {"HOSTNAME": f"{name}-{ordinal}", "NAMESPACE": "ns", "CLUSTER_ID": "x"}
            found.append(Node(name, arguments_of(container["command"], script, environment)))
    return found


def arguments_of(
    command: Sequence[str], script: str, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the arguments with which `script` runs run-node.sh."""
    shown, times = re.subn(r"^exec run-node\.sh ", 'printf "%s\\\\n" ', script)
    assert times == 1, script
    done = subprocess.run(
        [*command, shown], env=environment, capture_output=True, text=True, check=True
    )
    return tuple(done.stdout.split("\n")[:-1])


def unit_command(instance: str) -> list[str]:
    """Return ExecStart of the systemd unit for an instance."""
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    return shlex.split(line.replace("%i", instance))
