"""References to values in files, directories and variables (KIP-297)."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.config.config_providers import MAX_FILE_BYTES, PACKAGE
from quorate.config.key import ConfigError
from quorate.config.loader import load
from quorate.config.node_config import NodeConfig

NODE = """process.roles=broker
node.id=4
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://localhost:9092
config.providers=file, dir,env
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""
SECRET = "a-secret-value"


def loaded(tmp_path: Path, text: str, **environment: str) -> NodeConfig:
    secrets = tmp_path / "secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / "s.properties").write_text(f"rack={SECRET}\nempty=\n")
    (secrets / "rack").write_text(SECRET)
    (tmp_path / "outside").write_text(f"rack={SECRET}\n")
    file = tmp_path / "server.properties"
    file.write_text(NODE + text.replace("DIR", str(secrets)).replace("TMP", str(tmp_path)))
    return load(str(file), environment=environment, hostname="here")


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("${file:DIR/s.properties:rack}", SECRET),
        ("${dir:DIR:rack}", SECRET),
        ("${env:RACK}", "of a variable"),
        ("a ${env:RACK} and ${dir:DIR:rack}!", f"a of a variable and {SECRET}!"),
        ("${file:DIR/s.properties:empty}", ""),
        ("${other:x:y}", "${other:x:y}"),
        ("$RACK {env:RACK}", "$RACK {env:RACK}"),
    ],
)
def test_references_are_replaced(tmp_path: Path, reference: str, value: str) -> None:
    config = loaded(tmp_path, f"broker.rack={reference}\n", RACK="of a variable")
    assert config["broker.rack"] == value
    assert not any(name.startswith("config.providers") for name in config.unknown)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("broker.rack=${file:DIR/none:rack}", r":10: broker.rack: .*none: cannot be read"),
        ("broker.rack=${file:DIR/s.properties:none}", r"s.properties has no key 'none'"),
        ("broker.rack=${dir:DIR:none}", r"none: cannot be read: FileNotFoundError"),
        ("broker.rack=${dir:DIR:../outside}", r"'../outside' must be the name of a file"),
        ("broker.rack=${dir:DIR:a\\u0000}", r"must not contain NUL"),
        ("config.providers.env.param.allowlist.pattern=a{99999999999}", r"is malformed"),
        ("broker.rack=${env:NONE}", r"the variable NONE is not set"),
        ("broker.rack=${env:path:RACK}", r"has no path"),
        ("config.providers.file.param.x=y", r"FileConfigProvider has only .* allowed.paths"),
        ("config.providers.env.class=com.example.Vault", r"env.class: must be one of"),
    ],
)
def test_a_reference_to_nothing_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as raised:
        loaded(tmp_path, f"{text}\n", RACK="x")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "reference", ["${file:TMP/outside:rack}", "${file:DIR/../outside:rack}", "${dir:TMP:outside}"]
)
def test_paths_and_variables_are_bounded(tmp_path: Path, reference: str) -> None:
    bounds = (
        "config.providers.file.param.allowed.paths=DIR\n"
        "config.providers.dir.param.allowed.paths=/none,DIR\n"
        "config.providers.env.param.allowlist.pattern=RA.*\n"
    )
    inside = f"{bounds}broker.rack=${{file:DIR/s.properties:rack}}${{dir:DIR:rack}}${{env:RACK}}\n"
    assert loaded(tmp_path, inside, RACK="x")["broker.rack"] == f"{SECRET}{SECRET}x"
    with pytest.raises(ConfigError, match="is outside of"):
        loaded(tmp_path, f"{bounds}broker.rack={reference}\n")
    with pytest.raises(ConfigError, match=r"not in the allowlist\.pattern"):
        loaded(tmp_path, f"{bounds}broker.rack=${{env:HOME}}\n", HOME="x")


def test_a_link_does_not_lead_out_of_the_allowed_paths(tmp_path: Path) -> None:
    loaded(tmp_path, "")
    (tmp_path / "secrets" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match="is outside of"):
        loaded(
            tmp_path,
            "config.providers.dir.param.allowed.paths=DIR\nbroker.rack=${dir:DIR:link}\n",
        )


def test_files_are_bounded_and_must_be_text(tmp_path: Path) -> None:
    loaded(tmp_path, "")
    (tmp_path / "secrets" / "rack2").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ConfigError, match="more than"):
        loaded(tmp_path, "broker.rack=${dir:DIR:rack2}\n")
    (tmp_path / "secrets" / "rack2").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="UnicodeDecodeError"):
        loaded(tmp_path, "broker.rack=${dir:DIR:rack2}\n")


def test_a_provider_that_is_not_named_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    text = NODE.replace("config.providers=file, dir,env\n", "")
    file.write_text(text)
    with pytest.raises(ConfigError, match="has no effect without"):
        load(str(file), environment={}, hostname="here")
    assert PACKAGE in text


def test_the_short_name_of_a_class_is_enough(tmp_path: Path) -> None:
    text = "config.providers.env.class=EnvVarConfigProvider\nbroker.rack=${env:RACK}\n"
    assert loaded(tmp_path, text, RACK="x")["broker.rack"] == "x"
