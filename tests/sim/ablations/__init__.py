"""The safeguards, each with a named history that breaks a named invariant without it."""
