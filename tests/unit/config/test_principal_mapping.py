"""ssl.principal.mapping.rules, with the cases of Kafka's documentation and of its own test."""

from __future__ import annotations

import pytest

from quorate.config.key import ConfigError
from quorate.config.principal_mapping import parse_rules, user_name

NAME = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", NAME, NAME),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", NAME, "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", NAME, "duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/U", NAME, "DUKE"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/", NAME, "Duke@ServiceUsers"),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/, DEFAULT", NAME, NAME),
        ("RULE:^CN=(.*?),OU=Other.*$/$1/", NAME, None),
        ("RULE:CN=(.*?)/$1/", NAME, "Duke,OU=ServiceUsers,O=Org,C=US"),
        ("RULE:^.*CN=(\\w+),?.*$/$1/L,DEFAULT", NAME, "duke"),
        ("RULE:^CN=(.*?),.*$/$1-$2/", NAME, "Duke-$2"),
        ("RULE:^CN=(.*?),.*$/$1\\/x/", NAME, "Duke/x"),
        ("RULE:^CN=(a,b),.*$/$1/,DEFAULT", NAME, NAME),
        (" RULE:^CN=(.*?),.*$/$1/ , DEFAULT ", NAME, "Duke"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_decides(
    rules: str, name: str, user: str | None
) -> None:
    assert user_name(parse_rules(rules), name) == user


MALFORMED = ["", "default", "RULE:", "RULE:/", "RULE:x/", "RULE:x/y", "RULE:x/y/LU", "RULE:(/a/"]


@pytest.mark.parametrize("rules", [*MALFORMED, "DEFAULT,x", "RULE:a{99999999999}/b/"])
def test_malformed_rules(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        parse_rules(rules)
