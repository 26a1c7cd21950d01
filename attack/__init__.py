"""What a member of a team could do on a cluster: attacks, tried as that member in a namespace that goes afterwards."""
