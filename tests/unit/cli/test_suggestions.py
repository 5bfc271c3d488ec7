"""Names that are not known get a similar one: commands, keys of files, topics and brokers."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.cli.nodes import ports_in_use
from quorate.cli.nodes.cluster_dir import ClusterDir
from quorate.cli.nodes.server import load_config
from quorate.config.did_you_mean import MAX_NAME, did_you_mean
from quorate.config.dynamic_keys import why_not_settable
from quorate.config.key import ConfigError
from quorate.config.topic_keys import validate_topic_configs


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("topcs",), "No such command 'topcs'. Did you mean topics?"),
        (("cluster", "unregster"), "Did you mean unregister?"),
        (("metadata-quorum", "descibe"), "Did you mean describe?"),
        (("chaos", "rn"), "Did you mean run?"),
        (("topics", "--creat"), "No such option '--creat'. Did you mean --create?\n"),
        (("topics", "--delet"), "No such option '--delet'. Did you mean --delete?\n"),
        (
            ("topics", "--boot", "h:1"),
            "No such option '--boot'. Did you mean --bootstrap-server?\n",
        ),
        (("storage", "format", "--zzz"), "No such option '--zzz'.\n"),
        (("--versio",), "No such option '--versio'. Did you mean --version?\n"),
        (("chaos", "run", "leaderkill"), "no such scenario. Did you mean leader-kill? It must be"),
    ],
)
def test_commands(arguments: tuple[str, ...], hint: str) -> None:
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == (1 if "run" in arguments else 2)
    assert hint in ended.output


def test_keys(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=C\nlog.retension.ms=1\n"
        "listeners=C://127.0.0.1:0\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
    )
    with caplog.at_level(logging.WARNING):
        load_config(str(file))
    assert "log.retension.ms (no such property is known Did you mean" not in caplog.text
    assert "no such property is known. Did you mean log.retention.ms?" in caplog.text
    with pytest.raises(ConfigError, match=r"retention\.mss\. Did you mean retention\.ms\?"):
        validate_topic_configs({"retention.mss": "1"})
    reason = why_not_settable(("log.retention.mss",))
    assert reason is not None
    assert reason.endswith("Did you mean log.retention.ms?")
    fixed = why_not_settable(("num.partition",))
    assert fixed is not None
    assert fixed.endswith("Did you mean num.partitions?"), "the next error says how to set it"


def test_the_beginning_of_a_name() -> None:
    names = ("cleanup.policy", "retention.bytes", "retention.ms")
    assert did_you_mean("cleanup", names) == " Did you mean cleanup.policy?"
    assert did_you_mean("reten", names) == "", "two names begin with it"
    assert did_you_mean("cl", names) == ""


def test_no_suggestion_for_a_name_that_resembles_none() -> None:
    assert did_you_mean("zzz", ("abc",)) == did_you_mean("", ("abc",)) == ""
    assert did_you_mean("a" * (MAX_NAME + 1), ("a" * MAX_NAME,)) == ""


def test_a_port_in_use_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports_in_use, "PATIENCE_S", 0.0)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        root = tmp_path / "c"
        up = ("up", "--dir", str(root), "--port", str(port), "--controllers", "1", "--brokers", "1")
        ended = CliRunner().invoke(main, up)
    assert ended.exit_code == 1
    assert f"port {port} on 127.0.0.1 is in use by another process" in ended.output
    assert "Nothing was started" in ended.output
    assert ClusterDir(root).node_ids() == [], "another --port can be chosen for the same directory"
