"""What was used in a small lab, as the store tells it: two users, a model, a day that is missing."""

from __future__ import annotations

from datetime import timedelta

from webmon.usage import Hour, Past, Use, Window, gpu_key

ALICE = Use(busy=20, held=4, sole=18, shared=6, beside=12, measured=24, worked=12, metered=24, energy=6)
BOB = Use(busy=6, shared=6, beside=12, measured=6, worked=3, metered=6, energy=1.5)
NOBODY = Use(busy=1, sole=0, measured=1, worked=1)
FREE = Use(free=40, measured=40, metered=40, energy=2, unknown=9)


def window(end, days, **more):
    """Return a window of which a quarter of an hour a day was not polled."""
    uses = (ALICE, BOB, NOBODY, FREE)
    total = Use(*map(sum, zip(*uses, strict=True)))
    known = {
        "polled_hours": 23.75 * days,
        "total": total,
        "users": {"alice": ALICE, "bob": BOB, None: NOBODY},
        "hosts": {"gpu10": FREE, "gpu2": ALICE, "gone": BOB},
        "models": {"NVIDIA A100-SXM4-80GB": ALICE, "NVIDIA A100-PCIE-80GB": BOB, "": NOBODY},
    }
    return Window(end - timedelta(days=days), end, **(known | more))


def hours(end, number=24 * 30, gap=(), model="NVIDIA A100-SXM4-80GB"):
    """Return hours up to that of the end: at noon two cards are free, else one; `gap` are hours ago."""
    last = end.replace(minute=0, second=0, microsecond=0)
    made = []
    for ago in reversed(range(number)):
        start = last - timedelta(hours=ago)
        free = 2.0 if start.hour == 12 else 1.0
        use = Use(busy=4 - free, free=free, measured=4, worked=2, metered=4, energy=0.5)
        if ago not in gap:
            made.append(Hour(start, 1.0, use, {model: free}))
    return made


def past(end, lines=None, **more):
    """Return what the pages tell of the past."""
    return Past({days: window(end, days) for days in (1, 7, 30)}, hours(end, **more), lines or {})


def lines(snapshot):
    """Return what each GPU did in the last 24 hours: more by the hour, and unknown at first."""
    return {
        (gpu.host, gpu_key(gpu.uuid, gpu.index)): [None, None, *(4.0 * hour for hour in range(22))]
        for gpu in snapshot.gpus
    }
