"""Snapshot ↔ data/. pandas is imported here and nowhere else."""
