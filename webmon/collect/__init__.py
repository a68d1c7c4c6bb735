"""config → Snapshot: ask every host, and judge what it answered."""
