"""Whether a job would run on a cluster, asked before it is submitted: tried on a replica of the cluster's queues."""
