"""`make bench`: the platform's cost, as ratios between figures of one run on one machine."""
