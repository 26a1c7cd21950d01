"""The OSS MLOps platform: pipelines, model serving and experiment tracking on one cluster."""
