"""Parses a JAAS value, the form in which Kafka's configs name the users of a listener.

A value is `class flag option="value" ... ;`. Kafka cuts it into tokens with Java's StreamTokenizer,
whose rules are those of TOKEN. No error quotes a part of the value, because it holds passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from quorate.config.key import ConfigError

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTHBEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
FLAGS = ("required", "requisite", "sufficient", "optional")
"""The control flags. They have no effect on a single login module."""
TOKEN = re.compile(
    r"(?P<blank>[\x00-\x20]+|//[^\r\n]*|/\*.*?(?:\*/|\Z)|/[^\r\n]*)"  # a bare / is a comment, too
    r"""|(?P<quote>["'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?P=quote)"""
    r"|(?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9._$\xa0-\U0010ffff-]*)"
    r"|(?P<other>.)",
    re.DOTALL,
)
ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
CONTROLS = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\x0b"}


class LoginModule(NamedTuple):
    """The Java class of a login module, and its options."""

    name: str
    options: dict[str, str]


class Token(NamedTuple):
    """One token: a word or a quoted text if `is_text`, otherwise a single character."""

    text: str
    is_text: bool


def parse_jaas(key: str, value: str) -> LoginModule:
    """Return the one login module of `value`. `key` is the name of the config, for errors.

    Raise ConfigError if the value does not have the form of JAAS, or has several modules."""
    tokens = list(tokens_of(value))
    if not tokens:
        raise malformed(key, "it must name a login module")
    if len(tokens) < 2 or tokens[1].text.lower() not in FLAGS:
        raise malformed(key, f"the login module must be followed by one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    position = 2
    while position < len(tokens) and tokens[position] != Token(";", False):
        option = tokens[position : position + 3]
        if len(option) < 3 or option[1] != Token("=", False) or not option[2].is_text:
            raise malformed(
                key, 'each option must have the form name="value"; a number needs quotes'
            )
        options[option[0].text] = option[2].text
        position += 3
    if position == len(tokens):
        raise malformed(key, "it must end with a semicolon")
    if position + 1 != len(tokens):
        raise malformed(key, "it must contain only one login module")
    return LoginModule(tokens[0].text, options)


def tokens_of(value: str) -> Iterator[Token]:
    """Yield the tokens of a JAAS value, without blanks and comments."""
    for match in TOKEN.finditer(value):
        if match["quoted"] is not None:
            yield Token(ESCAPE.sub(unescaped, match["quoted"]), True)
        elif match["word"] is not None:
            yield Token(match["word"], True)
        elif match["other"] is not None:
            yield Token(match["other"], False)


def unescaped(match: re.Match[str]) -> str:
    """Return the character of an escape, which may be octal as in C."""
    text = match[1]
    return chr(int(text, 8)) if text[0] in "01234567" else CONTROLS.get(text, text)


def malformed(key: str, reason: str) -> ConfigError:
    """Return the error of a value that is not valid. The value itself stays hidden."""
    return ConfigError(f"{key}: value [hidden] is no JAAS value: {reason}")
