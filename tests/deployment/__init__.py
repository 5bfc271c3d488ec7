"""The files for deployments: sample configs, image, compose.yaml, systemd unit, Kubernetes."""
