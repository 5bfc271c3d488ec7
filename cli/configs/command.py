"""`quorate configs`: kafka-configs for topics, brokers, users, clients and ips."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.config_changes import alter_configs
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.errors import NotReachable, Refused
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.client.quorum import require_controller
from quorate.cli.configs.entities import NAMES, EntityCommand, entities_of
from quorate.cli.configs.quotas import QUOTA_TYPES, alter_quotas, checked_parts, describe_quotas
from quorate.cli.terminal.safe_text import echo
from quorate.cli.topics.topic_view import topic_names
from quorate.config import properties
from quorate.config.did_you_mean import did_you_mean
from quorate.config.key import ConfigError
from quorate.quorum.protocol.schemas import configs as schemas

SET, DELETE = 0, 1
SOURCES = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
# Commas and equal signs inside [] belong to the value.
OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"


@dataclass(frozen=True, slots=True)
class EntityType:
    """The wire codes of an entity type: its resource type, and the sources of dynamic configs."""

    resource_type: int
    dynamic_source: int
    default_source: int | None = None


ENTITY_TYPES = {"topics": EntityType(2, 1), "brokers": EntityType(4, 2, 3)}


WITHOUT_CONFIGS = {
    "broker-loggers": "Loggers of brokers have no configs here. log.level in the file of a node "
    "is the level of its log",
    "client-metrics": "There are no configs of client metrics, because brokers take no metrics "
    "from clients (KIP-714)",
    "groups": "There are no configs of groups: those of Kafka concern groups of the new protocols "
    "(KIP-848, share and streams groups), and only groups of the classic protocol exist here. Set "
    "session.timeout.ms and heartbeat.interval.ms on the consumer",
}
"""The entity types of Kafka that have no configs here, with the sentence that says so."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A topic or a broker. The name "" means the default of all brokers."""

    kind: str
    name: str

    @property
    def type(self) -> EntityType:
        """Return the wire codes of the entity's type."""
        return ENTITY_TYPES[self.kind]

    @property
    def one(self) -> str:
        """Return the singular of the entity's type, for messages."""
        return self.kind[:-1]


@click.command(cls=EntityCommand)
@cluster_options(controllers=True)
@click.option(
    "--describe", "do_describe", is_flag=True, help="Print the configs of one or all entities."
)
@click.option("--alter", "do_alter", is_flag=True, help="Set or delete configs of one entity.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="With --describe: also print static configs and default values.",
)
@click.option(
    "--entity-type",
    "entity_types",
    multiple=True,
    type=click.Choice(sorted({*ENTITY_TYPES, *QUOTA_TYPES, *WITHOUT_CONFIGS})),
    help="The type of the entity. users and clients can be combined.",
)
@click.option(
    "--entity-name", "_names", multiple=True, help="The name of the entity or the id of the broker."
)
@click.option(
    "--entity-default", "_defaults", count=True, help="The defaults of all entities of the type."
)
@click.option("--topic", help="Same as --entity-type topics --entity-name.")
@click.option("--broker", help="Same as --entity-type brokers --entity-name.")
@click.option(
    "--broker-defaults", is_flag=True, help="Same as --entity-type brokers --entity-default."
)
@click.option("--user", help="Same as --entity-type users --entity-name.")
@click.option("--user-defaults", is_flag=True, help="Same as --entity-type users --entity-default.")
@click.option("--client", help="Same as --entity-type clients --entity-name.")
@click.option(
    "--client-defaults", is_flag=True, help="Same as --entity-type clients --entity-default."
)
@click.option("--ip", help="Same as --entity-type ips --entity-name.")
@click.option("--ip-defaults", is_flag=True, help="Same as --entity-type ips --entity-default.")
@click.option(
    "--add-config", multiple=True, metavar="K=V,K=[V1,V2]", help="With --alter: set configs."
)
@click.option(
    "--add-config-file",
    type=click.Path(exists=True, dir_okay=False),
    help="With --alter: set the configs in this .properties file.",
)
@click.option(
    "--delete-config",
    multiple=True,
    metavar="K,K",
    help="With --alter: delete configs, whose defaults then apply.",
)
@format_option
def configs(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    do_describe: bool,
    do_alter: bool,
    everything: bool,
    entity_types: tuple[str, ...],
    add_config: tuple[str, ...],
    add_config_file: str | None,
    delete_config: tuple[str, ...],
    output: str,
    **short_forms: Any,
) -> None:
    """Describe and alter the configs of topics and brokers, the quotas of users, clients and ips,
    and the SCRAM credentials of users.

    \b
    quorate configs -b HOST:PORT --describe --topic orders --all
    quorate configs -b HOST:PORT --alter --topic orders --add-config retention.ms=3600000
    quorate configs -b HOST:PORT --alter --client app --add-config producer_byte_rate=1048576
    quorate configs -b HOST:PORT --alter --user alice --add-config 'SCRAM-SHA-256=[password=x]'"""
    if do_describe == do_alter:
        raise click.UsageError("Command must include exactly one action: --describe, --alter")
    if do_describe and (add_config or add_config_file or delete_config):
        raise click.UsageError("--add-config, --add-config-file and --delete-config need --alter")
    types, names = entities_of(entity_types, click.get_current_context().meta[NAMES], short_forms)
    for each in types:
        if each in WITHOUT_CONFIGS:
            raise Refused(WITHOUT_CONFIGS[each])
    quotas = checked_parts(types, names) if set(types) & set(QUOTA_TYPES) else []
    entity = None if quotas else entity_of(types, names)
    with connected(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        added = parse_added(",".join(add_config), add_config_file)
        deleted = [name.strip() for each in delete_config for name in each.split(",")]
        if entity is None:
            if do_describe:
                describe_quotas(admin, quotas, output)
            else:
                require_controller(admin, "the quotas were not changed")
                alter_quotas(admin, quotas, added, deleted)
            return
        if do_describe:
            kind = entity if isinstance(entity, str) else entity.kind
            entities = all_entities(admin, kind) if isinstance(entity, str) else [entity]
            describe(admin, entities, everything, output)
            return
        if isinstance(entity, str):
            raise click.UsageError("An entity name must be specified with --alter")
        alter(admin, entity, added, deleted)


def entity_of(types: Sequence[str], names: Sequence[str]) -> Entity | str:
    """Return the topic or broker of the options, or the name of a type if all its entities are
    meant.

    Raise UsageError if the options name several, the default of topics, or a broker by something
    else than a number."""
    if len(types) != 1 or len(names) > 1:
        raise click.UsageError("Only users and clients can be combined, each of them once")
    (entity_type,) = types
    if not names:
        return entity_type
    if entity_type == "brokers":
        return broker_entity(names[0])
    if not names[0]:
        raise click.UsageError("--entity-default is not possible for topics")
    return Entity(entity_type, names[0])


def broker_entity(name: str) -> Entity:
    """Return the entity of a broker id, or of the default of all brokers if `name` is empty.

    Raise UsageError if the id is no number."""
    if name and not name.isdecimal():
        raise click.UsageError(
            "The entity name for brokers must be a valid integer broker id, found: " + name
        )
    return Entity("brokers", name)


def all_entities(admin: Admin, kind: str) -> list[Entity]:
    """Return all topics, or all brokers that are not fenced and the default of all brokers."""
    if kind == "topics":
        return [Entity(kind, name) for name in sorted(topic_names(admin))]
    ids = sorted(node.node_id for node in admin.metadata(()).brokers)
    return [*(Entity(kind, str(each)) for each in ids), Entity(kind, "")]


def describe(admin: Admin, entities: Sequence[Entity], everything: bool, output: str) -> None:
    """Print the dynamic configs of the entities, or all of their configs with `everything`.

    Raise as `entries_of` does. In text, the entities before the error are then printed."""
    found = {}
    for entity in entities:
        entries = entries_of(admin, entity, everything)
        found[entity.name] = {entry.name: entry.value for entry in entries}
        if output == "json":
            continue
        if entity.name:
            echo(
                f"{'All' if everything else 'Dynamic'} configs for {entity.one} {entity.name} are:"
            )
        else:
            echo(f"Default configs for {entity.kind} in the cluster are:")
        for entry in entries:
            echo(entry_line(entry))
    if output == "json":
        echo(json.dumps(found, indent=2))


def entry_line(entry: schemas.DescribeConfigsResourceResult) -> str:
    """Return the line of one config, as kafka-configs prints it."""
    synonyms = ", ".join(
        f"{SOURCES.get(each.source, 'UNKNOWN')}:{each.name}={null_text(each.value)}"
        for each in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    return f"  {entry.name}={null_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def null_text(value: str | None) -> str:
    """Return the value, or Java's "null" for None."""
    return "null" if value is None else value


def entries_of(
    admin: Admin, entity: Entity, everything: bool
) -> list[schemas.DescribeConfigsResourceResult]:
    """Return the configs of an entity by name: the dynamic ones, or all with `everything`.

    Raise Refused on an error of the entity, and NotReachable as `ask` does."""
    resource = schemas.DescribeConfigsResource(
        resource_type=entity.type.resource_type,
        resource_name=entity.name,
        configuration_keys=None,
    )
    request = schemas.DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    answer = ask(admin, entity, request)
    (result,) = answer.results
    check(result.error_code, result.error_message, f"{entity.one} {entity.name}")
    source = entity.type.dynamic_source if entity.name else entity.type.default_source
    return sorted(
        (each for each in result.configs if everything or each.config_source == source),
        key=lambda each: each.name,
    )


def ask(
    admin: Admin, entity: Entity, request: schemas.DescribeConfigsRequest
) -> schemas.DescribeConfigsResponse:
    """Send a DescribeConfigs request about an entity and return the response.

    A request about a broker goes to that broker, because no other node has its static configs.
    Requests about topics and about the default of all brokers go to any node, and so do requests to
    controllers. Raise NotReachable if the broker cannot be reached."""
    if entity.kind != "brokers" or not entity.name or admin.endpoint_type != 1:
        return admin.ask(request, schemas.DescribeConfigsResponse)
    try:
        return admin.ask_node(int(entity.name), request, schemas.DescribeConfigsResponse)
    except ConnectionLost as error:
        raise NotReachable(str(error)) from None


def alter(admin: Admin, entity: Entity, added: dict[str, str], deleted: Sequence[str]) -> None:
    """Set and delete configs of an entity, all in one request.

    Raise UsageError if there is no change. Raise Refused if a config to delete is not set, or if
    the cluster refuses the change."""
    if not added and not deleted:
        raise click.UsageError(
            "At least one of --add-config, --add-config-file, --delete-config must be specified "
            "with --alter"
        )
    known = stored_names(admin, entity) if deleted else frozenset()
    missing = [] if known is None else [name for name in deleted if name not in known]
    if missing and not added and len(missing) == len(deleted):
        raise Refused(not_set(missing, known))
    deleted = [name for name in deleted if name not in missing]
    changes = [
        *(
            schemas.IncrementalAlterableConfig(name=name, config_operation=SET, value=value)
            for name, value in added.items()
        ),
        *(
            schemas.IncrementalAlterableConfig(name=name, config_operation=DELETE, value=None)
            for name in deleted
        ),
    ]
    resource = schemas.IncrementalAlterConfigsResource(
        resource_type=entity.type.resource_type,
        resource_name=entity.name,
        configs=tuple(changes),
    )
    what = f"{entity.one} {entity.name}" if entity.name else f"the default of {entity.kind}"
    require_controller(admin, f"{what} was not changed")
    try:
        alter_configs(admin, resource)
    except Refused as error:
        raise Refused(f"{error.message}{also_unchanged(changes, error.message)}") from None
    if entity.name:
        echo(f"Completed updating config for {entity.one} {entity.name}.")
    else:
        echo(f"Completed updating default config for {entity.kind} in the cluster.")
    if missing:
        raise Refused(f"{not_set(missing, known)} The other changes were made.")


def also_unchanged(changes: Sequence[schemas.IncrementalAlterableConfig], message: str) -> str:
    """Return the sentence about the changes that the error of another one has prevented, or an
    empty string. A change of one resource is made as a whole."""
    quoted = set(re.findall(r"[\w.-]*\w", message))
    others = [each.name for each in changes if each.name not in quoted]
    if not others or len(changes) == 1:
        return ""
    end = "" if message.endswith((".", "?")) else "."
    return f"{end} Because of it, these were not changed either: {', '.join(others)}"


def not_set(missing: Sequence[str], known: Collection[str] | None) -> str:
    """Return the message about configs that cannot be deleted because they are not set."""
    hints = "".join(did_you_mean(name, known or ()) for name in missing)
    are = "is" if len(missing) == 1 else "are"
    return f"Invalid config(s): {','.join(missing)}, which {are} not set.{hints}"


def stored_names(admin: Admin, entity: Entity) -> frozenset[str] | None:
    """Return the names of the dynamic configs of an entity. Return None if only a broker that is
    down could tell them: they can still be deleted."""
    try:
        return frozenset(entry.name for entry in entries_of(admin, entity, False))
    except NotReachable:
        return None


def parse_added(text: str, file: str | None) -> dict[str, str]:
    """Return the configs of --add-config-file and --add-config; the latter takes precedence.

    Raise UsageError or Refused if either is invalid."""
    added: dict[str, str] = {}
    if file is not None:
        try:
            entries = properties.parse(Path(file).read_text(), file)
        except ConfigError as error:
            raise Refused(str(error)) from None
        added.update((entry.name, entry.value) for entry in entries)
    for item in re.split("," + OUTSIDE_BRACKETS, text) if text else ():
        pair = re.split(r"\s*=\s*" + OUTSIDE_BRACKETS, item)
        if len(pair) != 2:
            raise click.UsageError(
                'Invalid entity config: all configs to be added must be in the format "key=val".'
            )
        added[pair[0].strip()] = re.sub(r"[\[\]]", "", pair[1]).strip()
    return added
