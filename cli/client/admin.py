"""Requests of the command line to a cluster: to any bootstrap server, or to a node by its id.

Requests that fail with a transient error (no controller yet, a moving leader) are sent again until
the deadline. After a lost connection, the client tries the bootstrap servers again. A
request that changes something is never sent twice while its outcome is unknown, unless a repetition
is harmless.

Brokers forward requests for the active controller. Controllers do not, so with
--bootstrap-controller the client looks for the active one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.connection import Connection, ConnectionLost, Unsupported, lost_is_an_answer
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.first_answer import NoneAnswered, first_answer
from quorate.cli.client.node_http import NodeHttp
from quorate.cli.client.tls_probe import TlsProbe
from quorate.cli.terminal.progress import Background
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from quorate.quorum.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from quorate.quorum.protocol.wire import Message

R = TypeVar("R", bound=Message)

RETRY_DELAY_S = 0.05
CONNECT_TIMEOUT_S = 5.0
DEFAULT_TIMEOUT_S = 30.0
BROKER_ENDPOINT, CONTROLLER_ENDPOINT = 1, 2
# Transient errors which guarantee that the server did not carry out the request.
PASSING = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
# The server may have carried out the request. Retried only if a repetition is harmless.
UNKNOWN_OUTCOME = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminSettings:
    """The addresses, limits and names with which an Admin connects.

    `servers` are the (host, port) pairs of --bootstrap-server or --bootstrap-controller.
    `controllers` is True if they are controllers. No request is sent again later than `timeout_s`
    after its first attempt. The bound is approximate: a search for a server that accepts a
    connection may take `timeout_s` in addition. A first search ends after `absent_s` if it finds
    that no server exists, because an address is wrong or the cluster does not run. A later one goes
    on, because the servers may be restarted. With `impatient` each search makes one attempt."""

    servers: tuple[tuple[str, int], ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    client_id: str = "quorate-cli"
    controllers: bool = False
    security: ClientSecurity = ClientSecurity()
    absent_s: float = math.inf
    impatient: bool = False


class Admin:
    """A blocking client of one cluster, owned by the thread of one command.

    It keeps at most one connection for each address and opens connections on demand. Close it after
    use; `connected` in options.py does so."""

    def __init__(self, settings: AdminSettings, progress: Background | None = None) -> None:
        """`progress` shows that a request waits. None shows nothing."""
        self._settings = settings
        self._progress = progress
        self._connections: dict[tuple[str, int], Connection] = {}
        self._probe = TlsProbe()
        self._any: tuple[str, int] | None = None
        self._has_answered = False
        self._nodes: dict[int, tuple[str, int]] = {}

    @property
    def timeout_ms(self) -> int:
        """Return the timeout of one request with its retries, in ms."""
        return int(self._settings.timeout_s * 1000)

    @property
    def endpoint_type(self) -> int:
        """Return DescribeCluster's endpoint type of the bootstrap servers: broker or controller."""
        return CONTROLLER_ENDPOINT if self._settings.controllers else BROKER_ENDPOINT

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def ask(
        self,
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]] = lambda _: (),
        wait_s: float | None = None,
    ) -> R:
        """Send a read-only request to any node and return the response.

        `errors` returns the error codes in a response. On a transient error among them or a lost
        connection the request is sent again until the deadline. After the deadline the last
        response is returned with its errors. Without `errors` the first response is returned,
        even if it contains errors. The deadline is after `wait_s` if that is less than the timeout
        of the settings. Raise NotReachable if no node answers. Raise Refused if the node does not
        serve the API or its response cannot be decoded."""
        with self._waiting():
            return self._until(request, response, errors, again=True, wait_s=wait_s)

    def change(
        self,
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]] = lambda _: (),
        *,
        repeatable: bool = False,
    ) -> R:
        """Send a request that changes something through any node, and return the response.

        `errors` is that of `ask`. After a lost connection or a timeout error the request is sent
        again only if it is `repeatable`, which means that a repetition is harmless. Otherwise a
        lost connection raises NotReachable, because the outcome is unknown, and a response with a
        timeout error is returned. After other transient errors, which prove that nothing was
        changed, the request is always sent again. Raise NotReachable and Refused as `ask` does."""
        with self._waiting():
            return self._until(request, response, errors, again=repeatable)

    def ask_node(
        self,
        node_id: int,
        request: Message,
        response: type[R],
        timeout_s: float | None = None,
    ) -> R:
        """Send a request to one broker once, and return the response.

        `timeout_s` bounds each wait for the socket; None means the timeout of the settings. The
        address is that of the last `metadata` response, which is read first if it lacks the broker.

        Raise ConnectionLost if the broker is not in the metadata or its connection fails, so that
        the caller can refresh the metadata. Raise Unsupported if the broker does not serve the
        API, Refused if the response cannot be decoded, and NotReachable if the metadata must be
        read and no node answers."""
        if timeout_s is None:
            timeout_s = self._settings.timeout_s
        with self._waiting():
            return self._node(node_id).call(request, response, timeout_s)

    def ask_nodes(
        self, requests: Mapping[int, Message], response: type[R]
    ) -> dict[int, R | ConnectionLost]:
        """Send a request to each of several brokers, then wait for the responses.

        All requests are in flight before the first response is awaited. The result maps each broker
        to its response, or to the ConnectionLost error of its connection. Any other error of
        `ask_node` is raised, and then the responses of all brokers are lost."""
        with self._waiting():
            return self._ask_nodes(requests, response)

    def _ask_nodes(
        self, requests: Mapping[int, Message], response: type[R]
    ) -> dict[int, R | ConnectionLost]:
        connections: dict[int, Connection] = {}
        answers: dict[int, R | ConnectionLost] = {}
        for node_id in requests:
            with lost_is_an_answer(answers, node_id):
                connections[node_id] = self._node(node_id)
        begun: dict[int, Callable[[], R]] = {}
        try:
            for node_id, connection in connections.items():
                with lost_is_an_answer(answers, node_id):
                    begun[node_id] = connection.begin(
                        requests[node_id], response, self._settings.timeout_s
                    )
            for node_id, answer in begun.items():
                with lost_is_an_answer(answers, node_id):
                    answers[node_id] = answer()
        except BaseException:  # Responses in flight would be taken for those of later requests.
            for connection in connections.values():
                connection.close()
            raise
        return answers

    def of_controllers(self, servers: tuple[tuple[str, int], ...]) -> Admin:
        """Return another client of the same cluster, which asks these controllers."""
        return Admin(replace(self._settings, servers=servers, controllers=True))

    @property
    def http(self) -> NodeHttp:
        """Return the requests to the HTTP ports of nodes, with the security of this client."""
        return NodeHttp(self._settings.security)

    def certificate_end_s(self, node_id: int) -> float | None:
        """Return the end of validity of a broker's certificate, in seconds since 1970 UTC. Return
        None without TLS, or if the broker does not answer.

        Raise Refused if the certificate is refused."""
        if self._settings.security.tls is None:
            return None
        try:
            return self._node(node_id).certificate_end_s()
        except ConnectionLost:
            return None

    def _node(self, node_id: int) -> Connection:
        """Return a connection to the broker.

        Raise ConnectionLost if the metadata does not list it."""
        if node_id not in self._nodes:
            self.metadata(())
        if node_id not in self._nodes:
            raise ConnectionLost(f"node {node_id} is not known to be alive")
        return self._connect(self._nodes[node_id])

    def metadata(self, topics: Sequence[str] | None, *, create: bool = False) -> MetadataResponse:
        """Return the metadata of `topics`, of all topics (None) or of the brokers only (empty).

        With `create` the cluster creates missing topics if its configuration allows that. Errors of
        topics are left in the response; none of them is retried. The brokers of the response
        replace those that `ask_node` knows. Raise as `ask` does."""
        names = None if topics is None else tuple(MetadataRequestTopic(name=t) for t in topics)
        request = MetadataRequest(topics=names, allow_auto_topic_creation=create)
        answer = self.ask(request, MetadataResponse)
        self._nodes = {node.node_id: (node.host, node.port) for node in answer.brokers}
        return answer

    def wait(self, delay_s: float) -> None:
        """Block the calling thread for `delay_s`."""
        with self._waiting():
            time.sleep(delay_s)

    def show_no_progress(self) -> None:
        """From now on, do not show that requests wait: the command waits without an end, or shows
        its progress itself."""
        self._progress = None

    def serves(self, api_key: int) -> bool:
        """Return True if the node that is used for requests to any node serves the API.

        Raise NotReachable if no server accepts a connection, ConnectionLost if the connection then
        fails."""
        with self._waiting():
            return self._any_connection().serves(api_key, self._settings.timeout_s)

    def _waiting(self) -> AbstractContextManager[None]:
        return nullcontext() if self._progress is None else self._progress.waiting()

    def _until(
        self,
        request: Message,
        response: type[R],
        errors: Callable[[R], Iterable[int]],
        *,
        again: bool,
        wait_s: float | None = None,
    ) -> R:
        timeout_s = self._settings.timeout_s
        deadline = time.monotonic() + (timeout_s if wait_s is None else min(wait_s, timeout_s))
        asked_again = PASSING | UNKNOWN_OUTCOME if again else PASSING
        while True:
            connection = self._any_connection()
            left_s = max(0.1, deadline - time.monotonic())
            try:
                answer = connection.call(request, response, left_s)
            except ConnectionLost as error:
                self._any = None
                if not again:
                    raise NotReachable(f"the outcome of the request is unknown: {error}") from None
                if time.monotonic() > deadline:
                    raise NotReachable(str(error)) from None
                time.sleep(RETRY_DELAY_S)
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
        """Return the address of the active controller according to this controller, or None.

        Other controllers do not forward requests. They would answer NOT_CONTROLLER until the
        deadline."""
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
        """Return a connection to the node used last, or to the bootstrap server that answers first
        (`first_answer.py`).

        Raise NotReachable if none answers in time."""
        if self._any is not None:
            try:
                return self._connect(self._any)
            except ConnectionLost:
                self._any = None
        began_s, servers = time.monotonic(), self._settings.servers
        while True:
            try:
                number, connection = first_answer([partial(self._answering, at) for at in servers])
            except NoneAnswered as failed:
                if time.monotonic() - began_s > self._patience_s(failed):
                    raise NotReachable(failed.text(self._settings.controllers)) from None
                time.sleep(RETRY_DELAY_S)
                continue
            self._any, self._has_answered = servers[number], True
            return self._kept(servers[number], connection)

    def _patience_s(self, failed: NoneAnswered) -> float:
        """Return the time after which the search for a server ends. -1 ends it immediately."""
        settings = self._settings
        if settings.impatient:
            return -1
        short = failed.absent and not self._has_answered
        return min(settings.timeout_s, settings.absent_s) if short else settings.timeout_s

    def _answering(self, address: tuple[str, int]) -> Connection:
        """Return a new connection to a server that has answered. Another thread may call it."""
        connection = self._open(address)
        try:
            connection.serves(ApiKey.API_VERSIONS, min(CONNECT_TIMEOUT_S, self._settings.timeout_s))
        except BaseException:
            connection.close()
            raise
        return connection

    def _kept(self, address: tuple[str, int], connection: Connection) -> Connection:
        """Keep a connection for the next requests to its address. Close an earlier one."""
        before = self._connections.get(address)
        if before is not None:
            before.close()
        self._connections[address] = connection
        return connection

    def _connect(self, address: tuple[str, int]) -> Connection:
        connection = self._connections.get(address)
        if connection is None or connection.closed:
            connection = self._kept(address, self._open(address))
        return connection

    def _open(self, address: tuple[str, int]) -> Connection:
        settings = self._settings
        return Connection(
            *address,
            timeout_s=min(CONNECT_TIMEOUT_S, settings.timeout_s),
            client_id=settings.client_id,
            tls=settings.security.tls,
            login=settings.security.login,
            probe=self._probe,
        )


def check(code: int, text: str | None, what: str = "") -> None:
    """Raise Refused with Kafka's name of the error, unless `code` is NONE.

    `text` is the server's error message. `what` names the object of the request, for the
    message."""
    if code:
        error = ErrorCode.of(code)
        name = error.name if error != ErrorCode.UNKNOWN_SERVER_ERROR else f"error {code}"
        raise Refused(f"{what}{': ' if what else ''}{name}: {text or error.message}")
