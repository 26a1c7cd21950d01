"""OpenShift AI, whose operator installs Kueue, AppWrapper, KubeRay and the training operator on OpenShift."""
