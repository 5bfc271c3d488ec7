"""The directory of a local cluster: D/cluster.json and one D/nodes/ID per node.

A node's directory holds its server.properties, its data and its log. The config key
`quorate.cluster.file` names cluster.json, and the node writes its own pid there at each start.
cluster.json is always replaced as a whole, under a file lock. No file is flushed (fsync)."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from quorate.cli.client.errors import Refused
from quorate.cli.nodes.client_protocol import listener_of_commands
from quorate.config.node_config import NodeConfig
from quorate.config.properties import parse, render
from quorate.quorum.log.disks.disk import OsDisk
from quorate.quorum.log.disks.os_file import FILE_MODE
from quorate.quorum.rpc.ports import free_socket

if TYPE_CHECKING:
    from quorate.quorum.secured.secured_dir import SecuredDir

HOST = "127.0.0.1"
CLIENT_LISTENER = "PLAINTEXT"
"""The name of the listener for clients of a new cluster's brokers. Overrides can give it another
security protocol."""
MAX_CLUSTER_BYTES = 1 << 20
MAX_PID = 1 << 22
TEXTS = ("cluster_id", "bootstrap", "bootstrap_controllers")
"""The keys of cluster.json whose values are text."""
FAULTS_SOCKET = "faults.sock"
"""The name of the fault socket in the directory of a node that runs with `--faults`."""


class NodeEntry(TypedDict):
    """The entry of a node in cluster.json. `pid` is None if the node does not run."""

    id: int
    pid: int | None
    host: str
    port: int
    log_dir: str


class ClusterEntry(TypedDict):
    """The content of cluster.json. `bootstrap` and `bootstrap_controllers` list HOST:PORT pairs."""

    cluster_id: str
    bootstrap: str
    bootstrap_controllers: str
    controllers: list[NodeEntry]
    brokers: list[NodeEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size, the first port and the config overrides of a new cluster.

    Port 0 means free ports. With `racks`, broker.rack is rack-1 to rack-N in turn. `overrides` are
    pairs of a config key and its value. `secured` has the security of a cluster that was created
    with --secure."""

    controllers: int = 3
    brokers: int = 3
    port: int = 9092
    racks: int = 0
    overrides: tuple[tuple[str, str], ...] = ()
    secured: SecuredDir | None = None

    @property
    def client_listener(self) -> str:
        """Return the name of the listener for clients of a new cluster's brokers."""
        return CLIENT_LISTENER if self.secured is None else self.secured.client_listener


def read_cluster(file: Path) -> ClusterEntry:
    """Read a cluster.json.

    Raise Refused if it is not valid, FileNotFoundError if it does not exist."""
    with open(file, "rb") as opened:
        return decode_cluster(opened.read(MAX_CLUSTER_BYTES + 1), str(file))


def decode_cluster(content: bytes, where: str) -> ClusterEntry:
    """Return the content of a cluster.json.

    Raise Refused, which names `where`, for any other bytes. The lists of nodes, and the `id` and
    `log_dir` of each node, must be present. Other keys may be missing."""
    if len(content) > MAX_CLUSTER_BYTES:
        raise Refused(f"{where} has more than {MAX_CLUSTER_BYTES} bytes: it is no cluster.json")
    try:
        entry = json.loads(content)
        if any(type(entry.get(name, "")) is not str for name in TEXTS):
            raise ValueError(f"{', '.join(TEXTS)} must be texts")
        if type(entry["controllers"]) is not list or type(entry["brokers"]) is not list:
            raise ValueError("controllers and brokers must be lists")
        for node in (*entry["controllers"], *entry["brokers"]):
            _require_node(node)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Refused(
            f"{where} is no cluster.json ({type(error).__name__}: {error}): "
            "remove it, and `quorate up` writes it again"
        ) from None
    return cast(ClusterEntry, entry)


def _require_node(node: Any) -> None:
    """Raise ValueError or KeyError unless `node` is an entry that this program wrote."""
    pid, port = node.get("pid"), node.get("port", 0)
    if type(node["id"]) is not int or type(node["log_dir"]) is not str or "\0" in node["log_dir"]:
        raise ValueError("a node's id must be a number and its log_dir a text")
    if type(port) is not int or not 0 <= port <= 65_535 or type(node.get("host", "")) is not str:
        raise ValueError(f"node {node['id']} has no valid host and port")
    if pid is not None and (type(pid) is not int or not 0 < pid <= MAX_PID):
        raise ValueError(f"node {node['id']} has no valid pid")


class ClusterDir:
    """The paths and files of one local cluster below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.file = self.root / "cluster.json"
        self.supervisor_file = self.root / "up.pid"
        self.killed_file = self.root / "killed.json"
        self.chaos_progress = self.root / "chaos-progress.json"

    def node_file(self, node_id: int) -> Path:
        """Return the path of the node's server.properties."""
        return self.root / "nodes" / str(node_id) / "server.properties"

    def node_log(self, node_id: int) -> Path:
        """Return the path of the node's log file."""
        return self.root / "nodes" / str(node_id) / "node.log"

    def faults_socket(self, node_id: int) -> Path:
        """Return the path of the node's fault socket."""
        return self.root / "nodes" / str(node_id) / FAULTS_SOCKET

    def node_ids(self) -> list[int]:
        """Return the ids of all nodes that have a directory, in ascending order."""
        nodes = self.root / "nodes"
        if not nodes.is_dir():
            return []
        return sorted(int(each.name) for each in nodes.iterdir() if each.name.isdecimal())

    def create(self, shape: Shape) -> None:
        """Write the server.properties file of every node. No data directory is formatted yet.

        Controllers have the ids from 1 on, and brokers the next ones. The directories of all nodes
        appear in one step, so that a call that does not end leaves no part of a cluster. Raise
        Refused if the directory of the nodes holds something else."""
        shutil.rmtree(self._new_nodes, ignore_errors=True)
        ports = self.ports(shape)
        # The brokers get the first ports, because clients expect a broker on the first port. The
        # controllers get the first ids.
        controller_ports = ports[shape.brokers :]
        voters = ",".join(f"{i}@{HOST}:{port}" for i, port in enumerate(controller_ports, 1))
        for node_id, port in enumerate(controller_ports, 1):
            listener = f"CONTROLLER://{HOST}:{port}"
            self._write_node(node_id, "controller", listener, voters, shape)
        for node_id, port in enumerate(ports[: shape.brokers], shape.controllers + 1):
            listener = f"{shape.client_listener}://{HOST}:{port}"
            self._write_node(node_id, "broker", listener, voters, shape)
        try:
            self._new_nodes.rename(self.root / "nodes")
        except OSError as error:
            raise Refused(
                f"{self.root / 'nodes'}: {error.strerror}: choose another --dir"
            ) from None

    def remove_nodes(self) -> None:
        """Remove the nodes that `create` has made, before their directories are formatted."""
        shutil.rmtree(self.root / "nodes")

    @property
    def _new_nodes(self) -> Path:
        return self.root / "nodes.new"

    @staticmethod
    def ports(shape: Shape) -> Sequence[int]:
        """Return the ports of a new cluster: those from the first one on, or free ones."""
        count = shape.controllers + shape.brokers
        return free_ports(count) if shape.port == 0 else range(shape.port, shape.port + count)

    def _write_node(
        self, node_id: int, role: str, listener: str, voters: str, shape: Shape
    ) -> None:
        file = self._new_nodes / str(node_id) / "server.properties"
        OsDisk().make_dirs(str(file.parent))
        replicas = min(3, shape.brokers)
        values = {
            "process.roles": role,
            "node.id": str(node_id),
            "controller.quorum.voters": voters,
            "listeners": listener,
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.node_file(node_id).parent / "data"),
            "default.replication.factor": str(replicas),
            "min.insync.replicas": str(max(1, replicas - 1)),
            "offsets.topic.replication.factor": str(replicas),
            "quorate.cluster.file": str(self.file),
        }
        if shape.secured is not None:
            values.update(shape.secured.settings(node_id))
        values.update(shape.overrides)
        if role == "broker" and shape.racks:
            number = (node_id - shape.controllers - 1) % shape.racks
            values.setdefault("broker.rack", f"rack-{number + 1}")
        replace_file(file, render(values))

    def override(self, node_id: int, values: dict[str, str]) -> None:
        """Set keys in a node's file.

        Comments in the file remain, and the new values are at its end."""
        file = self.node_file(node_id)
        names = set(values)
        kept = [line for line in file.read_text().splitlines(True) if name_of(line) not in names]
        replace_file(file, "".join(kept) + render(values))

    def killed_nodes(self) -> set[int]:
        """Return the nodes that the supervisor had to kill at its end, and remove their list."""
        try:
            found = json.loads(self.killed_file.read_text())
            self.killed_file.unlink()
        except (OSError, ValueError):
            return set()
        return {each for each in found if type(each) is int} if isinstance(found, list) else set()

    def read(self) -> ClusterEntry:
        """Return the content of cluster.json. Raise as `read_cluster` does."""
        return read_cluster(self.file)

    def write(self, cluster_id: str, configs: Sequence[NodeConfig]) -> None:
        """Write a new cluster.json in which no node runs yet."""
        controllers = [entry_of(config) for config in configs if config.is_controller]
        brokers = [entry_of(config) for config in configs if config.is_broker]
        with locked(self.file):
            entry = ClusterEntry(
                cluster_id=cluster_id,
                bootstrap=addresses(brokers),
                bootstrap_controllers=addresses(controllers),
                controllers=controllers,
                brokers=brokers,
            )
            replace_file(self.file, json.dumps(entry, indent=2) + "\n")


def name_of(line: str) -> str:
    """Return the key that a line of a .properties file sets, or an empty string."""
    entries = parse(line)
    return entries[0].name if entries else ""


def entry_of(config: NodeConfig) -> NodeEntry:
    """Return the cluster.json entry of a node that does not run.

    Its address is the advertised one of the first client listener. If the node has none, it is that
    of the first controller listener."""
    listener = listener_of_commands(config.listeners)
    advertised = config.listeners.advertisement(listener.name) or listener
    return NodeEntry(
        id=config.node_id,
        pid=None,
        host=advertised.host,
        port=advertised.port,
        log_dir=config.log_dir,
    )


def addresses(entries: Sequence[NodeEntry]) -> str:
    """Return the HOST:PORT list of the nodes."""
    return ",".join(f"{entry['host']}:{entry['port']}" for entry in entries)


def set_pids(file: Path, pids: dict[int, int | None]) -> None:
    """Set the pids of the given nodes in cluster.json. None means that the node does not run.

    Nodes that it does not list are ignored. The conditions and errors are those of `update`."""

    def changed(entry: Any) -> Any:
        for node in (*entry["controllers"], *entry["brokers"]):
            if node["id"] in pids:
                node["pid"] = pids[node["id"]]
        return entry

    update(file, changed)


@contextlib.contextmanager
def listed(file: Path, node_id: int) -> Iterator[None]:
    """Set the node's pid in cluster.json to that of this process for the duration of the block.

    At the end of the block the pid is removed. If another process already runs the node, the lock
    of the data directory will refuse this process. The end of the block then restores the pid of
    the other process. Raise as `read_cluster` does."""
    entry = read_cluster(file)
    nodes = (*entry["controllers"], *entry["brokers"])
    before = next((node["pid"] for node in nodes if node["id"] == node_id), None)
    set_pids(file, {node_id: os.getpid()})
    try:
        yield
    finally:
        other = before if before != os.getpid() and alive(before) else None
        if file.exists():
            set_pids(file, {node_id: other})


def update(file: Path, change: Callable[[Any], Any]) -> None:
    """Replace cluster.json by `change(content)` under its lock.

    Do nothing if the file does not exist. Raise Refused if its content is not valid."""
    with locked(file):
        if file.exists():
            changed = change(read_cluster(file))
            replace_file(file, json.dumps(changed, indent=2) + "\n")


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the exclusive lock of a file. Block until it is free.

    The lock is another file, with the suffix .lock instead of that of `file`. It is created if it
    is missing, and remains."""
    with open(file.with_suffix(".lock"), "w", opener=private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def replace_file(file: Path, text: str) -> None:
    """Replace a file atomically. A reader sees either the old content or the new one.

    Nothing is flushed (fsync), so a power loss may leave either content or an empty file."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    write_private(temporary, text)
    temporary.replace(file)


def private(path: str | Path, flags: int) -> int:
    """Open a file that group and others cannot read, whatever the umask is. An opener for `open`.

    The mode of an existing file is changed, because older versions created files with other
    modes."""
    fd = os.open(path, flags, FILE_MODE)
    os.fchmod(fd, FILE_MODE)
    return fd


def write_private(file: Path, text: str) -> None:
    """Write a file that group and others cannot read."""
    with open(file, "w", opener=private) as opened:
        opened.write(text)


def free_ports(count: int) -> list[int]:
    """Return distinct ports, in ascending order, that were free just now. No port is reserved."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(free_socket(HOST)) for _ in range(count)]
        return sorted(each.getsockname()[1] for each in sockets)


def alive(pid: int | None) -> bool:
    """Return True if the process runs.

    A zombie, for which its parent has not yet waited, counts as ended. The pid may meanwhile belong
    to another program."""
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state != "Z"
