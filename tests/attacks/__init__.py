"""Attacks on a running cluster: a short function for each defect that untrusted input once caused.

`raw` writes the bytes and owns the connections, `target` knows the cluster, `registry` lists the
attacks, and one module for each kind of attack defines them. `bystanders` are a producer and a
consumer in processes of their own, which must not notice an attack. `soak` mixes the attacks with
load and kills for as long as its caller wants. `python -m tests.attacks --help` runs all of it.
"""
