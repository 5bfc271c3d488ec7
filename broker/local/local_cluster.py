"""The entry point of a local cluster, on the running event loop or on a loop in a thread."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from types import TracebackType

from quorate.broker.local.cluster import Cluster
from quorate.broker.local.layout import Shape, Value
from quorate.broker.local.threaded import LoopThread, ThreadedCluster

logger = logging.getLogger("quorate.local")


class LocalCluster:
    """A cluster of real nodes in this process, which is ready when the context is entered:

        with LocalCluster(brokers=3) as cluster: ...
        async with LocalCluster(brokers=3) as cluster: ...

    `with` gives a ThreadedCluster, whose event loop runs in a separate thread. The test may use any
    client, even a blocking one. `async with` gives a Cluster, whose methods are coroutines on the
    current loop. A blocking client in the same thread would block the cluster.

    `config` holds Kafka's properties for all nodes. Without it, topics have up to three replicas,
    and `min.insync.replicas` is one less, but at least 1.

    With `secure`, the cluster is one of `quorate up --secure`: TLS everywhere, SCRAM logins, and
    ACLs. `librdkafka_config` and `client_properties` of the cluster let clients log in as the
    admin.

    If `dir` is given, it keeps the data, and the nodes stop cleanly at the end. After the failure
    of a node, all nodes are killed instead. Without `dir`, the data is in a temporary directory. At
    the end the nodes are killed and the directory is removed.

    The constructor raises ValueError for a wrong number of nodes. Entering raises ValueError if
    `dir` holds another cluster or a property is invalid, RuntimeError if the object is already
    entered, and the errors of `Cluster.start`. Leaving raises NodeFailed if a node failed by
    itself. If the body of the `with` raised an error, that error is raised, and NodeFailed is
    logged."""

    def __init__(
        self,
        controllers: int = 1,
        brokers: int = 1,
        config: Mapping[str, Value] | None = None,
        dir: str | os.PathLike[str] | None = None,
        secure: bool = False,
    ) -> None:
        self.shape = Shape(controllers, brokers, dict(config or {}), secure=secure)
        self._dir = None if dir is None else os.path.abspath(dir)
        self._root = ""
        self._cluster: Cluster | None = None
        self._thread: LoopThread | None = None

    async def __aenter__(self) -> Cluster:
        if self._cluster is not None:
            raise RuntimeError("this LocalCluster is already in use: create another one")
        self._root = self._dir or tempfile.mkdtemp(prefix="quorate-")
        os.makedirs(self._root, exist_ok=True)
        try:
            self._cluster = Cluster(self.shape, self._root)
            await self._cluster.start()
        except BaseException:
            await self._close(orderly=False)
            raise
        return self._cluster

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        failure = await self._close(orderly=self._dir is not None)
        if failure is not None and error is None:
            raise failure
        if failure is not None and failure is not error:
            logger.error("%s", failure)

    def __enter__(self) -> ThreadedCluster:
        self._thread = LoopThread()
        try:
            cluster = self._thread.call(self.__aenter__())
        except BaseException:
            self._thread.close()
            raise
        self._thread.on_unhandled(lambda error: cluster.failed(None, error))
        return ThreadedCluster(cluster, self._thread)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        try:
            self._thread.call(self.__aexit__(kind, error, traceback))
        finally:
            self._thread.close()

    async def _close(self, *, orderly: bool) -> BaseException | None:
        cluster, self._cluster = self._cluster, None
        try:
            if cluster is not None:
                await cluster.close(orderly=orderly)
        finally:
            if self._dir is None:
                shutil.rmtree(self._root, ignore_errors=True)
        return None if cluster is None else cluster.failure
