"""The files, configs and formatted directories of the nodes of `quorate up`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from quorate.cli.client.errors import Refused, said_once
from quorate.cli.nodes.client_protocol import refuse_other_protocol
from quorate.cli.nodes.cluster_dir import ClusterDir, Shape
from quorate.cli.nodes.server import load_config
from quorate.config.listeners import PLAINTEXT
from quorate.config.loader import log as config_log
from quorate.config.node_config import NodeConfig

if TYPE_CHECKING:
    from quorate.quorum.secured.secured_dir import SecuredDir

REMEDY = "Give --command-config a file with this security.protocol and its settings"


def prepare(
    directory: ClusterDir, shape: Shape, explicit: set[str], protocol: str = PLAINTEXT
) -> list[NodeConfig]:
    """Return the configs of the nodes, whose files are created and formatted on first use.

    Overrides are written to the files of existing nodes. If one is invalid, no file is changed, and
    no new node stays. cluster.json is written again. `explicit` names the fields of `shape` that
    the user has given. `protocol` is the security protocol of this command's connections to the
    brokers. Raise Refused if a config is invalid, if a number of nodes in `explicit` contradicts
    the existing cluster, if the brokers' listeners have another protocol, if a file cannot be
    written, or as `format_nodes` does."""
    try:
        return _prepared(directory, shape, explicit, protocol)
    except OSError as error:
        raise Refused(said_once(error, directory.root)) from None


def _prepared(
    directory: ClusterDir, shape: Shape, explicit: set[str], protocol: str
) -> list[NodeConfig]:
    is_new = not directory.node_ids()
    if is_new:
        directory.create(shape)
    files = {node_id: str(directory.node_file(node_id)) for node_id in directory.node_ids()}
    overrides = [f"{name}={value}" for name, value in shape.overrides]
    try:
        with each_warning_once():
            configs = [load_config(file, overrides) for file in files.values()]
    except Refused:
        if is_new:
            directory.remove_nodes()
        raise
    if overrides and not is_new:
        for node_id in files:
            directory.override(node_id, dict(shape.overrides))
    refuse_other_shape(directory, configs, shape, explicit)
    refuse_other_protocol(configs, protocol, REMEDY)
    cluster_id = format_nodes(configs, shape.secured)
    directory.write(cluster_id, configs)
    return configs


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Write equal log lines about configs once in the block, because most settings of the nodes are
    the same."""
    written: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        line = record.getMessage()
        if line in written:
            return False
        written.add(line)
        return True

    config_log.addFilter(is_new)
    try:
        yield
    finally:
        config_log.removeFilter(is_new)


def refuse_other_shape(
    directory: ClusterDir, configs: Sequence[NodeConfig], shape: Shape, explicit: set[str]
) -> None:
    """Raise Refused if an explicit number of nodes or racks differs from the directory's, or if no
    broker has the explicit port. Port 0 means any ports."""
    brokers = [config for config in configs if config.is_broker]
    racks = {config["broker.rack"] for config in brokers} - {None}
    have = {
        "controllers": (shape.controllers, sum(config.is_controller for config in configs)),
        "brokers": (shape.brokers, len(brokers)),
        "racks": (min(shape.racks, len(brokers)), len(racks)),
    }
    for name, (wanted, count) in have.items():
        if name in explicit and wanted != count:
            raise Refused(
                f"--{name}: value {getattr(shape, name)} must be {count}: {directory.root} has "
                "that many; choose another --dir for another cluster"
            )
    ports = [listener.port for config in brokers for listener in config.listeners.client]
    if "port" in explicit and shape.port and ports and shape.port not in ports:
        raise Refused(
            f"--port: value {shape.port} must be {ports[0]}: {directory.root} has that first port; "
            "choose another --dir for another cluster"
        )


def format_nodes(configs: Sequence[NodeConfig], secured: SecuredDir | None = None) -> str:
    """Format the directories that are not formatted, and return the cluster id.

    The cluster id is that of the formatted directories. If none is formatted, it is that of the
    certificates, of the first config, or a random one. With `secured`, a new cluster gets an
    admin. A directory with a defect is left to its node, which refuses to start. Raise Refused if
    one has a defect and no other one holds the cluster id, if a file of `secured` cannot be used,
    or if formatting fails."""
    import random

    from quorate.quorum.ids import random_uuid, uuid_to_text
    from quorate.quorum.log.disks.disk import OsDisk
    from quorate.quorum.node.opening.meta_properties import MetaProperties, StorageError, read_meta
    from quorate.quorum.offline.storage_format import format_directory
    from quorate.quorum.secured.private_files import SecurityFileError

    disk = OsDisk()
    chance = random.SystemRandom()
    try:
        metas: list[MetaProperties | StorageError | None] = []
        for config in configs:
            try:
                metas.append(read_meta(disk, config.log_dir))
            except StorageError as error:  # that node refuses to start and reports the error itself
                metas.append(error)
        known = next((each.cluster_id for each in metas if isinstance(each, MetaProperties)), None)
        for each in metas:
            if known is None and isinstance(each, StorageError):
                raise each
        given = secured.cluster_id(configs[0].node_id) if secured else configs[0].cluster_id
        cluster_id = known or given or uuid_to_text(random_uuid(chance))
        credentials = [secured.credential()] if secured and None in metas else []
        for config, meta in zip(configs, metas, strict=True):
            if meta is None:
                format_directory(
                    disk,
                    config,
                    cluster_id=cluster_id,
                    directory_id=random_uuid(chance),
                    wall_ms=int(time.time() * 1000),
                    credentials=credentials if config.is_controller else (),
                )
    except (StorageError, SecurityFileError) as error:
        raise Refused(str(error)) from None
    finally:
        disk.close()
    return cluster_id


def ports_of(configs: Sequence[NodeConfig], running: set[int]) -> dict[tuple[str, int], str]:
    """Return the user of each port that the nodes need, without those that run already."""
    found = {}
    for config in configs:
        listeners = config.listeners
        replication = (listeners.replication,) if listeners.replication else ()
        for each in (*listeners.client, *listeners.controller, *replication):
            if each.port and config.node_id not in running:
                found[each.host, each.port] = f"{config.roles[0]} {config.node_id}"
    return found
