"""`make bench`: what the platform costs, as ratios between figures of one run on one machine."""
