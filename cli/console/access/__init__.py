"""The access to the console.

- request_rules.py: the requests that the console refuses, and the headers of its responses. Pure.
- connections.py: the bound of the number of connections.
"""
