"""Which GPU is mine: picking among free GPUs, claims, waiting, and the functions of the Python API."""
