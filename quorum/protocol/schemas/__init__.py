"""The messages of Kafka's protocol, one module for a group of related APIs.

Each class declares one struct of Kafka's message definitions over all versions that this project
serves (`../wire.py`). Names and wire types are Kafka's, in snake case. Fields of requests also
declare their bounds (`../field_bounds.py`). Every request and response has its API key in
`API_KEY`; `../apis.py` maps keys to classes and versions.

The module docstrings name the KIPs that introduced the APIs and their later fields.
`error_responses.py` builds the responses of failed admin requests.

Source: the JSON files under clients/src/main/resources/common/message of Apache Kafka 4.1.
"""
