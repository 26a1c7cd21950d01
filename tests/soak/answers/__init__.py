"""Whether what is answered about a job before it is submitted is what then becomes of it."""
