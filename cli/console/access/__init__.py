"""The requests that the console refuses, and the headers of its responses: request_rules.py."""
