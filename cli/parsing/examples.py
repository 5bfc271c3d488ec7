"""The examples in the --help of each command, by the path of the command.

A test parses each of them, so that no example names an option that does not exist."""

from __future__ import annotations

AT = "--bootstrap-server b1:9092"
MOVES = "--reassignment-json-file moves.json"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "acls": (
        f"--add --allow-principal User:alice --operation Read --topic orders {AT}",
        f"--add --allow-principal User:app --producer --topic orders {AT}",
        f"--remove --topic orders --force {AT}",
        f"--list {AT}",
    ),
    "broker-api-versions": (AT,),
    "certs authority": ("--dir ca",),
    "certs client": ("--dir ca --name alice",),
    "certs node": ("--dir ca --id 4 --host b4.example.com", "--dir ca --id 4 --renew"),
    "chaos compare": ("before.json after.json",),
    "chaos describe": ("leader-kill",),
    "chaos heal": ("--dir quorate-data",),
    "chaos list": ("",),
    "chaos run": ("leader-kill", "power-loss --dir quorate-data --html page.html"),
    "chaos schema": ("",),
    "chaos steps": ("",),
    "cluster cluster-id": (AT,),
    "cluster decommission": (f"4 {AT}", f"4 {AT} --throttle 50000000 --yes"),
    "cluster unregister": (f"--id 4 {AT}",),
    "completion": ("bash > ~/.local/share/bash-completion/completions/quorate",),
    "configs": (
        f"--describe --topic orders {AT}",
        f"--alter --topic orders --add-config retention.ms=86400000 {AT}",
        f"--alter --broker 4 --delete-config log.cleaner.threads {AT}",
    ),
    "console": (AT, f"--port 9000 --command-config client.properties {AT}"),
    "console-consumer": (f"--topic orders --from-beginning {AT}", f"--topic orders --group g {AT}"),
    "console-producer": (
        f"--topic orders {AT}",
        f"--topic orders --property parse.key=true --property key.separator=: {AT}",
    ),
    "consumer-groups": (
        f"--list {AT}",
        f"--describe --group g {AT}",
        f"--reset-offsets --group g --topic orders --to-earliest --execute {AT}",
    ),
    "delete-records": (f"--offset-json-file offsets.json {AT}",),
    "demo": ("", "--seconds 5 --no-spark"),
    "down": ("--dir quorate-data",),
    "dump-log": (
        "--files orders-0/00000000000000000000.log --print-data-log",
        "--files __cluster_metadata-0/00000000000000000000.log --cluster-metadata-decoder",
    ),
    "features describe": (AT,),
    "features disable": (f"--feature eligible.leader.replicas.version {AT}",),
    "features downgrade": (f"--feature metadata.version=26 {AT}",),
    "features feature-dependencies": (f"--feature metadata.version=27 {AT}",),
    "features upgrade": (f"--release-version 4.1 {AT}", f"--feature metadata.version=27 {AT}"),
    "features version-mapping": (f"--release-version 4.1 {AT}",),
    "get-offsets": (f"--topic orders {AT}", f"--topic orders --time -2 {AT}"),
    "history at": ("quorate-data/nodes/1/data --offset 120",),
    "history diff": ("quorate-data/nodes/1/data 100 200",),
    "history explain": ("quorate-data/nodes/1/data --topic orders --partition 0",),
    "history export": ("quorate-data/nodes/1/data --out tables",),
    "history report": ("quorate-data/nodes/1/data --out report.html",),
    "history sql": ("'SELECT count(*) FROM leadership' quorate-data/nodes/1/data",),
    "history stream": ("quorate-data --out history-table --once",),
    "history top": ("quorate-data/nodes/1/data --limit 5",),
    "history whatif": ("quorate-data/nodes/1/data --kill 4 --kill 5",),
    "leader-election": (f"--election-type preferred --all-topic-partitions {AT}",),
    "log-dirs": (f"--describe --topic-list orders {AT}",),
    "man-pages": ("~/.local/share/man/man1",),
    "metadata-quorum add-controller": ("",),
    "metadata-quorum describe": ("--status", "--replication --human-readable"),
    "metadata-quorum force-voters": (
        "--dir /data/b4 --dir /data/b5 --controller c10.properties --dry-run",
    ),
    "metadata-quorum remove-controller": (
        "--controller-id 3 --controller-directory-id MvDxzVmcRsaTz33bUuRU6A",
    ),
    "metadata-shell": ("--snapshot __cluster_metadata-0/00000000000000000000.log ls /",),
    "reassign-partitions": (
        f"--generate --topics-to-move-json-file topics.json --broker-list 4,5,6 {AT}",
        f"--execute {MOVES} --throttle 50000000 {AT}",
        f"--verify {MOVES} {AT}",
    ),
    "replica-verification": (f"--topics-include orders --once {AT}",),
    "server": ("server.properties", "server.properties --log-level debug"),
    "state-changes merge": ("--topic orders --logs node1.log,node2.log",),
    "status": ("", f"--watch {AT}", f"--only offline --topic orders {AT}"),
    "storage declare": ("-c server.properties --new /data/k2",),
    "storage format": ("-c server.properties -t MvDxzVmcRsaTz33bUuRU6A",),
    "storage info": ("-c server.properties",),
    "storage random-uuid": ("",),
    "storage repair-epoch": ("-c server.properties --epoch 7",),
    "storage verify": ("/data/k1", "--repair /data/k1"),
    "topics": (
        f"--create --topic orders --partitions 12 --replication-factor 3 {AT}",
        f"--describe --topic orders {AT}",
        f"--delete --topic orders {AT}",
    ),
    "up": ("", "--brokers 1 --controllers 1 --port 0 --detach", "--override log.level=DEBUG"),
}
"""The arguments of the examples, without the name of the command."""


NOT_IN_GROUPS = {"chaos schema", "chaos steps"}
"""The commands whose name says all, which the help of their group does not repeat."""


def epilog_of(path: str) -> str | None:
    """Return the end of the help of the command at `path`, such as "cluster unregister". The help
    of a group has the first example of each of its commands. Return None if there is no example."""
    found = [f"{path} {each}" for each in EXAMPLES.get(path, ())] or [
        f"{inner} {each[0]}"
        for inner, each in EXAMPLES.items()
        if inner.startswith(f"{path} ") and inner not in NOT_IN_GROUPS
    ]
    if not found:
        return None
    title = "Example:" if len(found) == 1 else "Examples:"
    return "\n".join(("\b", title, *(f"  quorate {each}".rstrip() for each in found)))
