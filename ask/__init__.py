"""Tell whether a job would run on a cluster before it is submitted. Tries it on a replica of the cluster's queues."""
