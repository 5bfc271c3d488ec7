"""`quorate broker-api-versions`, with the output of kafka-broker-api-versions."""

from __future__ import annotations

import json

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.connection import ConnectionLost
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.parsing.strict_command import StrictCommand
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from quorate.quorum.protocol.schemas.metadata import MetadataResponseBroker

# APIs that clients never call. As in Kafka 4.1, they are listed only if a broker offers them.
BETWEEN_NODES = frozenset(
    {
        *range(ApiKey.LEADER_AND_ISR, ApiKey.OFFSET_COMMIT),
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)


@click.command(cls=StrictCommand)
@cluster_options()
@format_option
def broker_api_versions(
    bootstrap_server: str | None, command_config: str | None, timeout_s: float | None, output: str
) -> None:
    """Print the APIs of each broker, and the newest version of each that this tool supports."""
    with connected(
        bootstrap_server=bootstrap_server, command_config=command_config, timeout_s=timeout_s
    ) as admin:
        for broker in sorted(admin.metadata(()).brokers, key=lambda each: each.node_id):
            print_result(admin, broker, output)


def print_result(admin: Admin, broker: MetadataResponseBroker, output: str) -> None:
    """Print the APIs of one broker, or the error if it cannot be reached."""
    name = (
        f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} "
        "isFenced: false)"
    )
    request = ApiVersionsRequest(client_software_name="quorate-cli", client_software_version="1")
    try:
        answer = admin.ask_node(broker.node_id, request, ApiVersionsResponse)
    except ConnectionLost as error:
        reason = str(error).removeprefix(f"{broker.host}:{broker.port}: ")
        text = f"{name} -> ERROR: {reason}"
        echo(json.dumps({"broker": broker.node_id, "error": reason}) if output == "json" else text)
        return
    if output == "json":
        offers = {each.api_key: [each.min_version, each.max_version] for each in answer.api_keys}
        echo(json.dumps({"broker": broker.node_id, "apis": offers}))
        return
    offered = {each.api_key: line(each) for each in answer.api_keys}
    for key in ApiKey:
        if key not in offered and key not in BETWEEN_NODES:
            offered[key] = f"{api_name(key)}({key.value}): UNSUPPORTED"
    rows = ",\n\t".join(text for _, text in sorted(offered.items()))
    echo(f"{name} -> (\n\t{rows}\n)")


def line(offer: ApiVersion) -> str:
    """Return the line of one API: the broker's versions, and the version for this tool."""
    low, high = offer.min_version, offer.max_version
    versions = str(low) if low == high else f"{low} to {high}"
    known = offer.api_key in ApiKey.__members__.values()
    text = f"{api_name(offer.api_key) if known else 'UNKNOWN'}({offer.api_key}): {versions}"
    api = APIS.get(offer.api_key)
    if api is None:
        return text
    if api.max_version < low:
        return f"{text} [unusable: node too new]"
    if high < api.min_version:
        return f"{text} [unusable: node too old]"
    return f"{text} [usable: {min(api.max_version, high)}]"


def api_name(key: int) -> str:
    """Return the API's name in camel case, as Kafka's tool prints it."""
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
