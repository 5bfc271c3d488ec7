"""Untrusted peers of the simulated cluster: a hostile client and a faulty node."""
