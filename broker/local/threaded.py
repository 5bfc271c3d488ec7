"""A local cluster on an event loop in a thread, for blocking callers."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from quorate.broker.local.cluster import TIMEOUT_S, Cluster
from quorate.broker.local.fault_rules import Nodes
from quorate.broker.local.layout import Value
from quorate.quorum.metadata.image import MetadataImage

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread. Any other thread may call its methods."""

    def __init__(self) -> None:
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="quorate-cluster", daemon=True
        )
        self._thread.start()
        self._loop = started.result()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and block until it ends.

        Return its result or raise its error."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def on_unhandled(self, tell: Callable[[BaseException], None]) -> None:
        """Call `tell` on the loop with each exception that no code has caught."""

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if error is None:
                loop.default_exception_handler(context)
            else:
                tell(error)

        self._loop.call_soon_threadsafe(self._loop.set_exception_handler, handle)

    def close(self) -> None:
        """Cancel the tasks of the loop, stop it, and wait for the end of the thread."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        async def until_stopped() -> None:
            started.set_result(asyncio.get_running_loop())
            await self._stop.wait()

        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(until_stopped())


class ThreadedCluster:
    """The methods of `Cluster` for blocking callers. Each one returns when its work is done.

    Any thread except that of the event loop may call them. The docstrings of `Cluster` say more,
    and name the errors."""

    def __init__(self, cluster: Cluster, thread: LoopThread) -> None:
        self._cluster = cluster
        self._call = thread.call

    @property
    def bootstrap(self) -> str:
        """Return the HOST:PORT list of all brokers for clients, whether the brokers run or not."""
        return self._cluster.bootstrap

    @property
    def bootstrap_controllers(self) -> str:
        """Return the HOST:PORT list of all controllers."""
        return self._cluster.bootstrap_controllers

    @property
    def librdkafka_config(self) -> dict[str, str]:
        """Return the settings of a client of librdkafka."""
        return self._cluster.librdkafka_config

    @property
    def client_properties(self) -> str | None:
        """Return the path of the file for clients of Java, or None without security."""
        return self._cluster.client_properties

    @property
    def broker_ids(self) -> list[int]:
        """Return the ids of all brokers."""
        return self._cluster.broker_ids

    @property
    def controller_ids(self) -> list[int]:
        """Return the ids of all controllers."""
        return self._cluster.controller_ids

    @property
    def image(self) -> MetadataImage:
        """Return the most recent metadata image of any node that is not paused."""
        return self._cluster.image

    def kill_broker(self, broker_id: int) -> None:
        """Kill a broker as kill -9 does."""
        self._call(self._cluster.kill_broker(broker_id))

    def kill_controller(self, controller_id: int | None = None) -> int:
        """Kill a controller, by default the active one, and return its id."""
        return self._call(self._cluster.kill_controller(controller_id))

    def stop(self, node_id: int) -> None:
        """Stop a node cleanly, as SIGTERM does."""
        self._call(self._cluster.stop(node_id))

    def restart(self, node_id: int) -> None:
        """Start a node that was killed or stopped.

        Use `wait_ready` to wait until a broker is unfenced."""
        self._call(self._cluster.restart(node_id))

    def pause(self, node_id: int) -> None:
        """Pause a node as SIGSTOP does."""
        self._call(self._cluster.pause(node_id))

    def resume(self, node_id: int) -> None:
        """Resume a paused node."""
        self._call(self._cluster.resume(node_id))

    def partition(self, a: Nodes, b: Nodes, *, silent: bool = False) -> None:
        """Cut the links between the nodes of `a` and those of `b`; with `silent` they stay open."""
        self._call(self._cluster.partition(a, b, silent=silent))

    def one_way(self, sender: int, receiver: int) -> None:
        """Hold all that `sender` sends to `receiver`. The other direction works."""
        self._call(self._cluster.one_way(sender, receiver))

    def delay(self, node_id: int, delay_ms: int, bytes_per_s: int = 0) -> None:
        """Delay, and with `bytes_per_s` throttle, the links between a node and other nodes."""
        self._call(self._cluster.delay(node_id, delay_ms, bytes_per_s))

    def slow_disk(self, node_id: int, flush_ms: int) -> None:
        """Let each flush of a node's disk take so much longer."""
        self._call(self._cluster.slow_disk(node_id, flush_ms))

    def fill_disk(self, node_id: int, timeout_s: float = TIMEOUT_S) -> None:
        """Let the writes of a node fail with ENOSPC, and return when the node has stopped itself.

        `restart` starts it again, and its disk then has space."""
        self._call(self._cluster.fill_disk(node_id, timeout_s))

    def heal(self) -> None:
        """End all partitions, one-way holds, delays and slow disks."""
        self._call(self._cluster.heal())

    def wait_ready(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until there is an active controller and all running brokers are unfenced."""
        self._call(self._cluster.wait_ready(timeout_s))

    def wait_in_sync(self, topic: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the topic exists and the ISR of each of its partitions holds all replicas."""
        self._call(self._cluster.wait_in_sync(topic, timeout_s))

    def wait_fenced(self, broker_id: int, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the broker is fenced or is not registered."""
        self._call(self._cluster.wait_fenced(broker_id, timeout_s))

    def controller_id(self, timeout_s: float = TIMEOUT_S) -> int:
        """Return the id of the active controller, and wait until there is one."""
        return self._call(self._cluster.controller_id(timeout_s))

    def leader(self, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> int:
        """Return the leader of the partition, and wait until there is one.

        A killed broker is still named until it is fenced: use `wait_fenced` first."""
        return self._call(self._cluster.leader(topic, partition, timeout_s))

    def isr(self, topic: str, partition: int = 0, timeout_s: float = TIMEOUT_S) -> list[int]:
        """Return the ISR in ascending order, and wait until the partition exists."""
        return self._call(self._cluster.isr(topic, partition, timeout_s))

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, Value] | None = None,
    ) -> None:
        """Create a topic, and wait until all running brokers know a leader of each partition.

        Raise WrongState if no broker runs, TopicRefused if the cluster refuses the topic, and
        NotInTime."""
        self._call(self._cluster.create_topic(name, partitions, replication_factor, config))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the factory of event loops: uvloop's if it is installed, otherwise asyncio's."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop
    return cast(Callable[[], asyncio.AbstractEventLoop], uvloop.new_event_loop)
