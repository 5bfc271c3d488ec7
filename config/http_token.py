"""The key `quorate.http.token.file`: a file with the tokens that admit HTTP requests to a node.

The file has one token, or two while clients change from one to the other.
"""

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
        "and /readyz, or with two of them on lines of their own. With TLS between nodes, a "
        "certificate of the truststore also admits them.",
    ),
)
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,512}=*")
"""The tokens of RFC 6750, of 16 characters or more, because short ones can be guessed."""
MAX_TOKENS = 2
MAX_FILE_CHARS = 2048

log = logging.getLogger("quorate.config")


def read_tokens(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tokens in the file of the key, the first of which clients send, or none if the key
    is not set. Blocks.

    Raise ConfigError if the file cannot be read, or holds no tokens, or more than MAX_TOKENS. Write
    a warning if other users can read the file."""
    path = config[HTTP_TOKEN_FILE]
    if path is None:
        return ()
    try:
        with open(path, encoding="ascii") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                log.warning("%s: other users can read %s: chmod 600", HTTP_TOKEN_FILE, path)
            text = file.read(MAX_FILE_CHARS)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{HTTP_TOKEN_FILE}: {error}") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= MAX_TOKENS or not all(TOKEN.fullmatch(each) for each in lines):
        raise ConfigError(
            f"{HTTP_TOKEN_FILE}: {path} must hold one token of 16 to 512 letters, digits or "
            f"-._~+/, or {MAX_TOKENS} on lines of their own"
        )
    return tuple(lines)
