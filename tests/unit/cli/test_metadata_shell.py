"""`quorate metadata-shell`, beyond the comparison with Kafka's shell (tests/golden).

The tests cover the inputs, the JSON output, the exit status, and the session at a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from quorate.cli.main import main
from quorate.cli.shell.columns import in_columns
from quorate.cli.shell.commands import Shell
from quorate.cli.shell.nodes import Directory, root
from quorate.cli.shell.paths import find, glob_pattern, resolved
from quorate.cli.shell.reading import completions
from quorate.cli.shell.source import contents_of
from quorate.cli.shell.texts import entity_text
from quorate.config.java_numbers import double_text
from quorate.quorum.log.batches.batch import build_batch, build_value_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.metadata.framing import encode_record
from quorate.quorum.metadata.records import FeatureLevelRecord
from quorate.quorum.raft.control_records import SnapshotHeaderRecord
from tests.golden.shell_runs import control_batch

NODE = Path(__file__).parents[2] / "fixtures" / "kafka-4.1.1-metadata" / "c1"
SNAPSHOT = NODE / "00000000000000000368-0000000001.checkpoint"


def shell(*arguments: str, stdin: str = "") -> Result:
    """Run `quorate metadata-shell`."""
    return CliRunner().invoke(main, ["metadata-shell", *arguments], input=stdin)


def test_a_log_directory_is_shown_at_its_end_and_at_any_offset() -> None:
    at_end = shell("-s", str(NODE), "cat", "/image/provenance")
    assert at_end.output.startswith("offset 478, epoch 1, time ")
    at_20 = shell("-s", str(NODE), "--offset", "20", "cat", "/image/provenance")
    assert at_20.output.startswith("offset 20, epoch 1, time ")
    early = shell("-s", str(NODE), "--offset", "14", "ls", "/image/cluster/brokers").output
    late = shell("-s", str(NODE), "ls", "/image/cluster/brokers").output
    assert (early.split(), late.split()) == (["4", "6"], ["4", "5", "6"])


def test_an_offset_that_is_not_in_the_log() -> None:
    beyond = shell("-s", str(NODE), "--offset", "479", "ls", "/")
    assert (beyond.exit_code, "it ends at offset 478, before 479" in beyond.stderr) == (1, True)
    # Up to this offset there are only Raft's own records.
    assert "no metadata record" in shell("-s", str(NODE), "--offset", "0", "ls", "/").stderr


@pytest.mark.parametrize("value", [b"what somebody produced", None])
def test_the_log_of_a_topic_is_refused(tmp_path: Path, value: bytes | None) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch([Record(0, 5, b"key", value)], leader_epoch=1))
    result = shell("-s", str(path), "ls", "/")
    assert (result.exit_code, f"{path} is no metadata log" in result.stderr) == (1, True)


def test_a_directory_whose_log_begins_with_a_snapshot(tmp_path: Path) -> None:
    """The records of a snapshot count as of the offset at which it ends."""
    shutil.copy(SNAPSHOT, tmp_path)
    log = (NODE / "00000000000000000000.log").read_bytes()
    (tmp_path / "00000000000000000368.log").write_bytes(log[batch_position(log, 368) :])
    whole = shell("-s", str(NODE), "tree", "/image").output
    assert shell("-s", str(tmp_path), "tree", "/image").output == whole
    at_start = shell("-s", str(tmp_path), "--offset", "367", "cat", "/image/provenance")
    assert at_start.output.startswith("offset 367, epoch 1, time ")


def batch_position(log: bytes, base_offset: int) -> int:
    """Return the position in bytes of the batch with this base offset."""
    position = 0
    while int.from_bytes(log[position : position + 8], "big") != base_offset:
        position += 12 + int.from_bytes(log[position + 8 : position + 12], "big")
    return position


def test_a_segment_that_stands_on_others_says_so(tmp_path: Path) -> None:
    log = (NODE / "00000000000000000000.log").read_bytes()
    path = tmp_path / "00000000000000000368.log"
    path.write_bytes(log[batch_position(log, 368) :])
    result = shell("-s", str(path), "ls", "/")
    assert result.exit_code == 1
    assert "give the log directory instead" in result.output


def test_a_torn_segment_is_read_up_to_the_tear_a_damaged_snapshot_is_refused(
    tmp_path: Path,
) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes((NODE / segment.name).read_bytes()[:-1])
    assert shell("-s", str(segment), "cat", "/image/provenance").output.startswith("offset 477,")
    damaged = bytearray(SNAPSHOT.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / SNAPSHOT.name).write_bytes(damaged)
    result = shell("-s", str(tmp_path / SNAPSHOT.name), "ls", "/")
    assert result.exit_code == 1
    assert "is damaged" in result.output


def test_what_a_newer_kafka_wrote_is_counted(tmp_path: Path) -> None:
    known = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=27))
    path = tmp_path / "00000000000000000000.log"
    values = [known, b"\x01\x63\x00", b"\x01\x63\x00"]
    path.write_bytes(build_value_batch(values, base_offset=0, leader_epoch=1, timestamp_ms=5))
    result = shell("-s", str(path), "cat", "/image/features/metadataVersion")
    assert result.stdout == "Optional[4.1-IV1]\n"
    assert result.stderr == "Not shown: 2 records of the unknown type UNKNOWN_RECORD_99\n"


def test_nothing_in_it(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000-0000000000.checkpoint"
    header = SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0)
    path.write_bytes(control_batch(0, header))
    result = shell("-s", str(path), "ls", "/")
    assert result.exit_code == 1
    assert "no metadata record" in result.output


def test_exit_codes() -> None:
    at = ("-s", str(SNAPSHOT))
    assert shell(*at, "ls", "/image").exit_code == 0
    assert shell(*at, "cat", "/nosuch").exit_code == 1
    assert shell(*at, "cat").exit_code == 2
    assert shell(*at, "ls", "-l").exit_code == 2
    assert shell("ls").exit_code == 2
    assert shell("-s", "/nosuch", "ls").exit_code == 2
    assert shell(*at, "--format", "json").exit_code == 2


def test_json() -> None:
    def values(*command: str) -> object:
        return json.loads(shell("-s", str(SNAPSHOT), "--format", "json", *command).stdout)

    assert values("ls", "/", "/image/provenance") == {
        "/": ["image", "local"],
        "/image/provenance": None,
    }
    assert values("tree", "/image/features") == {
        "/image/features": {
            "finalized_eligible.leader.replicas.version": "1",
            "finalized_group.version": "1",
            "finalized_transaction.version": "2",
            "metadataVersion": "Optional[4.1-IV1]",
            "zkMigrationState": {},
        }
    }
    assert values("cat", "/image/topics/byName/topic-{0,1}/name") == {
        "/image/topics/byName/topic-0/name": "topic-0",
        "/image/topics/byName/topic-1/name": "topic-1",
    }
    assert values("find", "/local") == {"/local": ["/local", "/local/commitId", "/local/version"]}


def test_json_of_paths_that_are_missing_has_the_others() -> None:
    at = ("-s", str(SNAPSHOT), "--format", "json")
    missed = shell(*at, "ls", "/nosuch", "/local")
    assert json.loads(missed.stdout) == {"/local": ["commitId", "version"]}
    assert (missed.exit_code, missed.stderr) == (1, "ls: /nosuch: no such file or directory.\n")
    missed = shell(*at, "cat", "/local")
    assert (missed.exit_code, json.loads(missed.stdout)) == (1, {})
    assert missed.stderr == "cat: /local: Is a directory\n"
    wrong = shell(*at, "frob")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("invalid choice: 'frob'")


def test_a_glob_is_shown_as_the_paths_that_it_matches() -> None:
    result = shell("-s", str(SNAPSHOT), "find", "/image/topics/byName/topic-9/*")
    names = ("0", "id", "name")
    assert result.output.split() == [f"/image/topics/byName/topic-9/{each}" for each in names]


def test_default_quotas_have_a_name() -> None:
    """Kafka's shell omits default entities from the name, and cannot find the paths that it
    lists."""
    assert entity_text((("user", None),)) == "user(<default>)"
    assert entity_text((("client-id", "c"), ("user", None))) == "clientId(c)_user(<default>)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (-2.5e-10, "-2.5E-10"),
        (1e300, "1.0E300"),
    ],
)
def test_doubles_as_java_writes_them(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("*", ["", "a", "a.b"], []),
        ("a?c", ["abc", "a.c"], ["ac", "abbc"]),
        ("{a,b.}c", ["ac", "b.c"], ["bxc", "{a,b.}c"]),
        ("a+*", ["a+", "a+b"], ["aa"]),
        ("\\*a", ["*a"], ["ba"]),
        ("a,}?", ["a,}x"], ["a,"]),
    ],
)
def test_globs(glob: str, matching: list[str], other: list[str]) -> None:
    pattern = glob_pattern(glob)
    assert pattern is not None
    assert [each for each in (*matching, *other) if pattern.fullmatch(each)] == matching


@pytest.mark.parametrize("literal", ["a.b", "a,b}", "{a", "{a,{b}}"])
def test_what_is_no_glob_stands_for_itself(literal: str) -> None:
    assert glob_pattern(literal) is None


def test_paths() -> None:
    assert resolved("../b/./c", ("a",)) == ("b", "c")
    assert resolved("/x//../../y", ("a",)) == ("y",)
    tree: Directory = {"d": lambda: {"leaf": lambda: "text"}, "e": lambda: "text"}
    assert [found.path for found in find(tree, ("*", "*"))] == [("d", "leaf")]
    assert not list(find(tree, ("e", "leaf")))


NAMES = st.lists(st.text("abc", min_size=1, max_size=12), max_size=30)


@given(NAMES, st.none() | st.integers(0, 100))
def test_columns_hold_every_name_downwards(names: list[str], width: int | None) -> None:
    lines = list(in_columns(names, width))
    rows = [line.split() for line in lines]
    columns = zip_longest(*rows, fillvalue="")
    assert [each for column in columns for each in column if each] == names
    if len(rows) < len(names):
        assert width is not None
        assert all(len(line) <= width for line in lines)


def test_columns_are_as_wide_as_their_names() -> None:
    names = ["a", "bbbb", "c", "dd", "e"]
    assert list(in_columns(names, 14)) == ["a     c   e", "bbbb  dd  "]
    assert list(in_columns(names, None)) == names


def test_completion() -> None:
    contents = contents_of(SNAPSHOT, None)
    at = Shell(root(contents.image, contents.foreign, "1"))
    assert completions(at, [], "c") == ["cat ", "cd "]
    assert completions(at, ["man"], "hi") == ["history "]
    assert completions(at, ["ls"], "") == ["image/", "local/"]
    assert completions(at, ["cat", "x"], "/image/pro") == [
        "/image/producerIds/",
        "/image/provenance ",
    ]
    at.working_directory = ("image",)
    assert completions(at, ["cat"], "topics/byName/topic-9/") == [
        f"topics/byName/topic-9/{each} " for each in ("0", "id", "name")
    ]
    assert completions(at, ["pwd"], "") == completions(at, ["nosuch"], "") == []
    assert completions(at, ["cat"], "/nosuch/") == []


def test_no_name_that_could_control_the_terminal_is_completed() -> None:
    at = Shell({"a\x1b[2J": lambda: "text", "ab": lambda: "text"})
    assert completions(at, ["cat"], "a") == ["ab "]


@pytest.mark.timeout(60)
def test_at_a_terminal() -> None:
    """The session has a line that Tab completes, a name of several columns, Ctrl-C, and Ctrl-D at
    the end."""
    told = at_terminal(b"ls /im\t\n", b"cat /image/producerIds/n\t\n", CTRL_C, b"\x04")
    assert "[ Kafka Metadata Shell ]" in told
    assert "acls          cluster  delegationToken  producerIds  scram\n" in told
    assert ">> cat /image/producerIds/nextProducerId" in told
    assert "\n-1" in told
    assert "^C" in told


CTRL_C = b"\x03"
AT_TERMINAL = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"
"""Not pty.fork(): the process that tests may have threads."""


def at_terminal(*typed: bytes) -> str:
    """Return the content of the screen at the end of a session. `typed` is the input at each
    prompt."""
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "80"}
    command = [sys.executable, "-m", "quorate.cli", "metadata-shell", "-s", str(SNAPSHOT)]
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", AT_TERMINAL, *command], stdin=terminal, env=environment
    ) as shell:
        os.close(terminal)
        screen = on_screen(ours, iter(typed))
    assert shell.returncode == 0
    return screen.decode().replace("\r", "")


def on_screen(terminal: int, keys: Iterator[bytes]) -> bytes:
    """Return the output of a terminal, and type the next keys at each prompt."""
    screen = typed = b""
    try:
        while True:
            # A signal between the prompt and Python's select() is not seen until another key.
            while typed == CTRL_C and not select.select([terminal], [], [], 1.0)[0]:
                os.write(terminal, typed)
            screen, typed = screen + os.read(terminal, 4096), b""
            if screen.endswith(b">> "):
                typed = next(keys)
                os.write(terminal, typed)
    except OSError:  # the other end is closed
        return screen
    finally:
        os.close(terminal)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_of_a_command_is_text_also_with_json(option: str) -> None:
    plain = shell("-s", str(SNAPSHOT), "--", "ls", option)
    found = shell("-s", str(SNAPSHOT), "--format", "json", "--", "ls", option)
    assert (found.exit_code, found.stdout) == (plain.exit_code, plain.stdout)
    assert found.stdout.startswith("usage:  ls [-h]")
