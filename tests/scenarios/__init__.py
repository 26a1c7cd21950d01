"""What the platform promises to teams, each promise played on a local cluster: a timeline, a picture, a verdict."""
