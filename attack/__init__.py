"""Try attacks by a team member on a cluster, in a namespace that is deleted afterwards."""
