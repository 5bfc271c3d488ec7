"""`quorate reassign-partitions`, with the options, files and output of kafka-reassign-partitions.

Departures from Kafka's tool:

- `--replication-factor N --topic T` plans a change of the replication factor (KAFKA-1543). It shows
  the plan, and carries it out with --execute.
- --generate moves no replica that may stay.
- --cancel also cancels reassignments that only add replicas."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.errors import Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.client.quorum import require_controller
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.reassign import listing as reassignment_list
from quorate.cli.reassign import log_dir_moves, partition_files, reassignments
from quorate.cli.reassign import throttles as reassignment_throttles
from quorate.cli.reassign.move_tables import progress_parts
from quorate.cli.reassign.partition_files import Replica, TopicPartition, assignment_json, text_of
from quorate.cli.reassign.plan import Assignment, Impossible, replica_counts, resized, spread
from quorate.cli.reassign.usage import refuse_ignored
from quorate.cli.terminal.safe_text import echo
from quorate.cli.terminal.tables import show

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)

RUN_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)


START_TIMEOUT_S = 10.0
"""The time in which each broker must take its moves between log directories, as in Kafka's tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The options of one call."""

    reassignment_json_file: str | None
    topics_to_move_json_file: str | None
    broker_list: str | None
    topic: tuple[str, ...]
    replication_factor: int | None
    additional: bool
    disable_rack_aware: bool
    throttle: int | None
    replica_alter_log_dirs_throttle: int | None
    preserve_throttles: bool
    output: str

    @property
    def plans(self) -> bool:
        """Return True if the options ask for a new replication factor."""
        return self.replication_factor is not None


class Failed(Refused):
    """A failure that Kafka's tool prints to standard output."""

    def show(self, file: Any = None) -> None:
        """Print the message to standard output, without click's prefix."""
        echo(self.message)


@click.command(cls=StrictCommand)
@cluster_options(controllers=True)
@click.option(
    "--generate", "do_generate", is_flag=True, help="Print a proposed plan and change nothing."
)
@click.option("--execute", "do_execute", is_flag=True, help="Start the reassignments in the plan.")
@click.option(
    "--verify",
    "do_verify",
    is_flag=True,
    help="Print the progress of the reassignments in the plan.",
)
@click.option("--cancel", "do_cancel", is_flag=True, help="Cancel the reassignments in the plan.")
@click.option("--list", "do_list", is_flag=True, help="List the reassignments in progress.")
@click.option("--reassignment-json-file", type=click.Path(), help="The JSON file with the plan.")
@click.option(
    "--topics-to-move-json-file",
    type=click.Path(),
    help="The JSON file with the topics for --generate.",
)
@click.option("--broker-list", metavar="ID,ID,...", help="Brokers that may get replicas.")
@click.option(
    "--topic", multiple=True, help="With --replication-factor: a topic to change. May be repeated."
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    help="Change --topic to this number of replicas. Without --execute, print the plan only.",
)
@click.option(
    "--additional",
    is_flag=True,
    help="With --execute: start even if other reassignments are in progress.",
)
@click.option("--disable-rack-aware", is_flag=True, help="Ignore the racks of brokers.")
@click.option(
    "--throttle",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="With --execute: limit the copied bytes per second of each broker. With --additional and "
    "the same plan: change the limit.",
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="With --execute: limit the bytes per second that each broker copies between its log "
    "directories.",
)
@click.option("--preserve-throttles", is_flag=True, help="Do not remove replication throttles.")
@format_option
def reassign_partitions(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    do_generate: bool,
    do_execute: bool,
    do_verify: bool,
    do_cancel: bool,
    do_list: bool,
    **rest: Any,
) -> None:
    """Move replicas between brokers, or change their number.

    Print a plan with --generate, save its second part to a file, start it with --execute, and
    repeat --verify until it is complete.

    \b
    quorate reassign-partitions -b HOST:PORT --generate --topics-to-move-json-file topics.json \\
      --broker-list 4,5,6
    quorate reassign-partitions -b HOST:PORT --execute --reassignment-json-file plan.json
    quorate reassign-partitions -b HOST:PORT --topic orders --replication-factor 3 --execute"""
    arguments = Arguments(**rest)
    flags = (do_generate, do_execute, do_verify, do_cancel, do_list)
    chosen = [name for name, wanted in zip(ACTIONS, flags, strict=True) if wanted]
    if not chosen and arguments.plans:
        chosen = ["generate"]
    if len(chosen) != 1:
        actions = ", ".join(f"--{each}" for each in ACTIONS)
        raise click.UsageError(f"Command must include exactly one action: {actions}")
    check_arguments(chosen[0], arguments, controllers=bool(bootstrap_controller))
    with connected(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        try:
            RUN[chosen[0]](admin, arguments)
        except Failed:
            raise
        except (Refused, Impossible) as error:
            message = error.message if isinstance(error, Refused) else str(error)
            if arguments.output == "json":  # standard output has JSON only
                raise Refused(message) from None
            raise Failed(f"Error: {message}") from None


def check_arguments(action: str, arguments: Arguments, *, controllers: bool) -> None:
    """Raise UsageError if the options do not fit the action."""
    refuse_ignored(action, asdict(arguments), plans=arguments.plans)
    if controllers and action not in ("list", "cancel"):
        raise click.UsageError(f'Option "bootstrap-controller" can\'t be used with "{action}"')
    if arguments.plans:
        if action not in ("generate", "execute") or not arguments.topic:
            raise click.UsageError(
                "--replication-factor requires --topic, and --execute to start the plan"
            )
        return
    if action in ("execute", "verify", "cancel") and not arguments.reassignment_json_file:
        raise click.UsageError('Missing required argument "[reassignment-json-file]"')
    if action == "generate":
        for name in ("topics_to_move_json_file", "broker_list"):
            if not getattr(arguments, name):
                raise click.UsageError(f'Missing required argument "[{name.replace("_", "-")}]"')


def generate(admin: Admin, arguments: Arguments) -> None:
    """Print the current assignment and the plan, or only the plan as JSON."""
    before, plan = planned(admin, arguments)
    if arguments.output == "json":
        echo(assignment_json(plan))
        return
    echo(f"Current partition replica assignment\n{assignment_json(before)}\n")
    echo(f"Proposed partition reassignment configuration\n{assignment_json(plan)}")


def planned(admin: Admin, arguments: Arguments) -> tuple[Assignment, Assignment]:
    """Return the current assignment and the planned one.

    Raise Refused if a topic or broker does not exist, Impossible if too few brokers are usable."""
    racks = reassignments.brokers(admin)
    if arguments.broker_list:
        chosen = parse_brokers(arguments.broker_list)
        reassignments.check_brokers(racks, chosen)
        racks = {each: racks[each] for each in chosen}
    usable = dict.fromkeys(racks) if arguments.disable_rack_aware else reassignments.usable(racks)
    if arguments.replication_factor is not None:
        before = reassignments.assignment_of(admin, arguments.topic)
        loads = replica_counts(reassignments.current(admin, None).values())
        return before, resized(before, usable, arguments.replication_factor, loads)
    assert arguments.topics_to_move_json_file is not None
    topics = partition_files.read_topics(arguments.topics_to_move_json_file)
    before = reassignments.assignment_of(admin, topics)
    return before, spread(before, usable)


def parse_brokers(text: str) -> list[int]:
    """Return the broker ids of --broker-list in ascending order.

    Raise UsageError if one is no number, Refused if one occurs twice."""
    try:
        found = [int(each) for each in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--broker-list: value {text!r} must be ID,ID,...") from None
    twice = sorted({each for each in found if found.count(each) > 1})
    if twice:
        raise Refused(f"Broker list contains duplicate entries: {','.join(map(str, twice))}")
    return sorted(found)


def execute(admin: Admin, arguments: Arguments) -> None:
    """Start the reassignment of the plan and print the previous assignment for a rollback.
    Throttle it first if the arguments have a limit.

    Raise Failed if any other one is in progress and --additional is missing, or if a partition is
    refused. In the latter case the others are started. Raise Refused if a broker or a partition of
    the plan does not exist."""
    log_dirs: dict[Replica, str] = {}
    if arguments.plans:
        _, plan = planned(admin, arguments)
    else:
        assert arguments.reassignment_json_file is not None
        plan = partition_files.read_assignment(arguments.reassignment_json_file)
        log_dirs = partition_files.read_log_dirs(arguments.reassignment_json_file)
    require_controller(admin, "no replica was moved")
    ongoing = reassignments.ongoing_reassignments(admin)
    if not arguments.additional and ongoing:
        raise Failed(EXISTING)
    wanted = [each for replicas in plan.values() for each in replicas]
    reassignments.check_brokers(reassignments.brokers(admin), wanted)
    topics = sorted({topic for topic, _ in plan})
    before = reassignments.assignment_of(admin, topics)
    for key in plan:
        if key not in before:
            raise Refused(f"Partition {text_of(key)} does not exist")
    rollback = {key: before[key] for key in plan}
    echo(f"Current partition replica assignment\n\n{assignment_json(rollback)}\n")
    echo("Save this to use as the --reassignment-json-file option during rollback")
    log_dirs_rate = arguments.replica_alter_log_dirs_throttle
    if arguments.throttle is not None or log_dirs_rate is not None:
        echo(RUN_VERIFY)
    if arguments.throttle is not None:
        moves = reassignment_throttles.proposed_moves(ongoing, plan, before)
        reassignment_throttles.throttle(admin, moves, arguments.throttle)
        echo(f"The inter-broker throttle limit was set to {arguments.throttle} B/s")
    if log_dirs_rate is not None:
        moving = [each.broker_id for each in log_dirs]
        reassignment_throttles.throttle_log_dirs(admin, moving, log_dirs_rate)
        echo(f"The replica-alter-dir throttle limit was set to {log_dirs_rate} B/s")
    errors = reassignments.reassign(admin, dict(plan))
    if errors:
        raise Failed("\n".join(["Error reassigning partition(s):", *error_lines(errors)]))
    echo(
        f"Successfully started partition reassignment{plural(plan)} for "
        f"{reassignments.joined(plan)}"
    )
    log_dir_moves.start(admin, log_dirs, START_TIMEOUT_S, echo)


def verify(admin: Admin, arguments: Arguments) -> None:
    """Print the progress of the reassignments in the file, and of its moves between log
    directories.

    If no reassignment is in progress in the whole cluster, and none of these moves, also clear
    throttles, unless the output is JSON or --preserve-throttles is given."""
    assert arguments.reassignment_json_file is not None
    plan = partition_files.read_assignment(arguments.reassignment_json_file)
    ongoing = reassignments.ongoing_reassignments(admin)
    present = reassignments.current(admin, sorted({topic for topic, _ in plan}))
    log_dirs = partition_files.read_log_dirs(arguments.reassignment_json_file)
    places = log_dir_moves.places(admin, log_dirs)
    if arguments.output == "json":
        states = [
            {
                "topic": topic,
                "partition": partition,
                "ongoing": (topic, partition) in ongoing,
                "replicas": list(present.get((topic, partition), ())),
                "target": list(plan[topic, partition]),
                **log_dir_moves.states(topic, partition, log_dirs, places),
            }
            for topic, partition in sorted(plan)
        ]
        echo(json.dumps(states, indent=2))
        return
    echo("Status of partition reassignment:")
    show(
        reassignment_list.verify_lines(plan, present, ongoing),
        progress_parts(plan, present, ongoing),
    )
    lines = [
        log_dir_moves.state_line(each, log_dirs[each], places[each]) for each in sorted(log_dirs)
    ]
    echo("\n".join(lines))
    is_moving = any(place.future is not None for place in places.values())
    if not (ongoing or is_moving or arguments.preserve_throttles):
        clear_throttles(admin, plan)


def clear_throttles(admin: Admin, plan: Assignment) -> None:
    """Remove the throttle configs of the live brokers, and of the plan's brokers and topics."""
    known = set(reassignments.brokers(admin)).union(*plan.values())
    ids, topics = sorted(known), sorted({topic for topic, _ in plan})
    echo(f"Clearing broker-level throttles on broker{plural(ids)} {','.join(map(str, ids))}")
    echo(f"Clearing topic-level throttles on topic{plural(topics)} {','.join(topics)}")
    reassignments.clear_throttles(admin, ids, topics)


def cancel(admin: Admin, arguments: Arguments) -> None:
    """Cancel the reassignments, and the moves between log directories, in the file that are in
    progress, and clear throttles. Controllers know nothing of such moves.

    Throttles remain with --preserve-throttles and --bootstrap-controller. Raise Failed if a
    partition is refused."""
    assert arguments.reassignment_json_file is not None
    plan = partition_files.read_assignment(arguments.reassignment_json_file)
    ongoing = reassignments.ongoing_reassignments(admin)
    active = [key for key in plan if key in ongoing]
    if active:
        errors = reassignments.reassign(admin, dict.fromkeys(active))
        if errors:
            first = f"Error cancelling partition reassignment{plural(errors)} for:"
            raise Failed("\n".join([first, *error_lines(errors)]))
        echo(
            f"Successfully cancelled partition reassignment{plural(active)} for: "
            f"{reassignments.joined(active)}"
        )
    else:
        echo("None of the specified partition reassignments are active.")
    log_dirs = partition_files.read_log_dirs(arguments.reassignment_json_file)
    is_broker = admin.endpoint_type == 1
    if not (is_broker and log_dir_moves.cancel(admin, log_dirs, START_TIMEOUT_S, echo)):
        echo("None of the specified partition moves are active.", nl=False)
    if arguments.preserve_throttles or admin.endpoint_type != 1:
        echo()
    else:
        clear_throttles(admin, plan)


RUN: dict[str, Callable[[Admin, Arguments], None]] = {
    "generate": generate,
    "execute": execute,
    "verify": verify,
    "cancel": cancel,
    "list": lambda admin, arguments: reassignment_list.print_all(admin, arguments.output),
}


def error_lines(errors: dict[TopicPartition, str]) -> list[str]:
    """Return one line for each partition with an error."""
    return [f"{text_of(key)}: {text}" for key, text in sorted(errors.items())]


def plural(things: Any) -> str:
    """Return the plural suffix for a number of things."""
    return "" if len(things) == 1 else "s"
