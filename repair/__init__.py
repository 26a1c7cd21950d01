"""Take nodes into repair and back into service, for administrators: `mlbatch repair`."""
