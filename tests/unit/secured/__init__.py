"""Tests of quorum/secured."""
