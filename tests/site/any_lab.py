"""Labs of any shape: names that nobody has cleaned, numbers that cannot be, indexes that are there twice."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from webmon.model import CLAIM, Gpu, Host, Process, Snapshot

# A few examples for each test: what they look for shows soon.
quick = settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

# Letters, borders, wide, combining, right to left, an emoji of several parts, what moves a cursor.
ODD = (
    "ab-_.:;|/ #=+@\"'é数ｱ宽\u3000한e\u0301\u20dd\u1161שלע👩\u200d🔬🇩🇪"
    "\x1b[\x9b\x07\n\r\t\x85\u2028\u202e\ufeff\ue000"
)
# The borders of boxes are left out: the tests tell by them what is a box.
TEXTS = st.text(ODD, max_size=60) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="┌│└")
)
HOST_NAMES = TEXTS.filter(bool)
MAYBE_TEXT = st.none() | TEXTS
NUMBERS = st.none() | st.integers(-5, 200_000) | st.integers(-(10**18), 10**18)
TIMES = st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2500, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda time: time.replace(microsecond=0)
)
STATES = st.sampled_from(["free", "busy", "held", "faulty", "unknown"])
STATUSES = st.sampled_from(["up", "up", "degraded", "down"])

_READINGS = (*[NUMBERS] * 5, NUMBERS.map(lambda n: None if n is None else n / 7))


@st.composite
def labs(draw, names=HOST_NAMES):
    """Return a snapshot of up to three hosts of these names, and what is on them."""
    hosts = tuple(
        draw(st.builds(Host, st.just(name), *[MAYBE_TEXT] * 2, STATUSES, *[MAYBE_TEXT] * 2, TIMES, TIMES))
        for name in draw(st.lists(names, max_size=3, unique=True))
    )
    gpus = tuple(
        draw(
            st.builds(
                Gpu,
                st.just(host.host),
                st.integers(0, 15) | st.integers(0, 10**9),
                st.none() | st.sampled_from(["GPU-0", "GPU-1"]),
                MAYBE_TEXT,
                STATES,
                *_READINGS,
                users=st.lists(TEXTS, max_size=3).map(tuple),
            )
        )
        for host in hosts
        for _ in range(draw(st.integers(0, 3)))
    )
    processes = tuple(
        draw(
            st.builds(
                Process,
                st.just(gpu.host),
                st.sampled_from([gpu.index, None]),
                st.sampled_from([gpu.uuid, "GPU-else"]),
                st.integers(0, 10**10),
                MAYBE_TEXT,
                MAYBE_TEXT | st.just(CLAIM),
                MAYBE_TEXT,
                NUMBERS,
                TIMES,
            )
        )
        for gpu in gpus
        for _ in range(draw(st.integers(0, 2)))
    )
    return Snapshot(draw(TIMES.filter(bool)), hosts, gpus, processes)
