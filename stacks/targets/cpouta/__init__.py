"""Target `cpouta`: a VM on CSC's OpenStack cloud cPouta, with a cluster of kind on it."""
