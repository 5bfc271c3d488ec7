"""GET requests to the HTTP ports of nodes, with the certificate and the token of the command."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import NamedTuple

from quorate.cli.client.client_properties import ClientSecurity
from quorate.cli.client.connection import reason_of

REQUEST_TIMEOUT_S = 2.0
MAX_BODY_BYTES = 32 << 20
"""The most bytes of a response. A longer one counts as no answer."""

Address = tuple[str, int]


class Answer(NamedTuple):
    """A response. The names of `headers` are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class NodeHttp:
    """Asks nodes. If the command uses TLS, a node is asked by HTTPS first. A node whose port for
    nodes has no TLS is then asked without the token."""

    def __init__(self, security: ClientSecurity | None = None) -> None:
        """Use the TLS and the token of `security`, if it is given."""
        self._tls = None if security is None else security.tls
        self._token = None if security is None else security.http_token

    def get(self, address: Address, target: str) -> Answer | None:
        """Return the response to GET `target`, or None if the node does not answer. Blocks for a
        few seconds at most."""
        answer = self.ask(address, target)
        return None if isinstance(answer, str) else answer

    def ask(self, address: Address, target: str) -> Answer | str:
        """Return the response as `get` does, or the reason why the node does not answer."""
        if self._tls is None:
            return self._asked(
                http.client.HTTPConnection(*address, timeout=REQUEST_TIMEOUT_S), target, self._token
            )
        secure = http.client.HTTPSConnection(*address, timeout=REQUEST_TIMEOUT_S, context=self._tls)
        answer = self._asked(secure, target, self._token)
        if not isinstance(answer, str):
            return answer
        plain = self._asked(
            http.client.HTTPConnection(*address, timeout=REQUEST_TIMEOUT_S), target, None
        )
        return answer if isinstance(plain, str) else plain

    def _asked(
        self, connection: http.client.HTTPConnection, target: str, token: str | None
    ) -> Answer | str:
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            body = answer.read(MAX_BODY_BYTES + 1)
        except TimeoutError:
            return f"no answer within {REQUEST_TIMEOUT_S:g} s"
        except OSError as error:
            return reason_of(error)
        except http.client.HTTPException as error:
            return f"no answer in HTTP ({type(error).__name__})"
        finally:
            connection.close()
        if len(body) > MAX_BODY_BYTES:
            return f"an answer of more than {MAX_BODY_BYTES} bytes"
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, body, found)
