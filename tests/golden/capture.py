"""Asks Apache Kafka 4.1.1 again, and writes its answers to the golden files.

    QUORATE_KAFKA_LIBS=... python -m tests.golden.capture [admin] [tools] [shell]

Run it by hand after a change of the cases, and read the difference before you commit it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from quorate.cli.client.connection import ConnectionLost
from tests.golden.admin_requests import CASES, ask, prepare
from tests.golden.nodes import KAFKA, TwoNodes, two_nodes
from tests.golden.shell_runs import RUNS as SHELL_RUNS
from tests.golden.shell_runs import files_in, play
from tests.golden.tool_runs import RUNS, played, written

HERE = Path(__file__).parent
UNANSWERED = ["(no answer)"]


def capture_admin(nodes: TwoNodes) -> None:
    admin = nodes.admin()
    prepare(admin)
    errors = {}
    for case, request in CASES.items():
        try:
            errors[case] = ask(admin, request)
        except ConnectionLost:
            errors[case] = UNANSWERED
    admin.close()
    text = json.dumps(errors, indent=1, ensure_ascii=False)
    (HERE / "admin_errors.json").write_text(text + "\n")


def capture_tools(nodes: TwoNodes) -> None:
    (HERE / "tools.txt").write_text(written(played(RUNS, nodes, KAFKA.run)))


def capture_shell(root: Path) -> None:
    files = files_in(root)
    found = [play(run, files, KAFKA.run) for run in SHELL_RUNS]
    (HERE / "shell.txt").write_text(written(found))


CAPTURES = {"admin": capture_admin, "tools": capture_tools}


def main(names: list[str]) -> None:
    for name in names or [*CAPTURES, "shell"]:
        root = Path(tempfile.mkdtemp(prefix="golden-"))
        try:
            if name == "shell":
                capture_shell(root)
                continue
            with two_nodes(root / "nodes", KAFKA) as nodes:
                CAPTURES[name](nodes)
        finally:
            shutil.rmtree(root)


if __name__ == "__main__":
    main(sys.argv[1:])
