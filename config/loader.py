"""Loads a `NodeConfig` from a .properties file, the environment and overrides. Later sources win.

Values may refer to files and variables (`config_providers.py`).

The environment follows the convention of Kafka's images: KAFKA_NODE_ID sets node.id. In a name, `_`
means `.`, `__` means `_`, and `___` means `-`. CLUSTER_ID, or else KAFKA_CLUSTER_ID, is the
id of the cluster to which the node's directories must belong.

An error about a value names its source, the key, the value, and what it must be. Settings that
change nothing are kept and reported in one log line with the reasons. Settings that would deceive
the operator are refused (`refused_keys.py`).
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from quorate.config import properties
from quorate.config.authorizer_keys import refuse_without_authorizer
from quorate.config.config_providers import resolve_references
from quorate.config.key import ConfigError
from quorate.config.listener_keys import check_listener_keys, listener_key
from quorate.config.listeners import (
    PROTOCOL_MAP,
    REPLICATION,
    SASL_PROTOCOLS,
    Listeners,
    parse_listeners,
    parse_servers,
    parse_voters,
    resolve_listeners,
    resolve_protocols,
)
from quorate.config.node_config import MAX_LOG_DIRS, NodeConfig
from quorate.config.node_keys import ALIASES, NODE_KEYS
from quorate.config.node_tls import check_node_tls
from quorate.config.not_in_effect import described, why_not_in_effect
from quorate.config.refused_keys import may_be_refused, refuse_deceiving
from quorate.config.sasl_keys import sasl_listeners
from quorate.config.setting import Setting

MAX_FILE_BYTES = 4 * 1024 * 1024
"""Maximum size of a .properties file."""

log = logging.getLogger("quorate.config")
T = TypeVar("T")

ENVIRONMENT_PREFIX = "KAFKA_"
# Variables of Kafka's start scripts and images that are not settings.
NOT_SETTINGS = (
    "KAFKA_CLUSTER_ID",
    "KAFKA_DEBUG",
    "KAFKA_GC_",
    "KAFKA_HEAP_",
    "KAFKA_HOME",
    "KAFKA_JMX_",
    "KAFKA_JVM_",
    "KAFKA_LIBS",
    "KAFKA_LOG4J_",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_",
    "KAFKA_USER",
    "KAFKA_VERSION",
)


def load(
    path: str | None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
    hostname: str | None = None,
) -> NodeConfig:
    """Return the configuration of a node.

    `path` is a .properties file, or None. `environment` defaults to that of the process. `hostname`
    defaults to the name of the machine. It is advertised for listeners that bind every interface,
    unless advertised.listeners names a host. Raise ConfigError if the file cannot be read, if a
    setting is invalid, or if process.roles, node.id or the quorum is missing.
    """
    environment = os.environ if environment is None else environment
    texts: dict[str, Setting] = {}
    if path is not None:
        texts.update(read_file(path))
    texts.update(read_environment(environment))
    for name, text in (overrides or {}).items():
        texts[ALIASES.get(name, name)] = Setting(None, text, "override")
    texts = resolve_references(texts, environment)
    refuse_deceiving(texts)
    refuse_without_authorizer(texts)
    settings, unknown = typed(texts)
    idle = [
        name
        for name in texts
        if name in unknown or (name in settings and why_not_in_effect(name) is not None)
    ]
    if idle:
        log.warning("These settings are not in effect: %s", described(idle, NODE_KEYS))
    cluster_id = environment.get("CLUSTER_ID") or environment.get("KAFKA_CLUSTER_ID")
    return assemble(settings, unknown, hostname or socket.gethostname(), cluster_id)


def read_file(path: str) -> dict[str, Setting]:
    """Return the settings in a .properties file as text.

    If a key occurs more than once, its last value is used and a warning is logged. Raise
    ConfigError if the file cannot be read, is not UTF-8, has an invalid escape, or is larger than
    MAX_FILE_BYTES."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ConfigError(
                f"{path}: has more than {MAX_FILE_BYTES} bytes: it is no .properties file"
            )
        entries = properties.parse(content.decode(), path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    found: dict[str, Setting] = {}
    for entry in entries:
        name = ALIASES.get(entry.name, entry.name)
        if name in found:
            log.warning("%s:%d: %s is set twice; this value is used", path, entry.line, entry.name)
        found[name] = Setting(None, entry.value, f"{path}:{entry.line}")
    return found


def read_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Return the settings in variables that begin with KAFKA_, as text. NOT_SETTINGS are left
    out."""
    found = {}
    for variable in sorted(environment):
        if variable.startswith(ENVIRONMENT_PREFIX) and not variable.startswith(NOT_SETTINGS):
            name = environment_key(variable)
            found[ALIASES.get(name, name)] = Setting(
                None, environment[variable], f"environment {variable}"
            )
    return found


def environment_key(variable: str) -> str:
    """Return the key of a variable: KAFKA_A_B__C___D is a.b_c-d."""
    rest = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
    return rest.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def typed(texts: Mapping[str, Setting]) -> tuple[dict[str, Setting], dict[str, Setting]]:
    """Return (settings of all known keys, settings of unknown names). Properties that
    `refused_keys.py` has accepted are in neither.

    `texts` holds the given settings, whose values are not parsed yet. A key that is not set gets
    its default. Raise ConfigError if a value is invalid."""
    settings = {}
    named = ((name, listener_key(name)) for name in texts)
    of_listeners = {name: key for name, key in named if key is not None}
    for name, key in {**NODE_KEYS, **of_listeners}.items():
        given = texts.get(name)
        if given is None or given.text is None:
            settings[name] = Setting(key.default, key.format(key.default))
            continue
        try:
            value = key.parse(given.text)
        except ConfigError as error:
            raise ConfigError(f"{given.origin}: {error}") from None
        settings[name] = Setting(value, given.text.strip(), given.origin)
    unknown = {
        name: Setting(given.text, given.text, given.origin)
        for name, given in texts.items()
        if name not in settings and not may_be_refused(name)
    }
    return settings, unknown


def assemble(
    settings: Mapping[str, Setting],
    unknown: Mapping[str, Setting],
    hostname: str,
    cluster_id: str | None,
) -> NodeConfig:
    """Return the configuration with the values that are derived from several settings.

    Raise ConfigError if settings contradict each other, or if process.roles, node.id or the quorum
    is missing."""

    def derive(name: str, work: Callable[[Any], T]) -> T:
        """Return `work(value)`. A ConfigError gets the source of the setting as a prefix."""
        try:
            return work(settings[name].value)
        except ConfigError as error:
            raise ConfigError(f"{settings[name].origin}: {error}") from None

    def required(name: str) -> Any:
        if settings[name].value is None:
            raise ConfigError(f"{name}: must be set ({NODE_KEYS[name].doc})")
        return settings[name].value

    def resolved(text: str) -> Any:
        return resolve_listeners(
            listeners=default_listeners(settings, roles),
            advertised=settings["advertised.listeners"].value,
            controller_names=settings["controller.listener.names"].value,
            inter_broker_name=settings["inter.broker.listener.name"].value,
            roles=roles,
            hostname=hostname,
        )

    roles = required("process.roles")
    node_id = required("node.id")
    voters = derive(
        "controller.quorum.voters", lambda v: parse_voters("controller.quorum.voters", v)
    )
    bootstrap = derive(
        "controller.quorum.bootstrap.servers",
        lambda v: parse_servers("controller.quorum.bootstrap.servers", v),
    )
    listeners = derive("listeners", resolved)
    protocols = derive(PROTOCOL_MAP, lambda v: protocols_of(settings, roles, listeners))
    listeners = replace(listeners, protocols=protocols)
    check_listener_keys(settings, listeners)
    log_dirs = derive("log.dirs", lambda v: log_directories(v, settings["log.dir"].value))
    config = NodeConfig(
        settings=settings,
        unknown=unknown,
        node_id=node_id,
        roles=roles,
        listeners=listeners,
        voters=voters,
        bootstrap_servers=bootstrap,
        log_dirs=log_dirs,
        sasl=sasl_listeners(settings, protocols, SASL_PROTOCOLS),
        metadata_log_dir=os.path.abspath(settings["metadata.log.dir"].value or log_dirs[0]),
        cluster_id=cluster_id or None,
    )
    check_quorum(config)
    check_node_tls(config)
    check_times(config)
    check_cleaner(config)
    return config


def protocols_of(
    settings: Mapping[str, Setting], roles: tuple[str, ...], listeners: Listeners
) -> Mapping[str, str]:
    """Return the security protocol of each listener. Raise ConfigError if one is not supported."""
    protocols = settings[PROTOCOL_MAP]
    inter_broker = listeners.replication.name if listeners.replication else REPLICATION
    return resolve_protocols(
        parse_listeners("listeners", default_listeners(settings, roles)),
        [*settings["controller.listener.names"].value, inter_broker],
        protocols.value,
        is_set=not protocols.is_default,
    )


def default_listeners(settings: Mapping[str, Setting], roles: tuple[str, ...]) -> str:
    """Return the listeners as text. Raise ConfigError if the node is a controller and does not set
    them."""
    setting = settings["listeners"]
    if setting.is_default and "controller" in roles:
        raise ConfigError("listeners: must be set when process.roles has controller")
    return str(setting.value)


def log_directories(directories: tuple[str, ...] | None, fallback: str) -> tuple[str, ...]:
    """Return the absolute paths of the data directories: those in log.dirs, or else those in the
    comma-separated list `fallback`, the value of log.dir.

    Raise ConfigError if there is none or more than MAX_LOG_DIRS, or if one is named twice or by a
    link."""
    named = directories or tuple(each.strip() for each in fallback.split(","))
    paths = tuple(os.path.abspath(each) for each in named if each)
    if not paths:
        raise ConfigError("log.dirs: at least one directory must be named in log.dirs or log.dir")
    if len(paths) > MAX_LOG_DIRS:
        raise ConfigError(f"log.dirs: names {len(paths)} directories, at most {MAX_LOG_DIRS}")
    for each in paths:
        if paths.count(each) > 1:
            raise ConfigError(f"log.dirs: value {','.join(named)!r} must name {each} only once")
    seen: dict[str, str] = {}
    for each in paths:  # the lock of the second would seem to be that of another node
        other = seen.setdefault(os.path.realpath(each), each)
        if other != each:
            raise ConfigError(f"log.dirs: {other} and {each} must not be the same directory")
    return paths


def check_quorum(config: NodeConfig) -> None:
    """Raise ConfigError if there are neither voters nor bootstrap servers, or if the voters
    contradict the roles of this node.

    With bootstrap servers, a controller need not be among the voters."""
    if not config.voters and not config.bootstrap_servers:
        raise ConfigError(
            "controller.quorum.voters: must be set (id@host:port,...), "
            "or controller.quorum.bootstrap.servers"
        )
    if not config.voters:
        return
    origin = config.origin("controller.quorum.voters")
    is_voter = any(voter.id == config.node_id for voter in config.voters)
    if config.is_controller and not is_voter and not config.bootstrap_servers:
        raise ConfigError(
            f"{origin}: controller.quorum.voters: must name node.id {config.node_id}, "
            "whose process.roles has controller"
        )
    if is_voter and not config.is_controller:
        raise ConfigError(
            f"{origin}: controller.quorum.voters: must not name node.id {config.node_id}, "
            "whose process.roles is broker"
        )


def check_cleaner(config: NodeConfig) -> None:
    """Raise ConfigError if log.cleaner.dedupe.buffer.size does not exceed 1 MiB for each of
    log.cleaner.threads."""
    size, threads = config["log.cleaner.dedupe.buffer.size"], config["log.cleaner.threads"]
    if config["log.cleaner.enable"] and size <= threads * 1024 * 1024:
        raise ConfigError(
            f"{config.origin('log.cleaner.dedupe.buffer.size')}: log.cleaner.dedupe.buffer.size: "
            f"value '{size}' must exceed 1048576 for each of log.cleaner.threads ({threads})"
        )


def check_times(config: NodeConfig) -> None:
    """Raise ConfigError if broker.heartbeat.interval.ms is not below broker.session.timeout.ms, or
    if replica.fetch.wait.max.ms is above replica.lag.time.max.ms."""
    interval, session = config["broker.heartbeat.interval.ms"], config["broker.session.timeout.ms"]
    if interval >= session:
        raise ConfigError(
            f"{config.origin('broker.heartbeat.interval.ms')}: broker.heartbeat.interval.ms: value "
            f"'{interval}' must be below broker.session.timeout.ms ({session})"
        )
    wait, lag = config["replica.fetch.wait.max.ms"], config["replica.lag.time.max.ms"]
    if wait > lag:
        raise ConfigError(
            f"{config.origin('replica.fetch.wait.max.ms')}: replica.fetch.wait.max.ms: value "
            f"'{wait}' must be at most replica.lag.time.max.ms ({lag})"
        )
