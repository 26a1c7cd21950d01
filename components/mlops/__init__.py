"""The OSS MLOps platform: pipelines, model serving, experiment tracking on one cluster."""
