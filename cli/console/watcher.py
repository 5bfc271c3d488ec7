"""The thread that reads the cluster repeatedly for the console.

It survives the death of any node: it remembers the addresses of all brokers that it has seen, and
continues with the next address if one does not answer in time. If no broker answers, it asks the
controllers, as `quorate status` does. Between two readings it rests for
REST_FACTOR times the duration of the last one, so that a large cluster is not read all the time.
The rest ends early if a page begins to show a view (`views/views.py`)."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import click

from quorate.cli.client.admin import Admin, AdminSettings
from quorate.cli.client.errors import NotReachable
from quorate.cli.console.cluster_tables import ClusterTables, tables_in_outage, tables_of
from quorate.cli.console.known_controllers import KnownControllers, Servers, servers_in
from quorate.cli.console.views.views import Views
from quorate.cli.status.cluster_status import Status, read_status, read_topics
from quorate.cli.status.explanations import Explanations
from quorate.cli.status.outage import KnownNodes
from quorate.cli.status.unclean_elections import UncleanElections
from quorate.cli.topics.topic_view import TopicView

REST_S = 1.0
"""The least time between two readings."""
REST_FACTOR = 4
"""The time between two readings as a multiple of the duration of the last one."""
NO_NODES = KnownNodes()
FROM_CONTROLLERS = (
    "The quorum and the brokers are shown as the controllers know them, the rest as it was last"
)
MAX_SERVERS = 200
"""The most addresses of brokers that are remembered."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The newest tables. `version` counts the readings that differ from the one before.

    `error` says why the last reading failed, or is empty. The tables are then those of the last
    one that succeeded."""

    version: int
    tables: ClusterTables
    error: str = ""


class Watcher:
    """The newest reading, and the thread that renews it. `current` may be read by any thread.

    `changed` is called in the thread of the watcher after each new version. Nothing is read before
    `start`."""

    def __init__(
        self,
        settings: AdminSettings,
        changed: Callable[[], None],
        now_s: Callable[[], float] = time.monotonic,
        known: KnownNodes = NO_NODES,
    ) -> None:
        """`known` has the controllers of --bootstrap-controller."""
        self._settings = settings
        self._changed = changed
        self._admin = impatient_admin(settings)
        self._explanations = Explanations()
        self._elections = UncleanElections()
        self._controllers = KnownControllers(known)
        self._views = Views(now_s)
        self._now_s = now_s
        self.current = Reading(0, ClusterTables().with_views(self._views.tables()))
        self._rest_s = 0.0
        self._views_due_s = 0.0  # a monotonic time
        self._stopped = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quorate-console", daemon=True)

    @property
    def settings(self) -> AdminSettings:
        """Return the settings with all known addresses. Any thread may call this."""
        return self._settings

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the reading in progress. The call does not wait for it."""
        self._stopped = True
        self._wake.set()

    def look(self, name: str) -> None:
        """Note that a page shows the table `name`. If it needs more requests than the others, it is
        read soon, and for as long as pages show it. Any thread may call this."""
        if self._views.look(name):
            self._views_due_s = 0.0
            self._wake.set()

    def close(self) -> None:
        """Close the connections. The thread does so when it ends; a caller of `read_once` must."""
        self._admin.close()

    def _run(self) -> None:
        while True:
            self._wake.wait(self._rest_s)
            self._wake.clear()
            if self._stopped:
                break
            self.read_once()
        self.close()

    def read_once(self) -> None:
        """Read the cluster, and then the views if they are due, and publish what has changed after
        each of both. An error is published, not raised."""
        begun_s, was_outage = self._now_s(), bool(self.current.error)
        found = self._read_cluster()
        # A reading may have waited long for a broker, but the end of an outage must be seen soon.
        is_quick = found is None or was_outage
        self._rest_s = REST_S if is_quick else rest_after(self._now_s() - begun_s)
        if found is not None and self._now_s() >= self._views_due_s:
            self._read_views(*found)

    def _read_cluster(self) -> tuple[Status, list[TopicView]] | None:
        """Read and publish what is always shown. Return it, or None after an error."""
        found, servers = None, self._settings.servers
        try:
            try:
                status, topics = found = self._ask_brokers()
                tables, error = tables_of(status, topics).with_views(self._views.tables()), ""
                servers = with_brokers(servers, [each.address for each in status.brokers])
            except NotReachable as failed:
                servers = next_first(servers)
                tables, error = self._ask_controllers(failed.message)
        except click.ClickException as failed:
            tables, error = self.current.tables, failed.format_message()
        except Exception as failed:  # a defect must be visible, and must not end the console
            tables, error = self.current.tables, f"the reading failed: {failed!r}"
        self._use(servers)
        self._publish(tables, error)
        return found

    def _ask_brokers(self) -> tuple[Status, list[TopicView]]:
        topics = read_topics(self._admin)
        status = self._read_status(topics)
        self._controllers.learn(self._admin, status)
        return status, topics

    def _ask_controllers(self, failure: str) -> tuple[ClusterTables, str]:
        """Return the tables of an outage of all brokers, and the text of the error. Raise
        NotReachable if no controller answers."""
        status = self._controllers.read(self._admin, failure, self._explanations)
        before = self.current.tables
        if before.overview.get("cluster_id", status.cluster_id) != status.cluster_id:
            raise NotReachable(f"{failure}. The controllers belong to cluster {status.cluster_id}")
        return tables_in_outage(status, before), f"{failure}. {FROM_CONTROLLERS}"

    def _read_status(self, topics: Sequence[TopicView]) -> Status:
        """Return the status. If another cluster has the addresses of the last one, drop what was
        read of the metadata log before, because the new log has its own offsets."""
        status = self._status_of(topics)
        last_id = self.current.tables.overview.get("cluster_id", status.cluster_id)
        if status.cluster_id == last_id:
            return status
        self._explanations, self._elections = Explanations(), UncleanElections()
        self._views.drop()
        return self._status_of(topics)

    def _status_of(self, topics: Sequence[TopicView]) -> Status:
        return read_status(
            self._admin, self._explanations, elections=self._elections, topics=topics
        )

    def _read_views(self, status: Status, topics: Sequence[TopicView]) -> None:
        """Read and publish the views that pages show. They have a rest of their own, so that a
        broker that hangs does not delay the reading of the cluster each time."""
        begun_s = self._now_s()
        self._views_due_s = math.inf  # `look` may set it to 0 during the reading
        views = self._views.read(self._admin, status, topics)
        now_s = self._now_s()
        self._views_due_s = min(self._views_due_s, now_s + rest_after(now_s - begun_s))
        self._publish(self.current.tables.with_views(views), self.current.error)

    def _publish(self, tables: ClusterTables, error: str) -> None:
        if (tables, error) != (self.current.tables, self.current.error):
            self.current = Reading(self.current.version + 1, tables, error)
            self._changed()

    def _use(self, servers: Servers) -> None:
        if servers != self._settings.servers:
            self._admin.close()
            self._settings = replace(self._settings, servers=servers)
            self._admin = impatient_admin(self._settings)


def impatient_admin(settings: AdminSettings) -> Admin:
    """Return a client that tries each address once if no broker answers. The controllers are asked
    then, and the next reading follows soon."""
    return Admin(replace(settings, impatient=True))


def rest_after(took_s: float) -> float:
    """Return the time to rest after a reading that took `took_s`."""
    return max(REST_S, REST_FACTOR * took_s)


def with_brokers(servers: Servers, addresses: list[str]) -> Servers:
    """Return the servers followed by those of `addresses` (HOST:PORT) that are not among them, with
    MAX_SERVERS at most."""
    found = dict.fromkeys(servers)
    found.update(dict.fromkeys(servers_in(addresses)))
    return tuple(found)[:MAX_SERVERS]


def next_first(servers: Servers) -> Servers:
    """Return the servers with the first one moved to the end, because it may accept connections
    without an answer."""
    return (*servers[1:], servers[0])
