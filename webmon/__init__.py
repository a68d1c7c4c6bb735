"""webmon tells a lab where its free GPUs are."""

__version__ = "0.1.0"
