"""A sequence of runs of the command line tools, with the standard output of each in tools.txt.

Apache Kafka's tools and ours play the same runs on Apache Kafka and on our nodes. `capture.py`
writes tools.txt.

`@server` and `@controller` stand for the bootstrap options, `@files` for a directory with FILES,
`@data` for the directory of the nodes' files. The tests mask the values that differ between two
clusters: ports, directories, topic ids, and all numbers where a run says so.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.clients.cluster import wait_for
from tests.golden.nodes import TwoNodes
from tests.kafka.tools import Ended

Runner = Callable[..., Ended]
Mask = Callable[[list[str]], list[str]]
SETTLE_S = 10.0
ID = re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])")


def numbers(lines: list[str]) -> list[str]:
    """Mask numbers, the width of their columns, and directory ids, which differ in each call."""
    named = [ID.sub("ID", line).replace('"directoryId": "ID", "endp', '"endp') for line in lines]
    return [re.sub(r"\d+ +\t|-?\d+", "N", line) for line in named]


def in_order(lines: list[str]) -> list[str]:
    """Sort the lines and the configs in them, because Kafka's tool prints topics and configs in the
    order of their hashes."""
    return sorted(map(configs_in_order, lines))


def configs_in_order(line: str) -> str:
    """Sort the configs of a topic. A comma inside of a value does not start a config."""
    head, found, configs = line.partition("\tConfigs: ")
    return head + found + ",".join(sorted(re.split(r",(?=[\w.]+=)", configs)))


def quotas_in_order(lines: list[str]) -> list[str]:
    """Sort the entities and the quotas of each, because Kafka's tool prints both in the order of
    their hashes."""
    found = []
    for line in lines:
        head, are, quotas = line.partition(" are ")
        found.append(head + are + ", ".join(sorted(quotas.split(", "))))
    return sorted(found)


def spaced(lines: list[str]) -> list[str]:
    """Mask member ids and the width of their columns. Omit empty lines and warnings."""
    words = [re.sub(r"-[0-9a-f-]{36}", "-UUID", " ".join(line.split())) for line in lines]
    return [each for each in words if each and not each.startswith("Warn: ")]


def sizes(lines: list[str]) -> list[str]:
    """Mask the sizes and names of log directories, which depend on time and on the node."""
    masked = [re.sub(r'"size":\d+', '"size":N', line) for line in lines]
    return [re.sub(r'"logDir":"[^"]*"', '"logDir":"D"', line) for line in masked]


def proposal(lines: list[str]) -> list[str]:
    """Mask the replicas of the proposed plan. Each program plans differently for the same
    partitions."""
    return [*lines[:-1], re.sub(r'"replicas":\[[\d,]*\]', '"replicas":[..]', lines[-1])]


def metadata_version(lines: list[str]) -> list[str]:
    """Keep only the line of metadata.version, and mask its epoch and supported versions."""
    ours = [each for each in lines if each.startswith("Feature: metadata.version")]
    return [re.sub(r"(Epoch|SupportedM[a-z]+Version): [^\t]+", r"\1: V", line) for line in ours]


def untiered(lines: list[str]) -> list[str]:
    """Omit the configs of tiered storage, which Quorate does not have, and that of KIP-966's second
    part, which Kafka does not have."""
    absent = ("  remote.", "  local.", "  unclean.recovery.")
    return [each for each in lines if not each.startswith(absent)]


def directory(lines: list[str]) -> list[str]:
    return [re.sub(r"directory\.id=[\w-]{22}", "directory.id=ID", line) for line in lines]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    line: str
    stdin: str = ""
    masks: Sequence[Mask] = ()
    until: str = ""
    """Asked again until this is said."""
    fails: bool = False
    """Though Kafka's tool ends with 0."""


@dataclass(frozen=True, slots=True)
class Played:
    line: str
    code: int
    lines: list[str]


def run(line: str, *masks: Mask, stdin: str = "", until: str = "", fails: bool = False) -> Run:
    return Run(line=line, stdin=stdin, masks=masks, until=until, fails=fails)


def partitions(*wanted: tuple[str, int, Sequence[int]]) -> str:
    entries = [{"topic": t, "partition": n, "replicas": list(r)} for t, n, r in wanted]
    return json.dumps({"version": 1, "partitions": entries}).replace(' "part', '\n "part', 1)


FILES = {
    "move.json": partitions(("kept", 0, [1])),
    "widen.json": partitions(("kept", 0, [1, 2])),
    "absent.json": partitions(("absent", 0, [1])),
    "unknown-broker.json": partitions(("kept", 0, [9])),
    "topics.json": '{"version": 1, "topics": [{"topic": "kept"}, {"topic": "orders"}]}',
    "broken.json": '{"version": 1,\n "partitions": [}',
    "elect.json": '{"partitions": [{"topic": "kept", "partition": 0}]}',
    "shorten.json": '{"version": 1, "partitions": [\n'
    ' {"topic": "kept", "partition": 0, "offset": 4}]}',
    "offsets.csv": "kept,0,2\n",
}
LINES = "".join(f"k{number}\tv{number}\n" for number in range(10))
GROUP = "consumer-groups @server --group readers"
RESET = f"{GROUP} --reset-offsets --topic kept"
MOVE = "reassign-partitions @server --reassignment-json-file @files/move.json"

TOPICS = (
    run(
        "topics @server --create --topic __consumer_offsets --replica-assignment 1"
        " --config cleanup.policy=compact"
    ),
    run("topics @server --create --topic orders --replica-assignment 1:2,2:1"),
    run("topics @server --create --topic kept --replica-assignment 2 --config retention.ms=360000"),
    run("topics @server --create --topic dotted.name --replica-assignment 1"),
    run("topics @server --create --topic orders --partitions 2"),
    run("topics @server --create --if-not-exists --topic orders --partitions 2"),
    run("topics @server --create --topic 'bad name'"),
    run("topics @server --create --topic many --replication-factor 3"),
    run("topics @server --create --topic none --partitions 0"),
    run("topics @server --list"),
    run("topics @server --describe", in_order),
    run("topics @server --describe --topic orders"),
    run("topics @server --describe --under-replicated-partitions"),
    run("topics @server --describe --unavailable-partitions"),
    run("topics @server --describe --under-min-isr-partitions"),
    run("topics @server --describe --at-min-isr-partitions", in_order),
    run("topics @server --describe --topics-with-overrides", in_order),
    run("topics @server --alter --topic orders --partitions 3 --replica-assignment 1:2,2:1,1:2"),
    run("topics @server --alter --topic orders --partitions 2"),
    run("topics @server --describe --topic orders"),
    run("topics @server --describe --topic absent"),
    run("topics @server --delete --topic absent"),
    run("topics @server --delete --if-exists --topic absent"),
    run("topics @server --delete --topic dotted.name"),
    run("topics @server --list --topic 'or.*'"),
)
CONFIGS = (
    run("configs @server --describe --topic kept"),
    run("configs @server --alter --topic kept --add-config cleanup.policy=[compact,delete]"),
    run(
        "configs @server --alter --entity-type topics --entity-name kept --add-config segment.ms=9"
    ),
    run("configs @server --describe --topic kept"),
    run("configs @server --describe --all --topic kept", untiered),
    run("configs @server --alter --topic kept --delete-config cleanup.policy,segment.ms"),
    run("configs @server --describe --topic kept"),
    run("configs @server --alter --topic kept --delete-config no.such.key"),
    run("configs @server --alter --topic kept --add-config retention.ms=soon"),
    run("configs @server --alter --topic kept --add-config no.such.key=1"),
    run("configs @server --alter --topic absent --add-config retention.ms=1"),
    run("configs @server --describe --topic absent", fails=True),
    run("configs @server --alter --broker 1 --add-config log.retention.ms=86400000"),
    run("configs @server --describe --broker 1", until="log.retention.ms=86400000 sensitive"),
    run("configs @server --alter --broker-defaults --add-config log.retention.ms=96400000"),
    run("configs @server --describe --broker 1"),
    run("configs @server --describe --entity-type brokers"),
    run("configs @server --alter --broker 1 --delete-config log.retention.ms"),
    run("configs @server --alter --broker-defaults --delete-config log.retention.ms"),
    run("configs @server --describe --entity-type brokers --entity-default"),
)
USER, PAIR = "--entity-type users --entity-name app", "--entity-type users --entity-type clients"
ALTER, DESCRIBE = "configs @server --alter", "configs @server --describe"
QUOTAS = (
    run(f"{ALTER} {USER} --add-config producer_byte_rate=1048576,request_percentage=12.5"),
    run(f"{DESCRIBE} {USER}", quotas_in_order, until="producer_byte_rate=1048576.0"),
    run(f"{ALTER} --client app --add-config consumer_byte_rate=20000000"),
    run(f"{ALTER} --user-defaults --client c --add-config controller_mutation_rate=0.0001"),
    run(
        f"{ALTER} {PAIR} --entity-name app --entity-default --add-config consumer_byte_rate=7",
    ),
    run(f"{ALTER} --ip 10.0.0.1 --add-config connection_creation_rate=5"),
    run(f"{ALTER} --ip-defaults --add-config connection_creation_rate=6"),
    run(f"{DESCRIBE} --entity-type users", quotas_in_order),
    run(f"{DESCRIBE} --entity-type clients", quotas_in_order, until="client-id 'app'"),
    run(f"{DESCRIBE} {PAIR}", quotas_in_order, until="user-principal 'app'"),
    run(f"{DESCRIBE} --entity-type ips", quotas_in_order, until="the default ip"),
    run(f"{DESCRIBE} --entity-type ips --entity-default", quotas_in_order),
    run(f"{DESCRIBE} --client nobody", quotas_in_order),
    run(f"{ALTER} --client app --add-config no_such_rate=1"),
    run(f"{ALTER} --client app --add-config connection_creation_rate=1"),
    run(f"{ALTER} --ip 10.0.0.1 --add-config producer_byte_rate=1"),
    run(f"{ALTER} --client app --add-config producer_byte_rate=0"),
    run(f"{ALTER} --client app --add-config producer_byte_rate=much"),
    run(f"{ALTER} --client app --delete-config producer_byte_rate"),
    run(f"{ALTER} --entity-type users --add-config producer_byte_rate=1"),
    run(f"{ALTER} --client app --delete-config consumer_byte_rate"),
    run(f"{ALTER} {USER} --delete-config producer_byte_rate --add-config consumer_byte_rate=9"),
    run(f"{DESCRIBE} {USER}", quotas_in_order, until="consumer_byte_rate=9.0"),
    run(f"{ALTER} --ip-defaults --delete-config connection_creation_rate"),
    run(f"{ALTER} --user-defaults --client c --delete-config controller_mutation_rate"),
)
KEYED = "--topic kept --property parse.key=true"
READ = "console-consumer @server --topic kept --timeout-ms 20000"
GROUP_READ = f"{READ} --group readers --from-beginning"
RECORDS = (
    run(f"console-producer @server {KEYED}", stdin=LINES),
    run(
        f"{READ} --partition 0 --offset earliest --max-messages 10"
        " --property print.key=true --property print.offset=true --property print.partition=true"
    ),
    run(f"{GROUP_READ} --max-messages 6"),
    run(f"{GROUP_READ} --max-messages 4"),
    run("get-offsets @server --topic kept"),
    run("get-offsets @server --topic-partitions 'kep.*:0-1,orders:1'"),
    run("get-offsets @server --topic kept --time earliest"),
    run("get-offsets @server --topic absent"),
)
GROUPS = (
    run("consumer-groups @server --list"),
    run("consumer-groups @server --list --state", spaced),
    run(f"{GROUP} --describe", spaced),
    run(f"{GROUP} --describe --members", spaced),
    run(f"{GROUP} --describe --members --verbose", spaced),
    run(f"{GROUP} --describe --state", spaced),
    run("consumer-groups @server --describe --group absent", spaced, fails=True),
    run("consumer-groups @server --describe --all-groups", spaced),
    run(f"{RESET} --to-offset 3 --dry-run", spaced),
    run(f"{RESET} --to-offset 3", spaced),
    run(f"{RESET} --to-offset 99 --dry-run", spaced),
    run(f"{RESET} --to-earliest --execute", spaced),
    run(f"{RESET} --shift-by 5 --execute", spaced),
    run(f"{RESET} --to-current --dry-run", spaced),
    run(f"{RESET} --to-datetime 2000-01-01T00:00:00.000 --dry-run", spaced),
    run(f"{RESET} --to-datetime 2099-01-01T00:00:00.000Z --dry-run", spaced),
    run(f"{RESET} --to-datetime yesterday --dry-run", fails=True),
    run(f"{RESET} --by-duration P1D --dry-run", spaced),
    run(f"{RESET} --by-duration tomorrow --dry-run", fails=True),
    run(f"{RESET} --to-latest --export --dry-run"),
    run(f"{GROUP} --reset-offsets --from-file @files/offsets.csv --execute", spaced),
    run(f"{GROUP} --describe --offsets", spaced),
    run(f"{GROUP} --reset-offsets --all-topics --to-latest --execute", spaced),
    run(f"{GROUP} --delete-offsets --topic orders", spaced),
    run(f"{GROUP} --delete-offsets --topic kept:0", spaced),
    run(f"{GROUP} --delete-offsets --topic absent", spaced, fails=True),
    run("consumer-groups @server --delete-offsets --group absent --topic kept", spaced, fails=True),
    run(f"{GROUP} --describe", spaced),
    run("consumer-groups @server --delete --group absent", fails=True),
    run(f"{GROUP} --delete"),
    run("consumer-groups @server --list"),
)
PARTITIONS = (
    run("reassign-partitions @server --list"),
    run(
        "reassign-partitions @server --generate --topics-to-move-json-file @files/topics.json"
        " --broker-list 1,2",
        proposal,
    ),
    run(f"{MOVE} --verify"),
    run(f"{MOVE} --execute"),
    run(f"{MOVE} --verify", until="is completed"),
    run(f"{MOVE} --cancel"),
    run("reassign-partitions @server --list"),
    run("reassign-partitions @server --execute --reassignment-json-file @files/absent.json"),
    run("reassign-partitions @server --execute --reassignment-json-file @files/broken.json"),
    run(
        "reassign-partitions @server --execute --reassignment-json-file @files/unknown-broker.json"
    ),
    run("reassign-partitions @server --execute --reassignment-json-file @files/widen.json"),
    run(
        "reassign-partitions @server --verify --preserve-throttles"
        " --reassignment-json-file @files/widen.json",
        until="is completed",
    ),
    run("topics @server --describe --topic kept", until="Isr: 1,2"),
    run("leader-election @server --election-type preferred --topic kept --partition 0"),
    run("leader-election @server --election-type preferred --path-to-json-file @files/elect.json"),
    run("leader-election @server --election-type preferred --all-topic-partitions"),
    run("leader-election @server --election-type preferred --topic absent --partition 0"),
    run("leader-election @server --election-type unclean --topic kept --partition 0"),
    run("delete-records @server --offset-json-file @files/shorten.json"),
    run("delete-records @server --offset-json-file @files/broken.json"),
    run("get-offsets @server --topic kept --time earliest"),
    run("log-dirs @server --describe --topic-list kept --broker-list 1", sizes),
    run("log-dirs @server --describe --topic-list kept", sizes),
    run("log-dirs @server --describe --broker-list 9"),
)
CLUSTER = (
    run("metadata-quorum @server describe --status", numbers),
    run("metadata-quorum @controller describe --status", numbers),
    run("metadata-quorum @server describe --replication", numbers),
    run("metadata-quorum @controller describe --replication", numbers),
    run("cluster cluster-id @server"),
    run("cluster unregister @server --id 9"),
    run("features @server describe", metadata_version),
    run("storage info -c @data/node-2.properties", directory),
    run("storage format -t 4L6g3nShT-eMCtK--X86sw -c @data/node-2.properties"),
    run("storage format -t 4L6g3nShT-eMCtK--X86sw -c @data/node-2.properties --ignore-formatted"),
    run("storage format -t DvLiU0vZT6SI_YQQCLxuMg -c @data/node-2.properties --ignore-formatted"),
)
RUNS = (*TOPICS, *CONFIGS, *RECORDS, *GROUPS, *PARTITIONS, *CLUSTER, *QUOTAS)


def played(
    runs: Sequence[Run],
    nodes: TwoNodes,
    runner: Runner,
    settled: Callable[[Run, Played, Played], bool] | None = None,
    golden: Sequence[Played] = (),
) -> list[Played]:
    """Play the runs and return their results.

    A run that only reads is repeated, for at most SETTLE_S, until `settled` accepts its result. A
    broker may learn of a change after the tool that made the change has ended."""
    write_files(nodes)
    names: dict[str, str] = {}
    found = []
    for number, each in enumerate(runs):
        deadline = time.monotonic() + SETTLE_S
        while True:
            tried = dict(names)
            told = play(each, nodes, runner, tried)
            looks = "--describe" in each.line or "--list" in each.line
            if not (looks and settled) or settled(each, told, golden[number]):
                break
            if time.monotonic() > deadline:
                break
        names = tried
        found.append(told)
    return found


def write_files(nodes: TwoNodes) -> None:
    directory = nodes.root / "files"
    directory.mkdir()
    for name, text in FILES.items():
        (directory / name).write_text(text)


def play(wanted: Run, nodes: TwoNodes, runner: Runner, names: dict[str, str]) -> Played:
    tool, *arguments = list(words(wanted.line, nodes))

    def said() -> Ended | None:
        done = runner(tool, *arguments, stdin=wanted.stdin)
        return done if wanted.until in "\n".join(done.lines) else None

    done = wait_for(said, f"{wanted.line}: {wanted.until}", 60.0) if wanted.until else said()
    assert done is not None
    lines = without_places(done.lines, nodes)
    if done.code:  # the rest is a stack trace
        lines = lines[:1]
    else:
        for mask in wanted.masks:
            lines = mask(lines)
    return Played(wanted.line, done.code, named(lines, names))


def words(line: str, nodes: TwoNodes) -> Iterator[str]:
    for word in shlex.split(line):
        if word == "@server":
            yield from ("--bootstrap-server", nodes.bootstrap)
        elif word == "@controller":
            yield from ("--bootstrap-controller", nodes.bootstrap_controllers)
        else:
            files = str(nodes.root / "files")
            yield word.replace("@files", files).replace("@data", str(nodes.root))


TOPIC_ID = re.compile(r"(?<=TopicId: )[\w-]{22}")


def without_places(lines: list[str], nodes: TwoNodes) -> list[str]:
    """Mask the names of directories and ports."""
    text = "\n".join(lines).replace(str(nodes.root), "@data")
    for who, port in nodes.ports.items():
        text = text.replace(str(port), f"PORT-{who}")
    return text.splitlines()


def named(lines: list[str], names: dict[str, str]) -> list[str]:
    """Replace each topic id by a name. All runs use the same name for an id."""

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"ID{len(names) + 1}")

    return [TOPIC_ID.sub(name, line) for line in lines]


def written(found: Iterable[Played]) -> str:
    return "".join(
        "".join(f"{line}\n" for line in (f"$ {each.line}", *each.lines, f"= {each.code}", ""))
        for each in found
    )


def read(text: str) -> list[Played]:
    found: list[Played] = []
    line = ""
    lines: list[str] = []
    for each in text.splitlines():
        if each.startswith("$ "):
            line, lines = each[2:], []
        elif each.startswith("= "):
            found.append(Played(line, int(each[2:]), lines))
            line = ""
        elif line:
            lines.append(each)
    return found
