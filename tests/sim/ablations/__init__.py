"""The purpose of each safeguard: without it, a named history breaks a named invariant."""
