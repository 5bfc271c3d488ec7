"""The README's blocks about a cluster run as they are printed, on free ports.

The blocks about histories run in tests/unit/analytics/test_readme.py, and the scenario in
tests/chaos/test_scenario_runs.py. `RUN_BY` says which test runs the blocks of each section."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.printed_commands import Block, Shell, shell
from tests.docs.site.pages import ROOT

README = (ROOT / "README.md").read_text()
TOP = "Quorate"
RUN_BY = {
    TOP: "here: its first block. The targets of make are the tests themselves.",
    "Run a cluster": "here",
    "Connect a client": "here",
    "Test an application": "tests/testing/test_installed.py",
    "Watch a cluster": "here",
    "Run a failure scenario": "tests/chaos/test_scenario_runs.py",
    "Rebuild a quorum that is lost": "not run: its directories are the reader's own. "
    "docs/howto/restore-a-quorum.md has a block that runs.",
    "Query the history of a cluster": "tests/unit/analytics/test_readme.py",
    "Read your Kafka's metadata log": "tests/unit/analytics/test_readme.py",
}
STOP_S = 60.0


def blocks(heading: str, language: str = "sh") -> list[str]:
    """Return the blocks of a section. TOP is the part before the first heading."""
    section = README.partition("\n## ")[0]
    if heading != TOP:
        section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def test_every_section_with_blocks_has_its_test() -> None:
    headings = [TOP, *re.findall(r"^## (.*)$", README, re.MULTILINE)]
    with_blocks = [each for each in headings if blocks(each) or blocks(each, "python")]
    assert with_blocks == list(RUN_BY)
    for where in RUN_BY.values():
        if where.startswith("tests/"):
            assert "README" in (ROOT / where).read_text()


@pytest.fixture
def bash(tmp_path: Path) -> Iterator[Shell]:
    """A shell in an empty directory, whose clusters end with the test."""
    with shell(tmp_path) as found:
        yield found


def run(bash: Shell, commands: str, shown: str | None = None) -> None:
    """Run commands of the README. Their output must contain `shown`."""
    bash.run(Block(commands, shown, None))


def up_until_ctrl_c(bash: Shell, directory: Path, commands: str) -> None:
    """Run the block of `quorate up`, wait for its line, and press Ctrl-C."""
    path = f"{directory / '.tools'}:{os.environ['PATH']}"
    with subprocess.Popen(
        ["bash", "-c", bash.with_ports(commands)],
        cwd=directory,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            ready = next(line for line in lines if line.startswith("ready "))
            assert ready.startswith(bash.with_ports("ready 127.0.0.1:9092,"))
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(STOP_S) in (0, 130)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.clients
@pytest.mark.long
@pytest.mark.timeout(240)
def test_the_blocks_about_a_running_cluster(bash: Shell, tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    (start,) = blocks("Run a cluster")
    up_until_ctrl_c(bash, tmp_path, start)
    run(bash, f"{start.rstrip()} --detach\n")
    (produce,) = blocks("Connect a client", "python")
    subprocess.run([sys.executable, "-c", bash.with_ports(produce)], check=True, timeout=60)
    (topics,) = blocks("Connect a client")
    run(bash, topics, "...\n...Topic: orders...PartitionCount: 12...\n...\nhello\n...\n")
    look, merge = blocks("Watch a cluster")
    run(
        bash,
        look,
        "...\n...offlinepartitionscount...\n...\n...BROKER_REGISTRATION_CHANGE_RECORD...\n...\n",
    )
    run(bash, merge, "...\n...Created on brokers ...\n...\n")
    run(bash, "quorate down --dir quorate-data\n")


@pytest.mark.clients
@pytest.mark.long
@pytest.mark.timeout(240)
def test_the_first_block(bash: Shell) -> None:
    run(bash, blocks(TOP)[0], "...\n...verdict  GOOD...\n...\n")


@pytest.mark.parametrize("target", ["demo", "docs"])
def test_make_says_what_it_installs_before_it_does(target: str, tmp_path: Path) -> None:
    planned = subprocess.run(
        ["make", "--dry-run", target, f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "-m pip install" in planned
    before = ""
    for line in planned.splitlines():
        assert "-m pip install" not in line or "installing " in before, line
        before = line


def test_extras_are_quoted_wherever_pip_is_named() -> None:
    """Some shells expand the brackets of an extra."""
    files = subprocess.run(
        ["git", "grep", "-lE", "pip install"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    unquoted = re.compile(r"pip install [a-z.][a-z0-9_.-]*\[")
    found = [name for name in files.stdout.split() if unquoted.search((ROOT / name).read_text())]
    assert found == []
