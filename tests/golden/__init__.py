"""Comparisons with lines and errors that Apache Kafka 4.1.1 printed once (golden files).

`capture.py` asks Kafka again. The tests compare Quorate's output with the files, and also with
Kafka itself if a Java and Kafka's libraries are there.

- admin_errors.json: the errors of admin requests (admin_requests.py, test_admin_errors.py)
- tools.txt: the output of the command line tools (tool_runs.py, test_tools.py)
- shell.txt: the output of the metadata shell (shell_runs.py, test_metadata_shell.py)
"""
