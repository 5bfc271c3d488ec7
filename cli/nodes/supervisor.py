"""The supervisor, which runs the nodes of one cluster directory as child processes.

It imports all modules once, then forks every node before any event loop or thread exists. Thus the
nodes share these pages and start fast. gc.freeze keeps the collector from writing to them.

Each child has its own process group, so that Ctrl-C reaches only the supervisor. The supervisor
then stops the brokers first and the controllers last. A node that dies is restarted only with
`restart`. A node that the user restarts with `quorate server` is not a child of this process. The
supervisor never restarts it, but stops it with the other nodes."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from quorate.cli.nodes.cluster_dir import ClusterDir, alive, private, replace_file, set_pids
from quorate.cli.nodes.log_format import error_in
from quorate.cli.nodes.node_process import (
    assert_forkable,
    configure_logging,
    preload,
    run_node,
)
from quorate.config.node_config import NodeConfig
from quorate.quorum.log.disks.os_file import FILE_MODE

STOP_TIMEOUT_S = 40.0  # a broker waits up to 30 s for its controlled shutdown
RESTART_DELAY_S = 0.5
PR_SET_PDEATHSIG = 1
MAX_INHERITED_FD = 256
"""A node closes the descriptors from 3 to before this one."""
LOG_TAIL_BYTES = 4096
"""The end of a node's log in which its last error is searched."""

Say = Callable[[str], None]


@dataclass
class Supervisor:
    """The child processes of one cluster directory.

    `start` and `fork` run before the event loop exists. All other methods run on the event loop of
    `run_loop`. Invariant: `pids` holds the children that were not yet reaped."""

    directory: ClusterDir
    configs: Sequence[NodeConfig]
    say: Say
    restart: bool = False
    faults: bool = False
    pids: dict[int, int] = field(default_factory=dict)  # the running children, by node id
    stopping: bool = False
    ended: int = 0  # the number of nodes that ended without a request
    killed: list[int] = field(default_factory=list)  # the nodes that did not stop in time
    failures: dict[int, str] = field(default_factory=dict)
    """A line about each node that ended without a request, by node id.

    It remains until this supervisor restarts the node, even if the user has restarted it."""

    def start(self) -> None:
        """Fork every node, the controllers first. The process must have one thread."""
        preload()
        gc.collect()
        gc.freeze()
        assert_forkable()
        for config in sorted(self.configs, key=lambda config: not config.is_controller):
            self.pids[config.node_id] = self.fork(config)
        set_pids(self.directory.file, dict(self.pids))

    def fork(self, config: NodeConfig) -> int:
        """Fork one node and return its pid. The child never returns."""
        sys.stdout.flush()
        sys.stderr.flush()
        supervisor = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            os.setpgid(0, 0)
            stop_with_parent(supervisor)
            redirect_output(self.directory, config.node_id)
            configure_logging(config)
            socket = self.directory.faults_socket(config.node_id) if self.faults else None
            status = run_node(config, socket)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stderr.flush()
            os._exit(status)

    @property
    def serves_clients(self) -> bool:
        """Return True if all brokers and a majority of the controllers are not in `failures`."""
        controllers = [each.node_id for each in self.configs if each.is_controller]
        dead = [each for each in controllers if each in self.failures]
        brokers_run = not any(
            each.is_broker and each.node_id in self.failures for each in self.configs
        )
        return brokers_run and len(controllers) - len(dead) > len(controllers) // 2

    async def watch(self, stop: asyncio.Event) -> None:
        """Reap children until `stop` is set.

        Then stop the brokers, and after them the controllers, and remove all pids from
        cluster.json."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self.reap)
        self.reap()
        await stop.wait()
        self.stopping = True
        brokers = [config.node_id for config in self.configs if config.is_broker]
        controllers = [config.node_id for config in self.configs if not config.is_broker]
        for group in (brokers, controllers):
            await self.stop(group)
        set_pids(self.directory.file, {config.node_id: None for config in self.configs})

    async def stop(self, node_ids: Sequence[int]) -> None:
        """Send SIGTERM to the nodes, wait, and send SIGKILL to those that do not end in time.

        The wait ends after STOP_TIMEOUT_S. The call does not wait for the killed nodes."""
        pids = self.pids_of(node_ids)
        for pid in pids.values():
            send(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            self.reap()
            if not any(alive(pid) for pid in pids.values()):
                return
            await asyncio.sleep(0.01)
        late = [node_id for node_id, pid in pids.items() if alive(pid)]
        if late:  # `down` reads the list
            self.killed += late
            replace_file(self.directory.killed_file, json.dumps(self.killed))
        for node_id, pid in pids.items():
            if node_id in late:
                self.say(f"node {node_id} did not stop within {STOP_TIMEOUT_S:.0f} s and is killed")
                send(pid, signal.SIGKILL)

    def pids_of(self, node_ids: Sequence[int]) -> dict[int, int]:
        """Return the pids of the running nodes, both children and nodes restarted by the user."""
        entry = self.directory.read()
        nodes = (*entry["controllers"], *entry["brokers"])
        pids = {node["id"]: node["pid"] for node in nodes} | self.pids
        return {node_id: pid for node_id in node_ids if (pid := pids.get(node_id)) and alive(pid)}

    def reap(self) -> None:
        """Reap the children that ended.

        Unless the supervisor is stopping, report them, and with `restart` restart them after
        RESTART_DELAY_S."""
        for node_id, pid in list(self.pids.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended == 0:
                continue
            del self.pids[node_id]
            if self.stopping:
                continue
            self.ended += 1
            self.clear_pid(node_id, pid)
            why = last_error(self.log_of(node_id)) or f"see {self.log_of(node_id)}"
            self.failures[node_id] = f"node {node_id} ended ({exit_text(status)}): {why}"
            self.say(self.failures[node_id])
            if self.restart:
                asyncio.get_running_loop().call_later(RESTART_DELAY_S, self.spawn, node_id)

    def clear_pid(self, node_id: int, pid: int) -> None:
        """Remove the pid from cluster.json unless the node has a new one meanwhile."""
        entry = self.directory.read()
        nodes = (*entry["controllers"], *entry["brokers"])
        if any(node["id"] == node_id and node["pid"] == pid for node in nodes):
            set_pids(self.directory.file, {node_id: None})

    def spawn(self, node_id: int) -> None:
        """Restart a node as a new program, unless it runs as a child or the supervisor is stopping.

        This process has an event loop by then and must not fork a node."""
        if self.stopping or node_id in self.pids:
            return
        arguments = [sys.executable, "-m", "quorate.cli", "server"]
        arguments.append(str(self.directory.node_file(node_id)))
        if self.faults:
            arguments.append("--faults")
        log = (
            os.POSIX_SPAWN_OPEN,
            2,
            str(self.log_of(node_id)),
            os.O_WRONLY | os.O_APPEND,
            FILE_MODE,
        )
        pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=[log], setpgroup=0)
        self.pids[node_id] = pid
        self.failures.pop(node_id, None)
        set_pids(self.directory.file, {node_id: pid})
        self.say(f"node {node_id} is restarted, pid {pid}")

    def log_of(self, node_id: int) -> str:
        """Return the path of the node's log file."""
        return str(self.directory.node_log(node_id))


def send(pid: int, number: int) -> None:
    """Send a signal to a process that runs. A paused process continues, so that it can obey."""
    if alive(pid):
        os.kill(pid, number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def exit_text(status: int) -> str:
    """Return the signal or the exit code of a wait status as text."""
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.WEXITSTATUS(status)}"


def last_error(log: str) -> str:
    """Return the message of the last line in the node's log, or "" if it is no error."""
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return error_in(lines[-1]) if lines else ""


def stop_with_parent(supervisor: int) -> None:
    """Let this process get SIGTERM when its supervisor dies, on Linux. Elsewhere do nothing.

    If the supervisor has already died, end this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != supervisor:
            os._exit(1)


def redirect_output(directory: ClusterDir, node_id: int) -> None:
    """Redirect the output of this process to the node's log, and close its inherited descriptors.

    Those below MAX_INHERITED_FD are closed. Among them is the pipe whose end signals to
    `up --detach` that the cluster is ready."""
    os.closerange(3, MAX_INHERITED_FD)
    log = private(directory.node_log(node_id), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def run_loop(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a coroutine in the supervisor after the forks.

    The loop is asyncio's, because uvloop handles SIGCHLD itself."""
    with asyncio.Runner() as runner:
        runner.run(main())
