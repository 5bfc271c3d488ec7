"""Config providers (KIP-297): values of a node's own settings that are kept elsewhere.

`config.providers` names the providers, and `config.providers.NAME.class` their classes, which are
these three of Kafka. A value may then contain references:

| class | reference | replaced by |
|---|---|---|
| FileConfigProvider | `${NAME:/path/of.properties:key}` | the value of the key in the file |
| DirectoryConfigProvider | `${NAME:/path:file}` | the content of the file |
| EnvVarConfigProvider | `${NAME:VARIABLE}` | the value of the variable |

`param.allowed.paths` bounds the files of the first two, and `param.allowlist.pattern` the variables
of the third. Dynamic configs have no references, because a user with the right to alter configs
could otherwise read the files of the node (CVE-2024-31141). A reference to nothing is an error;
Kafka leaves its text in place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from quorate.config import properties
from quorate.config.key import ConfigError
from quorate.config.setting import Setting

PROVIDERS = "config.providers"
PACKAGE = "org.apache.kafka.common.config.provider."
REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}:]*)\}")
PROVIDER_KEY = re.compile(r"config\.providers(\.[^.]+\.(class|param\.[a-z.]+))?")
MAX_FILE_BYTES = 1 << 20
"""The maximum size of a file that a reference names."""

Resolve = Callable[[str, str], str]
"""Returns the value at a path and a key. Raises ConfigError, which never contains a value."""


def resolve_references(
    texts: Mapping[str, Setting], environment: Mapping[str, str]
) -> dict[str, Setting]:
    """Return the settings with all references replaced, and without those of the providers. Blocks.

    Raise ConfigError if a provider is not one of the three, or if a reference cannot be
    resolved."""
    names = [each.strip() for each in text_of(texts, PROVIDERS).split(",") if each.strip()]
    resolvers = {name: provider(name, texts, environment) for name in names}
    found = {}
    for name, setting in texts.items():
        if PROVIDER_KEY.fullmatch(name):
            if not names:
                raise ConfigError(f"{setting.origin}: {name}: has no effect without {PROVIDERS}")
            continue
        found[name] = setting
        if resolvers and setting.text is not None:
            try:
                found[name] = replace(setting, text=resolved(setting.text, resolvers))
            except ConfigError as error:
                raise ConfigError(f"{setting.origin}: {name}: {error}") from None
    return found


def resolved(text: str, resolvers: Mapping[str, Resolve]) -> str:
    """Return `text` with its references replaced. Text that names no provider stays as it is."""

    def value_of(match: re.Match[str]) -> str:
        resolve = resolvers.get(match[1])
        return match[0] if resolve is None else resolve(match[2] or "", match[3])

    return REFERENCE.sub(value_of, text)


def provider(name: str, texts: Mapping[str, Setting], environment: Mapping[str, str]) -> Resolve:
    """Return the function of one provider. Raise ConfigError if its class is not known, or if it
    has a parameter that it does not obey."""
    prefix = f"{PROVIDERS}.{name}."
    given = text_of(texts, f"{prefix}class").removeprefix(PACKAGE)
    parameters = {
        key.removeprefix(f"{prefix}param."): each.text or ""
        for key, each in texts.items()
        if key.startswith(f"{prefix}param.")
    }
    known = {
        "FileConfigProvider": ("allowed.paths", from_file),
        "DirectoryConfigProvider": ("allowed.paths", from_directory),
    }
    if given == "EnvVarConfigProvider":
        parameter = "allowlist.pattern"
    elif given in known:
        parameter = known[given][0]
    else:
        classes = ", ".join(f"{PACKAGE}{each}" for each in (*known, "EnvVarConfigProvider"))
        raise ConfigError(f"{prefix}class: must be one of {classes}")
    for key in parameters:
        if key != parameter:
            raise ConfigError(f"{prefix}param.{key}: {given} has only the parameter {parameter}")
    if given == "EnvVarConfigProvider":
        return from_environment(environment, parameters.get(parameter, ""))
    read = known[given][1]
    paths = [os.path.realpath(each) for each in parameters.get(parameter, "").split(",") if each]

    def resolve(path: str, key: str) -> str:
        if "\0" in path + key:
            raise ConfigError(f"the name of a file must not contain NUL: {path + key!r}")
        file, value = read(path, key)
        real = os.path.realpath(file)
        if paths and not any(os.path.commonpath((each, real)) == each for each in paths):
            raise ConfigError(f"{file} is outside of {prefix}param.{parameter}")
        return value()

    return resolve


def from_file(path: str, key: str) -> tuple[str, Callable[[], str]]:
    """Return the file of a reference, and the function that reads the value of its key."""

    def value() -> str:
        entries = {each.name: each.value for each in properties.parse(read(path), path)}
        if key not in entries:
            raise ConfigError(f"{path} has no key {key!r}")
        return entries[key]

    return path, value


def from_directory(path: str, key: str) -> tuple[str, Callable[[], str]]:
    """Return the file of a reference, and the function that reads its content."""
    if not key or os.path.basename(key) != key:
        raise ConfigError(f"{key!r} must be the name of a file in {path}")
    file = os.path.join(path, key)
    return file, lambda: read(file)


def from_environment(environment: Mapping[str, str], allowed: str) -> Resolve:
    """Return the function that reads variables whose names match the pattern `allowed`, if there is
    one."""
    try:
        pattern = re.compile(allowed or ".*")
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(f"the pattern {allowed!r} of variables is malformed: {error}") from None

    def resolve(path: str, key: str) -> str:
        if path:
            raise ConfigError(f"a reference to the variable {key} has no path")
        if not pattern.fullmatch(key) or key not in environment:
            raise ConfigError(f"the variable {key} is not set, or not in the allowlist.pattern")
        return environment[key]

    return resolve


def read(path: str) -> str:
    """Return the text of a file. Raise ConfigError if it cannot be read or is too large."""
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        text = content.decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {type(error).__name__}") from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} has more than {MAX_FILE_BYTES} bytes")
    return text


def text_of(texts: Mapping[str, Setting], name: str) -> str:
    """Return the text of a setting, or an empty string."""
    setting = texts.get(name)
    return "" if setting is None or setting.text is None else setting.text
