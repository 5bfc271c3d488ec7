"""Wrong uses of the tools: each prints one line that names the mistake, and has its exit code.

The exit codes: 1 if the cluster, a directory or a file refused, 2 for wrong usage, 3 if the cluster
cannot be reached.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.golden.in_process import quorate
from tests.golden.nodes import QUORATE, TwoNodes, two_nodes
from tests.golden.tool_runs import without_places, words, write_files

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]

VERIFY = "reassign-partitions @server --verify --reassignment-json-file"
EXECUTE = "reassign-partitions @server --execute --reassignment-json-file"
RESET = "consumer-groups @server --group g --reset-offsets"
UNREACHABLE = "no server answers: 127.0.0.1:1: connection refused. Start a "
NO_TOPIC = "topic absent: UNKNOWN_TOPIC_OR_PARTITION: There is no such topic or partition here."
MISTAKES = [
    ("topics @server --list --describe", 2, "Command must include exactly one action: "),
    ("topics --list", 2, 'Missing required argument "[bootstrap-server]"'),
    ("topics --bootstrap-server nowhere --list", 2, "value 'nowhere' must be host:port"),
    ("topics --bootstrap-server 127.0.0.1:1 --timeout 0.2 --list", 3, UNREACHABLE),
    (
        "metadata-quorum --bootstrap-controller 127.0.0.1:1 --timeout 0.2 describe --status",
        3,
        UNREACHABLE,
    ),
    ("topics @server --describe --topic absent", 1, "Topic 'absent' does not exist as expected"),
    ("topics @server --create --topic kept --partitions 2", 1, "Topic 'kept' already exists."),
    (
        "configs @server --alter --topic kept --add-config retention.ms=soon",
        1,
        "INVALID_CONFIG: retention.ms: value 'soon' must be a whole number",
    ),
    ("configs @server --alter --topic kept --delete-config no.such", 1, "config(s): no.such"),
    (
        "configs @server --alter --topic kept --add-config no.such=1",
        1,
        "Unknown topic config name: no.such",
    ),
    ("configs @server --describe --topic absent", 1, "there is no topic 'absent'"),
    ("get-offsets @server --topic absent", 1, "Could not match any topic-partitions"),
    ("console-producer @server --topic absent --timeout 0.2", 1, NO_TOPIC),
    ("console-consumer @server --topic absent --from-beginning", 1, NO_TOPIC),
    ("consumer-groups @server --describe --group absent", 1, "group 'absent' does not exist"),
    ("consumer-groups @server --delete --group absent", 1, "GROUP_ID_NOT_FOUND"),
    ("consumer-groups @server --delete-offsets --group absent --topic kept", 1, "NOT_FOUND"),
    (f"{RESET} --topic kept --to-datetime yesterday", 2, "--to-datetime: value 'yesterday' must"),
    (f"{RESET} --topic kept --by-duration tomorrow", 2, "--by-duration: value 'tomorrow' must be"),
    (f"{RESET} --topic kept --by-duration P1D --to-latest", 2, "requires exactly one of"),
    (f"{RESET} --to-latest", 2, "--reset-offsets requires --topic or --all-topics"),
    (f"{RESET} --from-file @files/broken.json", 1, "broken.json:1: '{\"version\": 1,' must be ["),
    (f"{EXECUTE} @files/broken.json", 1, "@data/files/broken.json:2: Expecting value"),
    (f"{EXECUTE} @files/none.json", 1, "@data/files/none.json: No such file"),
    (f"{EXECUTE} @files/absent.json", 1, NO_TOPIC),
    (f"{EXECUTE} @files/unknown-broker.json", 1, "Unknown broker id 9"),
    (f"{EXECUTE} @files/shorten.json", 1, "shorten.json:2: partitions[0].replicas must be a list"),
    (
        f"{VERIFY} @files/a.json --replica-alter-log-dirs-throttle 1",
        2,
        'Option "replica-alter-log-dirs-throttle" can\'t be used with action "verify"',
    ),
    (f"{EXECUTE} @files/move.json --throttle -1", 2, "--throttle"),
    (
        f"{VERIFY} @files/a.json --throttle 1",
        2,
        'Option "throttle" can\'t be used with action "verify"',
    ),
    (
        "leader-election @server --election-type preferred --path-to-json-file @files/broken.json",
        1,
        "@data/files/broken.json:2: Expecting value",
    ),
    (
        "delete-records @server --offset-json-file @files/move.json",
        1,
        "move.json:2: partitions[0].offset must be an integer",
    ),
    ("log-dirs @server --describe --broker-list 9", 1, "The given brokers do not exist from"),
    ("cluster unregister @server --id 9", 1, "Broker ID 9 is not currently registered"),
    ("dump-log --files @data/none.log", 1, "@data/none.log: No such file or directory"),
    (
        "storage format -t 4L6g3nShT-eMCtK--X86sw -c @data/node-2.properties",
        1,
        "Log directory @data/data-2 is already formatted.",
    ),
]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    with two_nodes(tmp_path_factory.mktemp("mistakes") / "nodes", QUORATE) as running:
        write_files(running)
        made = quorate(
            "topics", "--bootstrap-server", running.bootstrap, "--create", "--topic", "kept"
        )
        assert made.code == 0, made.errors
        yield running


@pytest.mark.parametrize(("line", "code", "text"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_told(nodes: TwoNodes, line: str, code: int, text: str) -> None:
    tool, *arguments = words(line, nodes)
    done = quorate(tool, *arguments, stdin="value\n")
    told = without_places([*done.lines, *done.errors.splitlines()], nodes)
    assert done.code == code, told
    assert text in told[-1]
