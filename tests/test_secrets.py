"""No code compares secrets byte by byte, and no log line or error formats one.

The rules go by names: a value whose name has one of SECRET_WORDS is a secret. The comparison of
secrets must take as long whatever they are, so it is `hmac.compare_digest`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import ROOT, name_of, sources

LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
LOGGERS = re.compile(r"_?(log|logger|logging|audit)")
SECRET_WORDS = re.compile(
    r"(^|[_.])(passwords?|passwd|secrets?|jaas|salted|bearer|tokens?|proof|signature|credentials?"
    r"|(stored|server|client|private)_key|keystore_pem|key_pem)($|[_.])"
)
COMPARING = ("quorum/sasl", "quorum/rpc/kafka/sasl", "broker/kafka/sasl")
"""The beginnings of the paths of the code that checks secrets of clients."""
LENGTHS = {"len", "type", "bool"}
"""Functions whose results tell nothing about the content of a secret."""
NO_SECRETS = {
    ("quorum/sasl/scram_server.py", "credential"): "both credentials are the server's own",
}
"""Names in a file that a comparison may have, each with the reason."""


def secrets_in(node: ast.AST) -> Iterator[str]:
    """Yield the secrets whose content an expression uses: their names, or their config keys."""
    name, parts = "", list(ast.iter_child_nodes(node))
    match node:
        case ast.Call(func=ast.Name(id=function)) if function in LENGTHS:
            parts = []
        case ast.Call(func=ast.Attribute(value=owner)):
            parts = [owner, *node.args, *node.keywords]
        case ast.Call():
            parts = [*node.args, *node.keywords]
        case ast.Attribute(attr=name, value=ast.Name() | ast.Attribute()):
            parts = []
        case ast.Name(id=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            pass
    if is_secret(name):
        yield name
    for part in parts:
        yield from secrets_in(part)


def is_secret(name: str) -> bool:
    """Return True if a name or a config key has a word for secrets. Constants in upper case are
    the names of keys and texts."""
    return not name.isupper() and SECRET_WORDS.search(name) is not None


def compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each secret that is compared with ==, != or in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            operators = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
            if any(isinstance(each, operators) for each in node.ops):
                for operand in (node.left, *node.comparators):
                    yield from ((node.lineno, name) for name in secrets_in(operand))


def shown(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each secret that a log line or an error takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            call = node.exc
        elif isinstance(node, ast.Call) and is_log(node.func):
            call = node
        else:
            continue
        for argument in (*call.args, *call.keywords):
            yield from ((node.lineno, name) for name in secrets_in(argument))


def is_log(function: ast.expr) -> bool:
    """Return True for the methods of a logger."""
    if not isinstance(function, ast.Attribute) or function.attr not in LEVELS:
        return False
    owner = function.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return LOGGERS.fullmatch(name) is not None


def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text())


def test_secrets_are_compared_in_constant_time() -> None:
    checking = [each for each in sources() if name_of(each).startswith(COMPARING)]
    assert len(checking) > 10
    found = {
        (name_of(path), name): line for path in checking for line, name in compared(parsed(path))
    }
    assert NO_SECRETS.keys() <= found.keys(), "an exception that nothing needs"
    assert not found.keys() - NO_SECRETS.keys(), found


def test_no_log_line_and_no_error_shows_a_secret() -> None:
    found = [(name_of(path), *each) for path in sources() for each in shown(parsed(path))]
    assert not found


def test_the_checks_of_secrets_use_compare_digest() -> None:
    for name in ("plain", "scram_server", "scram_client"):
        assert "compare_digest" in (ROOT / "quorum/sasl" / f"{name}.py").read_text(), name


@pytest.mark.parametrize(
    ("code", "secrets"),
    [
        ("given == password", ["password"]),
        ("self._password != given", ["_password"]),
        ("hash(key) == credential.stored_key", ["stored_key"]),
        ("proof[0] == other[0]", ["proof"]),
        ("user in passwords", ["passwords"]),
        ("len(proof) == len(signature)", []),
        ("password is None", []),
        ("nonce == expected", []),
    ],
)
def test_comparisons_that_are_refused(code: str, secrets: list[str]) -> None:
    assert [name for _, name in compared(ast.parse(code))] == secrets


@pytest.mark.parametrize(
    ("code", "secrets"),
    [
        ("log.info('login of %s by %s', user, password)", ["password"]),
        ("logger.debug(f'{credential.server_key!r}')", ["server_key"]),
        ("self._log.warning('%s' % login.password.strip())", ["password"]),
        ("log.error('x', extra={'p': salted_password})", ["salted_password"]),
        ("log.info(config['ssl.key.password'])", ["ssl.key.password"]),
        ("raise Refused(f'{jaas} is wrong')", ["jaas"]),
        ("log.info('the password of %s is wrong', user)", []),
        ("log.info('%d', len(password))", []),
        ("raise ConfigError(f'{SASL_JAAS}: must be {what}')", []),
        ("partition.log(password)", []),
    ],
)
def test_lines_that_are_refused(code: str, secrets: list[str]) -> None:
    assert [name for _, name in shown(ast.parse(code))] == secrets
