"""The platform's promises to teams as scenarios on a local cluster, each with a timeline, a picture and a verdict."""
