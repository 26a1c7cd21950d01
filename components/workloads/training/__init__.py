"""Programs of training jobs, which run in images with PyTorch. Nothing here is imported by the stack."""
