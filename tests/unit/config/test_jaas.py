"""JAAS values are read as Kafka reads them, and no error quotes one."""

from __future__ import annotations

import pytest

from quorate.config.jaas import parse_jaas
from quorate.config.key import ConfigError

KEY = "listener.name.a.plain.sasl.jaas.config"


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ("M required;", {}),
        ('M REQUIRED user_a="b" ;', {"user_a": "b"}),
        ("M sufficient user_a='b c' user_b=\"d'e\";", {"user_a": "b c", "user_b": "d'e"}),
        (r'M optional a="b\"c\\d\n\101\x";', {"a": 'b"c\\d\nAx'}),
        ('M requisite\n  // user_x="y";\n  a=b /* c=d\n */ e=f;', {"a": "b", "e": "f"}),
        ("M required a=b-c.d_e$f;", {"a": "b-c.d_e$f"}),
        ("M required / a comment with one slash\na=b;", {"a": "b"}),
        ('M required a="";', {"a": ""}),
        ('M required a="x;y=z";', {"a": "x;y=z"}),
        ('M required user_é="ü";', {"user_é": "ü"}),
        ('M required a="1" a="2";', {"a": "2"}),
    ],
)
def test_a_value(value: str, options: dict[str, str]) -> None:
    module = parse_jaas(KEY, value)
    assert (module.name, module.options) == ("M", options)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  // nothing",
        "M",
        "M needed;",
        "M required",
        'M required user_a="canary"',
        "M required user_a;",
        "M required user_a=;",
        "M required user_a=1canary;",
        "M required user_a=-canary;",
        'M required user_a="canary;',
        'M required user_a="can\nary";',
        'M required user_a "canary";',
        'M required user_a="canary"; N required;',
    ],
)
def test_no_value(value: str) -> None:
    with pytest.raises(ConfigError, match=r"value \[hidden\] is no JAAS value") as error:
        parse_jaas(KEY, value)
    assert "canary" not in str(error.value)
    assert str(error.value).startswith(KEY)
