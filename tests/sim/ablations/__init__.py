"""What each safeguard is for: without it, a named history breaks a named invariant."""
