"""The key `quorate.http.token.file`: a file with the token that admits HTTP requests to a node."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

from quorate.config.key import ConfigError, Key, Kind

HTTP_TOKEN_FILE = "quorate.http.token.file"
HTTP_TOKEN = (
    Key(
        HTTP_TOKEN_FILE,
        Kind.STRING,
        None,
        "A file with the token that HTTP requests to the port of nodes show, apart from /healthz "
        "and /readyz. With TLS between nodes, a certificate of the truststore also admits them.",
    ),
)
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,512}=*")
"""The tokens of RFC 6750, of 16 characters or more, because short ones can be guessed."""

log = logging.getLogger("quorate.config")


def read_token(config: Mapping[str, Any]) -> str | None:
    """Return the token in the file of the key, or None if the key is not set. Blocks.

    Raise ConfigError if the file cannot be read or holds no token. Write a warning if other users
    can read the file."""
    path = config[HTTP_TOKEN_FILE]
    if path is None:
        return None
    try:
        with open(path, encoding="ascii") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                log.warning("%s: other users can read %s: chmod 600", HTTP_TOKEN_FILE, path)
            text = file.read(1024).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{HTTP_TOKEN_FILE}: {error}") from None
    if not TOKEN.fullmatch(text):
        raise ConfigError(
            f"{HTTP_TOKEN_FILE}: {path} must hold one token of 16 to 512 letters, digits or -._~+/"
        )
    return text
