"""`quorate acls`, with the options and lines of kafka-acls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from quorate.cli.acls.entries import (
    Resources,
    Rights,
    Wanted,
    merged,
    of_consumer,
    of_producer,
    plain,
)
from quorate.cli.acls.lines import listing_lines
from quorate.cli.acls.requests import Found, add, listed, remove
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.client.quorum import require_controller
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.metadata.acls import Acl
from quorate.quorum.protocol.acl_codes import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)

F = TypeVar("F", bound=Callable[..., Any])
OPERATION_NAMES = {
    "".join(word.capitalize() for word in each.name.split("_")): each
    for each in Operation
    if each is not Operation.ANY
}
"""The names of operations on the command line, such as DescribeConfigs."""
INFERRED = ("operation", "deny-principal", "deny-host")
NOT_TOGETHER = {
    "list": (
        "producer",
        "consumer",
        "allow-host",
        "allow-principal",
        "deny-host",
        "deny-principal",
    ),
    "producer": INFERRED,
    "consumer": INFERRED,
}
"""The options that Kafka's tool refuses beside another one. --producer and --consumer imply the
operations, and permit them."""


def resource_option(name: str, field: str, text: str) -> Callable[[F], F]:
    """Return the option that names resources of one type. It can be repeated."""
    return click.option(name, field, multiple=True, metavar="NAME", help=text)


@click.command(cls=StrictCommand)
@cluster_options(controllers=True)
@click.option("--add", "do_add", is_flag=True, help="Add ACLs.")
@click.option("--remove", "do_remove", is_flag=True, help="Remove ACLs.")
@click.option("--list", "do_list", is_flag=True, help="List the ACLs, of all or some resources.")
@resource_option("--topic", "topics", "A topic, or * for all.")
@resource_option("--group", "groups", "A consumer group, or * for all.")
@resource_option("--transactional-id", "transactional_ids", "A transactional id, or * for all.")
@resource_option("--delegation-token", "delegation_tokens", "A delegation token, or * for all.")
@resource_option("--user-principal", "users", "A user as a resource, or * for all.")
@click.option("--cluster", is_flag=True, help="The cluster.")
@click.option(
    "--resource-pattern-type",
    "pattern",
    type=click.Choice([each.name.lower() for each in PatternType], case_sensitive=False),
    default="literal",
    show_default=True,
    help="How resources are named. any and match select ACLs of both kinds.",
)
@click.option(
    "--allow-principal", "allow", multiple=True, metavar="User:NAME", help="Whom to allow."
)
@click.option("--deny-principal", "deny", multiple=True, metavar="User:NAME", help="Deny it.")
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="ADDRESS", help="From where.")
@click.option("--deny-host", "deny_hosts", multiple=True, metavar="ADDRESS", help="From where.")
@click.option(
    "--operation",
    "operations",
    multiple=True,
    type=click.Choice(list(OPERATION_NAMES), case_sensitive=False),
    help="What to allow or deny. [default: All]",
)
@click.option("--producer", is_flag=True, help="The ACLs that a producer needs.")
@click.option("--consumer", is_flag=True, help="The ACLs that a consumer needs.")
@click.option("--idempotent", is_flag=True, help="With --producer: also without a topic.")
@click.option("--force", is_flag=True, help="Do not ask before a removal.")
@click.option("--principal", "principals", multiple=True, help="With --list: only ACLs of these.")
@format_option
def acls(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    do_add: bool,
    do_remove: bool,
    do_list: bool,
    pattern: str,
    operations: tuple[str, ...],
    producer: bool,
    consumer: bool,
    idempotent: bool,
    force: bool,
    principals: tuple[str, ...],
    output: str,
    **named: Any,
) -> None:
    """Add, remove and list the ACLs of a cluster with an authorizer.

    \b
    quorate acls -b HOST:PORT --add --allow-principal User:alice --operation Read --topic orders
    quorate acls -b HOST:PORT --list --topic orders"""
    if do_add + do_remove + do_list != 1:
        raise click.UsageError("Command must include exactly one action: --list, --add, --remove. ")
    pattern_type = PatternType[pattern.upper()]
    rights_names = ("allow", "deny", "allow_hosts", "deny_hosts")
    rights = Rights(
        **{name: named.pop(name) for name in rights_names},
        operations=[OPERATION_NAMES[each] for each in operations] or [Operation.ALL],
    )
    resources = Resources(pattern_type=pattern_type, **named)
    check_combinations(
        rights,
        resources,
        {
            "list": do_list,
            "producer": producer,
            "consumer": consumer,
            "operation": operations,
            "idempotent": idempotent,
            "principal": principals,
        },
    )
    if not do_list:
        check_usage(do_add, resources, rights, producer=producer, consumer=consumer)
    wanted: Wanted = {}
    if do_list:
        wanted = {each: [] for each in resources.patterns()}
    elif producer or consumer:
        parts = [of_producer(resources, rights, idempotent=idempotent)] if producer else []
        wanted = merged(*parts, *([of_consumer(resources, rights)] if consumer else []))
    else:
        wanted = plain(resources, rights)
    with connected(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        if not do_list:
            require_controller(admin, "no ACL was changed")
        if do_list:
            show(listed(admin, list(wanted)), principals, output)
        elif do_add:
            add(admin, wanted)
        else:
            remove(admin, wanted, force=force)


def check_combinations(rights: Rights, resources: Resources, given: Mapping[str, object]) -> None:
    """Raise UsageError for an option that the command would ignore, with the sentences of Kafka's
    tool. `given` has the other options by name.

    An ignored --principal would make --remove delete the ACLs of all principals."""
    options = {
        **given,
        "allow-principal": rights.allow,
        "deny-principal": rights.deny,
        "allow-host": rights.allow_hosts,
        "deny-host": rights.deny_hosts,
    }
    for option, others in NOT_TOGETHER.items():
        for other in others:
            if options[option] and options[other]:
                raise click.UsageError(f'Option "[{option}]" can\'t be used with "[{other}]"')
    if given["principal"] and not given["list"]:
        raise click.UsageError("The --principal option is only available if --list is set")
    if given["idempotent"] and not given["producer"]:
        raise click.UsageError("The --idempotent option is only available if --producer is set")
    more = resources.cluster or resources.transactional_ids
    if given["consumer"] and more and not given["producer"]:
        raise click.UsageError(
            "With --consumer no --cluster or --transactional-id option should be specified."
        )


def check_usage(
    adds: bool, resources: Resources, rights: Rights, *, producer: bool, consumer: bool
) -> None:
    """Raise UsageError, with the sentences of Kafka's tool, if ACLs cannot be added or removed."""
    if not resources.patterns():
        raise click.UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    if adds and not (rights.allow or rights.deny):
        raise click.UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    if adds and resources.pattern_type in (PatternType.ANY, PatternType.MATCH):
        raise click.UsageError(
            f"A '--resource-pattern-type' value of '{resources.pattern_type.name}' is not valid "
            "when adding acls."
        )
    if producer and not resources.topics:
        raise click.UsageError("With --producer you must specify a --topic")
    if consumer and not (resources.topics and resources.groups):
        raise click.UsageError("With --consumer you must specify a --topic and a --group")
    for each in (*rights.allow, *rights.deny):
        if ":" not in each:
            raise click.UsageError(f"{each!r} is not a principal: it must be like User:alice")


def show(found: Found, principals: Sequence[str], output: str) -> None:
    """Print ACLs: those of each principal under a headline, or all."""
    if output == "json":
        chosen = [
            each
            for entries in found.values()
            for each in entries
            if not principals or each.principal in principals
        ]
        echo(json.dumps([as_json(each) for each in chosen], indent=2))
        return
    for principal in principals or (None,):
        if principal is not None:
            echo(f"ACLs for principal `{principal}`")
        some = {
            pattern: [each for each in entries if principal in (None, each.principal)]
            for pattern, entries in found.items()
        }
        for line in listing_lines({key: entries for key, entries in some.items() if entries}):
            echo(line)


def as_json(acl: Acl) -> dict[str, str]:
    """Return an ACL with Kafka's names."""
    return {
        "resource_type": ResourceType(acl.resource_type).name,
        "resource_name": acl.resource_name,
        "pattern_type": PatternType(acl.pattern_type).name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": Operation(acl.operation).name,
        "permission": PermissionType(acl.permission_type).name,
    }
