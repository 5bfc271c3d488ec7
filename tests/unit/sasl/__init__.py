"""Tests of quorum/sasl."""
