"""OpenShift AI, whose operator brings Kueue, AppWrapper, KubeRay and the training operator to an OpenShift."""
