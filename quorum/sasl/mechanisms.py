"""The SASL mechanisms of one listener, and the begin of an authentication by one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quorate.quorum.metadata.image import ScramCredential, ScramKey
from quorate.quorum.sasl.bearer_token import Verify
from quorate.quorum.sasl.exchange import Exchange
from quorate.quorum.sasl.oauthbearer import OAuthBearerExchange
from quorate.quorum.sasl.plain import PlainExchange
from quorate.quorum.sasl.random_text import random_text
from quorate.quorum.sasl.scram_mechanisms import BY_NAME, ScramMechanism
from quorate.quorum.sasl.scram_server import ScramExchange
from quorate.quorum.sasl.unknown_users import UnknownUsers
from quorate.quorum.seams import Random

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
Credentials = Callable[[], Mapping[ScramKey, ScramCredential]]
"""Returns the SCRAM credentials of the committed image."""


class Mechanisms:
    """The enabled mechanisms of one listener, in the order of its config."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        plain_users: Mapping[str, str],
        credentials: Credentials,
        unknown_users: UnknownUsers,
        random: Random,
        verify: Verify | None = None,
    ) -> None:
        """`plain_users` maps the users of PLAIN to their passwords. `verify` must be set if
        OAUTHBEARER is enabled. Every other name must be that of a SCRAM mechanism."""
        self.names = tuple(names)
        self._plain_users = plain_users
        self._credentials = credentials
        self._unknown_users = unknown_users
        self._random = random
        self._verify = verify

    def begin(self, name: str) -> Exchange:
        """Return a new exchange of an enabled mechanism. Raise KeyError for another one."""
        if name not in self.names:
            raise KeyError(name)
        if name == PLAIN:
            return PlainExchange(self._plain_users)
        if name == OAUTHBEARER:
            assert self._verify is not None
            return OAuthBearerExchange(self._verify)
        mechanism = BY_NAME[name]
        return ScramExchange(
            mechanism, lambda user: self._credential(mechanism, user), random_text(self._random)
        )

    def _credential(self, mechanism: ScramMechanism, user: str) -> tuple[ScramCredential, bool]:
        """Return the credential of a user. Do the same work for a user that does not exist."""
        unknown = self._unknown_users.credential(mechanism, user)
        found = self._credentials().get((user, mechanism.number))
        return (unknown, False) if found is None else (found, True)
