"""A month whose answers are known: a plan of who had which card when, the polls of it, and its sums.

The sums are worked out of the plan, as lengths of time, by nothing of webmon's. Each poll stands for the time
since the one before, so what changes in the plan changes just after a poll: at five to, and 20 seconds.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import NamedTuple

START = int(datetime(2026, 10, 19, tzinfo=UTC).timestamp())
STEP = 300
OFFSET = 20
DAYS = 30
# The last poll is of a quarter past six on the day after thirty.
LAST = START + DAYS * 86400 + 18 * 3600 + 15 * 60 + OFFSET
END = datetime.fromtimestamp(LAST, UTC)

HEADER = (
    "time,host,index,uuid,name,state,utilization_pct,memory_used_mib,memory_total_mib,power_w,"
    "temperature_c,users\n"
)


class Card(NamedTuple):
    host: str
    number: int
    uuid: str
    model: str


class Piece(NamedTuple):
    """What a card did from one hour of the month to another; `weight` is a half if that was there twice."""

    start: float
    end: float
    state: str
    users: tuple[str, ...] = ()
    utilization: int | None = None
    power: float | None = None
    weight: float = 1.0


A0 = Card("gpua.lab", 0, "GPU-a0", "NVIDIA A100-SXM4-80GB")
A1 = Card("gpua.lab", 1, "GPU-a1", "NVIDIA A100-SXM4-80GB")
B0 = Card("gpub.lab", 0, "GPU-b0", "NVIDIA RTX A6000")
B1 = Card("gpub.lab", 1, "", "NVIDIA RTX A6000")
C0 = Card("gpu10", 0, "GPU-c0", 'NVIDIA H100, "80 GB"')
CARDS = (A0, A1, B0, B1, C0)

# The clock goes back an hour on this day at 10, ahead on that one; hours and polls without polls.
BACK_DAY, BACK_HOUR = 10, 9
MISSED_HOURS = ((16 * 24 + 12, 1), (18 * 24 + 3, 1), (24 * 24 + 22, 4))
MISSED_POLLS = (21 * 86400 + 14 * 3600 + 1800, 30 * 86400 + 5 * 3600 + 600)
DOWN_DAY = 13


def second(hour):
    """Return when an hour of the plan starts: just after the last poll of the one before."""
    return START + int(hour * 3600) + OFFSET - STEP


def _daily(card):
    """Return what happens on every day alike."""
    for day in range(DAYS + 1):
        h = 24 * day
        if card == A0:
            yield Piece(h, h + 9, "busy", ("alice=6400",), 90, 300)
            yield Piece(h + 9, h + 15, "busy", ("alice=6400", "bob=1618"), 97, 389.5)
            yield Piece(h + 15, h + 24, "held", ("alice=6400",), 0, 80)
        elif card == C0:
            yield Piece(h, h + 8, "free", (), 0, 55)
            yield Piece(h + 8, h + 20, "busy", ('o"brien, x=1000', "ünï=x=3000"), 80, 610.25)
            yield Piece(h + 20, h + 24, "free", (), 0, 55)


def _once(card):
    """Return what happens once."""
    long = 24 * (DAYS + 1)
    if card == A1:
        yield Piece(0, 54, "free", (), 0, 55)
        yield Piece(54, 306, "busy", ("carol=", "dave=500"), 61, 250)
        yield Piece(306, 480, "free", (), 2, 55)
        yield Piece(480, 600, "faulty")
        yield Piece(600, 672, "free", (), 0, 55)
        yield Piece(672, long, "held", ("nan=70000",), 1, 81)
    down, twice = 24 * DOWN_DAY, 24 * BACK_DAY + BACK_HOUR
    if card == B0:
        yield Piece(0, twice, "busy", ("NA=9000",), 50)
        yield Piece(twice, twice + 1, "busy", ("NA=9000",), 50, weight=0.5)
        yield Piece(twice, twice + 1, "free", (), 0, weight=0.5)
        yield Piece(twice + 1, down, "busy", ("NA=9000",), 50)
        yield Piece(down, down + 24, "unknown")
        yield Piece(down + 24, long, "busy", ("NA=9000",), 50)
    if card == B1:
        yield Piece(0, 120, "free", (), 0, 25)
        yield Piece(120, 168, "busy", (), 33, 120)
        yield Piece(168, 192, "busy", ("alice=100",), None, 100)
        yield Piece(192, down, "free", (), 0, 25)
        yield Piece(down, down + 24, "unknown")
        yield Piece(down + 24, long, "free", (), 0, 25)


PLAN = {card: [*_daily(card), *_once(card)] for card in CARDS}


# The polls.


def _missed(moment):
    since = moment - OFFSET - START
    return since in MISSED_POLLS or any(
        start * 3600 <= since < (start + hours) * 3600 for start, hours in MISSED_HOURS
    )


def _at(card, moment, again):
    """Return the piece that a poll of this time, by plan, is of; after the clock went back, the other one."""
    found = [one for one in PLAN[card] if second(one.start) < moment <= second(one.end)]
    return found[-1 if again else 0]


def polls():
    """Yield each poll: its time, the time of the plan that it is of, if that hour was there before."""
    jitter = random.Random(6)
    back = START + BACK_DAY * 86400 + BACK_HOUR * 3600 + OFFSET
    again = {}
    for moment in range(START + OFFSET, LAST + 1, STEP):
        if _missed(moment):
            continue
        time = moment if moment == LAST else moment + jitter.randint(-4, 4)
        yield time, moment, False
        if back <= moment < back + 3600:
            again[moment] = time
        if moment == back + 3600 - STEP:
            # First between the polls of the first time; then at the very same seconds.
            yield from ((one, one, True) for one in range(back - STEP // 2, back + 1800, STEP))
            yield from ((again[one], one, True) for one in range(back + 1800 + STEP, back + 3600, STEP))


def row(card, piece, time):
    stamp = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    numbers = [piece.utilization, *((None, None) if piece.state == "unknown" else (100, 81920)), piece.power]
    cells = [
        card.host,
        card.number,
        card.uuid,
        card.model,
        piece.state,
        *numbers,
        None,
        ";".join(piece.users),
    ]
    return [stamp, *("" if cell is None else cell for cell in cells)]


def lines_of_polls():
    """Yield the text of each poll, in the order in which they were made."""
    for time, moment, again in polls():
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(
            row(card, _at(card, moment, again), time) for card in CARDS
        )
        yield time, file.getvalue()


def write(folder):
    """Write the history of the month: closed days compressed, today not."""
    days = defaultdict(list)
    last = {}
    for time, text in lines_of_polls():
        day = datetime.fromtimestamp(time, UTC).date()
        days[day].append(text)
        last[day] = time
    (folder / "history").mkdir(parents=True)
    for day, texts in days.items():
        content = (HEADER + "".join(texts)).encode()
        path = folder / "history" / f"{day}.csv"
        if day != END.date():
            path, content = path.with_name(f"{path.name}.gz"), gzip.compress(content, 1)
        path.write_bytes(content)
        os.utime(path, (last[day], last[day]))


# The answers.


def known():
    """Return the spans of time that there are polls of."""
    gaps = [(second(start), second(start + hours)) for start, hours in MISSED_HOURS]
    gaps += [(START + since + OFFSET - STEP, START + since + OFFSET) for since in MISSED_POLLS]
    begin = second(0)
    for start, end in sorted(gaps):
        yield begin, start
        begin = end
    yield begin, LAST


def overlap(start, end, spans=None):
    """Return for how many hours of a span there are polls."""
    spans = list(known()) if spans is None else spans
    return sum(max(0, min(end, b) - max(start, a)) for a, b in spans) / 3600


def owners(users):
    """Return who has which part of a card: by memory; equally, where that of one is not known."""
    named = [(text[: text.rindex("=")], text[text.rindex("=") + 1 :]) for text in users]
    if any(not mib for _, mib in named):
        return [(user, 1 / len(named)) for user, _ in named]
    whole = sum(int(mib) for _, mib in named)
    return [(user, int(mib) / whole) for user, mib in named]


def answers(start, end=LAST):
    """Return the figures of a window, of all, by user, host and model, by the names that `Use` has."""
    spans = list(known())
    found = {by: defaultdict(Counter) for by in ("total", "user", "host", "model")}
    for card in CARDS:
        for piece in PLAN[card]:
            hours = piece.weight * overlap(
                max(start, second(piece.start)), min(end, second(piece.end)), spans
            )
            if not hours:
                continue
            for user, share in owners(piece.users) or [(None, 1.0)]:
                sums = _sums(piece, hours, share, user)
                for by, key in (("total", ""), ("host", card.host), ("model", card.model)):
                    found[by][key].update(sums)
                if user is not None or piece.state in ("busy", "held"):
                    found["user"][user].update(sums)
    return found


def _sums(piece, hours, share, user):
    part = hours * share
    sums = {piece.state: part}
    if user is not None:
        sums["sole" if len(piece.users) == 1 else "shared"] = part
        sums["beside"] = hours if len(piece.users) > 1 else 0
    if piece.utilization is not None:
        sums |= {"measured": part, "worked": part * piece.utilization / 100}
    if piece.power is not None:
        sums |= {"metered": part, "energy": part * piece.power / 1000}
    return sums
