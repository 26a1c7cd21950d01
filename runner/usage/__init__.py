"""GPU hours of a month, by team, user and job, from the records in Prometheus."""
