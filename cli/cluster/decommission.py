"""`quorate cluster decommission`: moves all replicas off a broker, then removes its registration.

The command keeps no state of its own. Each round reads the cluster, starts the moves that are
missing, and counts the replicas that are left. It can therefore be interrupted and run again. New
partitions that the cluster places on the broker meanwhile are moved in a later round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected
from quorate.cli.cluster.broker_removal import (
    require_visible_replicas,
    standing_of,
    unregister_broker,
)
from quorate.cli.parsing.described_argument import DescribedArgument
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.reassign import reassignments
from quorate.cli.reassign import throttles as reassignment_throttles
from quorate.cli.reassign.drain_plan import drained
from quorate.cli.reassign.partition_files import TopicPartition
from quorate.cli.reassign.plan import Assignment, Impossible
from quorate.cli.terminal.progress import Progress
from quorate.cli.terminal.safe_text import echo
from quorate.config.key import MAX_INT
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

POLL_S = 1.0
STALLED_ROUNDS = 3
"""After so many rounds in which moves were refused and none was in progress, the command gives
up."""
NAMED = 3
"""The number of partitions that a message names."""


@click.command(cls=StrictCommand)
@click.argument(
    "broker_id",
    metavar="ID",
    type=click.IntRange(0, MAX_INT),
    cls=DescribedArgument,
    description="The node.id of the broker.",
)
@cluster_options()
@click.option(
    "--throttle",
    type=click.IntRange(min=1),
    help="Limit the moves to this number of bytes per second on each broker. [default: no limit]",
)
@click.option("--yes", is_flag=True, help="Do not ask before the first move.")
def decommission(
    broker_id: int,
    bootstrap_server: str | None,
    command_config: str | None,
    timeout_s: float | None,
    throttle: int | None,
    yes: bool,
) -> None:
    """Move all replicas of broker ID to the other brokers, then unregister it.

    The broker stops when it is unregistered. If the command is interrupted, the moves in progress
    continue. Run it again to go on. It then also removes the throttles of the first run."""
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        if standing_of(admin, broker_id) is None:
            raise Refused(f"broker {broker_id} is not registered: there is nothing to decommission")
        require_visible_replicas(admin, broker_id)
        drain = Drain(admin, broker_id, throttle)
        plan = drain.plan()
        if plan:
            echo(f"broker {broker_id} has replicas of {len(plan)} partitions")
            if not yes:
                click.confirm("Move them to the other brokers?", abort=True)
        left = throttled_topics(admin, broker_id)
        if left and (throttle is None or not plan):
            drain.clear_throttles(left)
            echo(f"removed the throttles that an interrupted run left on {len(left)} topics")
            left = []
        if plan:
            admin.show_no_progress()
            drain.run(plan, left)
        unregister_broker(admin, broker_id)
    echo(f"Broker {broker_id} has no replicas and is no longer registered. It stops.")


@dataclass(slots=True)
class Drain:
    """The moves of the replicas off one broker. `throttle` is in bytes per second, or None."""

    admin: Admin
    broker_id: int
    throttle: int | None
    _is_throttled: bool = False

    def plan(self) -> Assignment:
        """Return the new replicas of all partitions with a replica on the broker, also of those
        that move already. Raise Refused if there are too few other brokers."""
        racks = reassignments.usable(
            {
                broker: rack
                for broker, rack in reassignments.brokers(self.admin).items()
                if broker != self.broker_id
            }
        )
        # A move may end between the two reads. Its partition must not seem to have all replicas.
        ongoing = reassignments.ongoing_reassignments(self.admin)
        current = reassignments.current(self.admin, None)
        moving = {
            key: tuple(replica for replica in current[key] if replica not in each.removing)
            for key, each in ongoing.items()
            if self.broker_id in each.removing and self.broker_id in current.get(key, ())
        }
        rest = {key: replicas for key, replicas in current.items() if key not in moving}
        try:
            return {**drained(rest, racks, self.broker_id), **moving}
        except Impossible as error:
            raise Refused(f"broker {self.broker_id} cannot be drained: {error}") from None

    def run(self, plan: Assignment, throttled: Sequence[str] = ()) -> None:
        """Move the replicas, and return when the broker has none. Remove the throttles that this
        command has set, and those of the topics `throttled`. Raise Refused if the cluster accepts
        no move."""
        progress = Progress(f"draining broker {self.broker_id}")
        topics = set(throttled)
        total, stalled = len(plan), 0
        try:
            while plan:
                total = max(total, len(plan))
                progress.update(total - len(plan), total, "partitions moved")
                topics.update(topic for topic, _ in plan)
                errors, moving = self._start(plan)
                stalled = 0 if moving else stalled + 1
                if errors and stalled >= STALLED_ROUNDS:
                    raise Refused(refused_text(errors))
                self.admin.wait(POLL_S)
                plan = self.plan()
            progress.update(total, total, "partitions moved")
        finally:
            progress.close()
            if self.throttle is not None:
                self.clear_throttles(sorted(topics))

    def clear_throttles(self, topics: Sequence[str]) -> None:
        """Remove the throttles of all brokers and of these topics. Raise Refused on an error."""
        ids = {*reassignments.brokers(self.admin), self.broker_id}
        reassignments.clear_throttles(self.admin, sorted(ids), topics)

    def _start(self, plan: Assignment) -> tuple[dict[TopicPartition, str], bool]:
        """Start the moves that are not in progress. Return the refusals, and True if any move is in
        progress."""
        ongoing = reassignments.ongoing_reassignments(self.admin)
        leaving = {key for key, each in ongoing.items() if self.broker_id in each.removing}
        missing = {key: replicas for key, replicas in plan.items() if key not in leaving}
        if self.throttle is not None and (missing or not self._is_throttled):
            self._is_throttled = True  # also the moves that an interrupted run has started
            before = reassignments.current(self.admin, sorted({topic for topic, _ in missing}))
            moves = reassignment_throttles.proposed_moves(
                ongoing, {key: plan[key] for key in missing if key in before}, before
            )
            reassignment_throttles.throttle(self.admin, moves, self.throttle)
        if not missing:
            return {}, True
        errors = reassignments.reassign(self.admin, dict(missing))
        return errors, len(errors) < len(missing) or bool(leaving)


def throttled_topics(admin: Admin, broker_id: int) -> list[str]:
    """Return the topics whose throttled replicas include those of the broker. A decommission that
    was killed leaves them. A topic whose configs this client may not read is left out."""
    names = sorted({topic for topic, _ in reassignments.current(admin, None)})
    if not names:
        return []
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=reassignments.TOPIC,
                resource_name=each,
                configuration_keys=reassignments.TOPIC_THROTTLES,
            )
            for each in names
        )
    )
    return [
        result.resource_name
        for result in admin.ask(request, DescribeConfigsResponse).results
        if any(
            replica.rpartition(":")[2] == str(broker_id)
            for each in result.configs
            for replica in (each.value or "").split(",")
        )
    ]


def refused_text(errors: dict[TopicPartition, str]) -> str:
    """Return the message about partitions whose move the cluster refuses."""
    named = "; ".join(
        f"{topic}-{partition}: {reason}"
        for (topic, partition), reason in sorted(errors.items())[:NAMED]
    )
    more = f" and {len(errors) - NAMED} more" if len(errors) > NAMED else ""
    return f"the cluster refuses to move {len(errors)} partitions: {named}{more}"
