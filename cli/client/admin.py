"""The command line's view of a cluster: any node of the bootstrap list, or one node by its id.

Errors that pass (no controller yet, a leader that moves) are asked again until the deadline; a lost
connection is tried at the next node, but a request that changes something is never sent twice when
its outcome is unknown. Brokers forward what the active controller must answer; among controllers it
is looked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from quorate.cli.client.connection import Connection, ConnectionLost, Unsupported
from quorate.cli.errors import NotReachable, Refused
from quorate.quorum.rpc.kafka.errors import ErrorCode
from quorate.quorum.rpc.kafka.schemas.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from quorate.quorum.rpc.kafka.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from quorate.quorum.rpc.kafka.wire import Message

R = TypeVar("R", bound=Message)

RETRY_DELAY_S = 0.05
CONNECT_TIMEOUT_S = 5.0
DEFAULT_TIMEOUT_S = 30.0
BROKER_ENDPOINT, CONTROLLER_ENDPOINT = 1, 2
# Answered before anything was done, and over soon.
PASSING = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)
# It may have been done: asked again only if twice is the same as once.
UNKNOWN_OUTCOME = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """`servers` are those of --bootstrap-server or --bootstrap-controller."""

    servers: tuple[tuple[str, int], ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    client_id: str = "quorate-cli"
    controllers: bool = False


class Admin:
    def __init__(self, settings: AdminSettings) -> None:
        self._settings = settings
        self._connections: dict[tuple[str, int], Connection] = {}
        self._any: tuple[str, int] | None = None
        self._nodes: dict[int, tuple[str, int]] = {}

    @property
    def timeout_ms(self) -> int:
        return int(self._settings.timeout_s * 1000)

    @property
    def endpoint_type(self) -> int:
        """What DescribeCluster calls the kind of node that is asked."""
        return CONTROLLER_ENDPOINT if self._settings.controllers else BROKER_ENDPOINT

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def ask(
        self,
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]] = lambda _: (),
    ) -> R:
        """Read something from any node; sent again, elsewhere too, until the deadline."""
        return self._until(request, response, errors, again=True)

    def change(
        self,
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]] = lambda _: (),
        *,
        repeatable: bool = False,
    ) -> R:
        """Change something through any node; sent again only if it was provably not carried out, or
        if it is `repeatable` (twice is the same as once)."""
        return self._until(request, response, errors, again=repeatable)

    def ask_node(self, node_id: int, request: Message, response: type[R]) -> R:
        """Read something from one broker; raises ConnectionLost, for the caller to look again."""
        return self._node(node_id).call(request, response, self._settings.timeout_s)

    def ask_nodes(
        self, requests: Mapping[int, Message], response: type[R]
    ) -> dict[int, R | ConnectionLost]:
        """Read something from several brokers at once: all are asked before one is waited for."""
        connections: dict[int, Connection] = {}
        answers: dict[int, R | ConnectionLost] = {}
        for node_id in requests:
            with _lost_is_an_answer(answers, node_id):
                connections[node_id] = self._node(node_id)
        begun: dict[int, Callable[[], R]] = {}
        try:
            for node_id, connection in connections.items():
                with _lost_is_an_answer(answers, node_id):
                    begun[node_id] = connection.begin(
                        requests[node_id], response, self._settings.timeout_s
                    )
            for node_id, answer in begun.items():
                with _lost_is_an_answer(answers, node_id):
                    answers[node_id] = answer()
        except BaseException:  # answers that are under way are nobody's any more
            for connection in connections.values():
                connection.close()
            raise
        return answers

    def _node(self, node_id: int) -> Connection:
        if node_id not in self._nodes:
            self.metadata(())
        if node_id not in self._nodes:
            raise ConnectionLost(f"node {node_id} is not known to be alive")
        return self._connect(self._nodes[node_id])

    def metadata(self, topics: Sequence[str] | None, *, create: bool = False) -> MetadataResponse:
        """Of the topics named, of all (None), or of brokers only (empty). `create` those missing,
        where the cluster allows it."""
        names = None if topics is None else tuple(MetadataRequestTopic(name=t) for t in topics)
        request = MetadataRequest(topics=names, allow_auto_topic_creation=create)
        answer = self.ask(request, MetadataResponse)
        self._nodes = {node.node_id: (node.host, node.port) for node in answer.brokers}
        return answer

    def wait(self, delay_s: float) -> None:
        time.sleep(delay_s)

    def serves(self, api_key: int) -> bool:
        return self._any_connection().serves(api_key, self._settings.timeout_s)

    def _until(
        self,
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]],
        *,
        again: bool,
    ) -> R:
        deadline = time.monotonic() + self._settings.timeout_s
        asked_again = PASSING | UNKNOWN_OUTCOME if again else PASSING
        while True:
            connection = self._any_connection()
            left_s = max(0.1, deadline - time.monotonic())
            try:
                answer = connection.call(request, response, left_s)
            except ConnectionLost as error:
                self._any = None
                if not again:
                    raise NotReachable(f"outcome unknown: {error}") from None
                if time.monotonic() > deadline:
                    raise NotReachable(str(error)) from None
                continue
            except Unsupported as error:
                raise Refused(str(error)) from None
            passing = any(ErrorCode.of(code) in asked_again for code in errors(answer))
            if not passing or time.monotonic() > deadline:
                return answer
            if self._settings.controllers:
                self._any = self._active_controller(connection)
            time.sleep(RETRY_DELAY_S)

    def _active_controller(self, connection: Connection) -> tuple[str, int] | None:
        """Who it is by this controller's word; the others answer NOT_CONTROLLER for ever."""
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False,
            endpoint_type=CONTROLLER_ENDPOINT,
            include_fenced_brokers=False,
        )
        try:
            described = connection.call(request, DescribeClusterResponse, self._settings.timeout_s)
        except ConnectionLost:
            return None
        nodes = {node.broker_id: (node.host, node.port) for node in described.brokers}
        return nodes.get(described.controller_id)

    def _any_connection(self) -> Connection:
        """To the node used last, else to the first of the bootstrap list that answers."""
        if self._any is not None:
            try:
                return self._connect(self._any)
            except ConnectionLost:
                self._any = None
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            failures = []
            for address in self._settings.servers:
                try:
                    connection = self._connect(address)
                except ConnectionLost as error:
                    failures.append(str(error))
                    continue
                self._any = address
                return connection
            if time.monotonic() > deadline:
                raise NotReachable("no server answers: " + "; ".join(failures))
            time.sleep(RETRY_DELAY_S)

    def _connect(self, address: tuple[str, int]) -> Connection:
        connection = self._connections.get(address)
        if connection is None or connection.closed:
            settings = self._settings
            connection = Connection(
                *address,
                timeout_s=min(CONNECT_TIMEOUT_S, settings.timeout_s),
                client_id=settings.client_id,
            )
            self._connections[address] = connection
        return connection


@contextmanager
def _lost_is_an_answer(answers: dict[int, R | ConnectionLost], node_id: int) -> Iterator[None]:
    try:
        yield
    except ConnectionLost as error:
        answers[node_id] = error


def check(code: int, text: str | None, what: str = "") -> None:
    """Refused, with Kafka's name of the error, unless `code` is NONE."""
    if code:
        error = ErrorCode.of(code)
        name = error.name if error != ErrorCode.UNKNOWN_SERVER_ERROR else f"error {code}"
        raise Refused(f"{what}{': ' if what else ''}{name}: {text or error.message}")
