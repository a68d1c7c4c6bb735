"""The pages of a big cluster, beside their bounds: rendering, size, and a real browser.

    make bench-page                    1,000 hosts with 8 GPUs each, three rounds
    python benchmarks/page.py --hosts 100 --rounds 5

A pretended cluster (cluster.py) is rendered by `webmon render`, served by a real nginx with the
block of `webmon deploy nginx`, and used in a real Chromium. It exits with 1 if a bound is exceeded,
or if what it bounds could not be measured. README.md tells what each number is.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from servers.chromium import Chromium
from servers.nginx import Nginx

if TYPE_CHECKING:
    import resource
    from collections.abc import Iterator

    from servers.page import Page

WEBMON = [sys.executable, "-m", "webmon"]

# The command, with a clock around the call that renders, and around each view.
INSIDE = """
import json, sys, time
import webmon.publish.render as module
from webmon.cli import run

render = module.render
taken = {}

def timed(view):
    def watched(*arguments):
        start = time.perf_counter()
        files = list(view(*arguments))
        taken[view.__name__] = time.perf_counter() - start
        return files
    return watched

def watched(*arguments, **named):
    start = time.perf_counter()
    render(*arguments, **named)
    print(json.dumps(taken | {"render": time.perf_counter() - start}))

module.VIEWS = tuple(map(timed, module.VIEWS))
module.render = watched
sys.argv[0] = "webmon"
sys.exit(run())
"""

# What somebody looks for: each key, and then each Backspace, is one measurement.
WORDS = ("rossi", "h100")
VIEWS = ("cards", "compact", "table")
VIEW_MODULES = ("tables", "states", "metrics", "text", "pages")

# Runs in the page before anything of its own does.
WATCH = """(() => {
  const bench = window.bench = { long: [], keys: [], ready: null, frame: null };
  const observe = (type, into, more) => new PerformanceObserver(
    list => into.push(...list.getEntries())).observe({ type, buffered: true, ...more });
  observe("longtask", bench.long);
  observe("event", bench.keys, { durationThreshold: 16 });

  // The first task after a frame: style, layout and paint have been done on the main thread.
  bench.afterFrame = () => new Promise(done => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => done(performance.now());
    channel.port2.postMessage(0);
  }));
  const sleep = ms => new Promise(done => setTimeout(done, ms));

  const look = async () => {
    if (bench.ready !== null || !document.documentElement.classList.contains("js")) return;
    bench.ready = performance.now();
    bench.frame = await bench.afterFrame();
  };
  const begun = new MutationObserver(() => {
    if (!document.documentElement) return;
    begun.disconnect();
    new MutationObserver(look).observe(document.documentElement, { attributeFilter: ["class"] });
    look();
  });
  begun.observe(document, { childList: true });

  // The end of that frame, or of the long tasks that follow within half a second of each other.
  bench.interactive = async () => {
    let end = bench.frame;
    for (;;) {
      const next = bench.long.filter(task => task.startTime < end + 500);
      const last = Math.max(end, ...next.map(task => task.startTime + task.duration));
      if (last === end && performance.now() > end + 1000) return end;
      end = last;
      await sleep(100);
    }
  };

  // From the next event to the end of the frame that shows the last change that it brings.
  const aside = "head, time, [aria-live], [role=status], [role=alert]";
  const inWindow = node => {
    let part = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
    // What is hidden now was somewhere in the first thing around it that is not.
    while (part && !part.offsetHeight) part = part.parentElement;
    const box = part?.getBoundingClientRect();
    return box && box.bottom > 0 && box.top < innerHeight;
  };
  const matters = ({ target, addedNodes }) =>
    !(target.closest ? target : target.parentElement)?.closest(aside) &&
    (addedNodes.length ? [...addedNodes] : [target]).some(inWindow);
  bench.await = type => {
    bench.answer = new Promise(done => addEventListener(type, async event => {
      const batches = [], frames = [], until = performance.now() + 300;
      const observer = new MutationObserver(records => batches.push([performance.now(), records]));
      const all = { subtree: true, childList: true, attributes: true, characterData: true };
      observer.observe(document.documentElement, all);
      do frames.push(await bench.afterFrame()); while (frames.at(-1) < until);
      observer.disconnect();
      const times = batches.filter(([, records]) => records.some(matters)).map(([time]) => time);
      const last = Math.max(0, ...times);
      done((frames.find(frame => frame >= last) ?? frames.at(-1)) - event.timeStamp);
    }, { capture: true, once: true }));
  };

  // A timer that should come every 5 ms: how late is it at worst?
  bench.listen = () => {
    let last = performance.now();
    bench.late = 0;
    bench.long.length = 0;
    const beat = () => {
      bench.late = Math.max(bench.late, performance.now() - last - 5);
      last = performance.now();
      setTimeout(beat, 5);
    };
    setTimeout(beat, 5);
  };
  bench.blocked = () => Math.max(bench.late, ...bench.long.map(task => task.duration));
})()"""


@dataclass
class Row:
    """A line of the table, with one value for each round."""

    what: str
    unit: str
    bound: float | None = None
    values: list[float] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        if not self.values:
            return "NOT MEASURED" if self.bound else "not measured"
        if self.bound is None:
            return ""
        return "ok" if statistics.median(self.values) <= self.bound else "OVER"

    def __str__(self) -> str:
        digits = {"s": 2}.get(self.unit, 0)
        middle = around = "–"  # noqa: RUF001
        if self.values:
            middle = f"{statistics.median(self.values):,.{digits}f}"
            around = f"{min(self.values):,.{digits}f} to {max(self.values):,.{digits}f}"
        bound = "" if self.bound is None else f"{self.bound:,g} {self.unit}"
        return f"{self.what:46} {middle:>8} {self.unit:2}  {around:>16}  {bound:>8}  {self.verdict}".rstrip()


class MissingError(Exception):
    """The page lacks something that is to be measured."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--gpus", type=int, default=8, help="of each host")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    others = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before it began"
    with tempfile.TemporaryDirectory(prefix="webmon-bench-") as name:
        bench = Bench(Path(name), options.hosts, options.gpus, options.rounds)
        print(f"{bench.cluster}\n{others}")
        print(f"the median of {options.rounds} rounds, and the least to the most:\n")
        rows: list[Row] = []
        for part in (bench.rendering, bench.sizes, bench.browser):
            shown = part()
            print("\n".join(map(str, shown)), flush=True)
            rows += shown
    for problem in bench.problems:
        print(f"\n{problem}")
    return int(any(row.verdict in ("OVER", "NOT MEASURED") for row in rows))


class Bench:
    """A data folder with polls of a cluster, and two sites of it; one of them refreshes itself."""

    def __init__(self, folder: Path, hosts: int, gpus: int, rounds: int) -> None:
        self._folder, self._rounds = folder, rounds
        self.problems: list[str] = []
        folder.chmod(0o755)
        self._data, self._site, self._live = folder / "data", folder / "site", folder / "live"
        # This process stays small: the peak memory of what it starts counts from its own.
        make = [sys.executable, Path(__file__).with_name("cluster.py"), self._data]
        sizes = [f"--hosts={hosts}", f"--gpus={gpus}", f"--polls={2 * rounds + 1}"]
        self.cluster = output(*make, *sizes).strip()
        self._polls = sorted((self._data / "snapshots").iterdir())
        self._config = self._write_config(hosts, self._site, refresh=86400)
        self._live_config = self._write_config(hosts, self._live, refresh=1)

    def rendering(self) -> list[Row]:
        """Render poll after poll, as cron does: each time all of the page has changed."""
        whole = Row("webmon render, all files, the whole command", "s", 4)
        cpu = Row("webmon render, its CPU time", "s")
        inside = Row("webmon.publish.render.render alone", "s")
        views = {name: Row(f"of that, the view {name!r}", "s") for name in VIEW_MODULES}
        views["pages"].bound = 2
        memory = Row("webmon render, peak memory", "MB", 500)
        again = Row("webmon render, nothing new", "s", 4)
        rewritten = Row("files that it writes then", "", 0)
        self._take_next_poll()
        for config in (self._config, self._live_config):
            measured([*WEBMON, "render", "-q", "-c", config])
        for _ in range(self._rounds):
            self._take_next_poll()
            seconds, used = measured([*WEBMON, "render", "-q", "-c", self._config])
            whole.values.append(seconds)
            cpu.values.append(used.ru_utime + used.ru_stime)
            memory.values.append(used.ru_maxrss * 1024 / 1e6)
            said = json.loads(output(sys.executable, "-c", INSIDE, "render", "-q", "-c", self._live_config))
            inside.values.append(said["render"])
            for name, row in views.items():
                row.values.append(said[name])
            before = self._files()
            again.values.append(measured([*WEBMON, "render", "-q", "-c", self._config])[0])
            rewritten.values.append(len(self._files() ^ before))
        return [whole, cpu, inside, *views.values(), memory, again, rewritten]

    def _files(self) -> set[tuple[str, int, int]]:
        """Return what shows that a file has been written: its inode, and its time."""
        found = [(path, path.stat()) for path in self._site.rglob("*") if path.is_file()]
        return {(str(path), about.st_ino, about.st_mtime_ns) for path, about in found}

    def sizes(self) -> list[Row]:
        """Weigh the page, as it is and as nginx sends it."""
        with self._nginx() as nginx:
            plain = nginx.get("/gpus/")
            sent = nginx.get("/gpus/", accept_encoding="gzip")
        assert plain.status == sent.status == 200, nginx.log()
        assert sent.headers.get("content-encoding") == "gzip", sent.headers
        assert gzip.decompress(sent.body) == plain.body == (self._site / "index.html").read_bytes()
        files = [path for path in self._site.rglob("*") if path.is_file()]
        return [
            Row("index.html", "kB", 4000, [len(plain.body) / 1000]),
            Row("index.html, as nginx sends it, with gzip", "kB", 450, [len(sent.body) / 1000]),
            Row("index.html, gzip -6", "kB", None, [len(gzip.compress(plain.body, 6)) / 1000]),
            Row("the whole site", "kB", None, [sum(path.stat().st_size for path in files) / 1000]),
        ]

    def browser(self) -> list[Row]:
        """Load, type, switch and refresh in a real browser."""
        rows = {
            "paint": Row("Chromium: first paint", "ms"),
            "interactive": Row("Chromium: interactive", "ms", 800),
        }
        for view in VIEWS:
            rows[f"{view}, worst"] = Row(f"typing in the filter, {view}: the worst key", "ms", 50)
            rows[f"{view}, median"] = Row(f"typing in the filter, {view}: the median key", "ms")
        rows |= {
            "shown": Row("the worst key, until it is on the screen", "ms"),
            "to compact": Row("switching to the compact view", "ms"),
            "to table": Row("switching to the table", "ms"),
            "to cards": Row("switching back to cards", "ms"),
            "free": Row("ticking “free only”", "ms"),
            "sort": Row("sorting by free GPUs", "ms"),
            "idle": Row("refreshing, nothing new: longest blocking", "ms"),
            "refresh": Row("refreshing, all changed: longest blocking", "ms"),
        }
        with self._nginx() as nginx, Chromium(self._folder / "profile") as browser:
            url = f"http://127.0.0.1:{nginx.port}"
            try:
                for _ in range(self._rounds):
                    with opened(browser, f"{url}/gpus/") as page:
                        self._use(page, rows)
                    with opened(browser, f"{url}/live/") as page:
                        self._refresh(page, rows)
            except (MissingError, AssertionError) as missing:  # no such element, says Page
                self.problems.append(f"The rest was not measured: {missing}.")
        return list(rows.values())

    def _use(self, page: Page, rows: dict[str, Row]) -> None:
        paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
        rows["paint"].values.append(page.value(paint))
        rows["interactive"].values.append(page.value("bench.interactive()"))
        for view in VIEWS:
            if view != "cards":
                rows[f"to {view}"].values.append(clicked(page, f"#view-{view}"))
            taken = typed(page)
            rows[f"{view}, worst"].values.append(max(taken))
            rows[f"{view}, median"].values.append(statistics.median(taken))
        shown = "Math.max(0, ...bench.keys.filter(e => e.name === 'keydown').map(e => e.duration))"
        rows["shown"].values.append(page.value(shown))
        rows["to cards"].values.append(clicked(page, "#view-cards"))
        rows["free"].values.append(clicked(page, "#free"))
        clicked(page, "#free")
        rows["sort"].values.append(pressed(page, "#sort", "ArrowDown"))

    def _refresh(self, page: Page, rows: dict[str, Row]) -> None:
        page.value("bench.interactive()")
        page.value("bench.listen()")
        time.sleep(3)
        rows["idle"].values.append(page.value("bench.blocked()"))
        taken_at = self._take_next_poll()
        output(*WEBMON, "render", "-q", "-c", self._live_config, "--site", self._folder / "next")
        page.value("bench.listen()")
        move_site(self._folder / "next", self._live)
        wait_for(page, f"document.querySelector('time[datetime=\"{taken_at}\"]')", "a refresh of the page")
        time.sleep(1)
        if page.value("bench.late === undefined"):
            raise MissingError("the page is loaded anew instead of being refreshed")
        rows["refresh"].values.append(page.value("bench.blocked()"))

    def _take_next_poll(self) -> str:
        """Make the next poll the latest, and return its time."""
        poll = self._polls.pop(0)
        link = self._data / ".link"
        link.symlink_to(poll)
        link.replace(self._data / "latest")
        return datetime.strptime(poll.name, "%Y%m%dT%H%M%S.%f%z").strftime("%Y-%m-%dT%H:%M:%SZ")

    def _write_config(self, hosts: int, site: Path, refresh: int) -> Path:
        config = self._folder / f"{site.name}.ini"
        config.write_text(
            f'[common]\nuser = "nobody"\nhosts = "gpu[0001-{hosts:04d}].lab"\n'
            f'[data]\ndir = "{self._data}"\n[site]\ndir = "{site}"\nrefresh = {refresh}\n'
        )
        return config

    def _nginx(self) -> Nginx:
        deploy = (*WEBMON, "deploy", "nginx", "-c")
        blocks = [
            output(*deploy, self._config, "--path", "/gpus/"),
            output(*deploy, self._live_config, "--path", "/live/"),
        ]
        return Nginx(self._folder / "nginx", "\n".join(blocks))


def measured(command: list[str | Path]) -> tuple[float, resource.struct_rusage]:
    """Run a command and return its wall time, and what the kernel counts for it."""
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], list(map(str, command)), os.environ)
    _, status, used = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    assert status == 0, f"{command} failed"
    return seconds, used


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def move_site(new: Path, site: Path) -> None:
    """Replace file by file, the page last, so that nobody sees half of one."""
    files = [path for path in new.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.name == "index.html"):
        (site / path.relative_to(new)).parent.mkdir(parents=True, exist_ok=True)
        path.replace(site / path.relative_to(new))
    shutil.rmtree(new)


@contextmanager
def opened(browser: Chromium, url: str) -> Iterator[Page]:
    """A page in a window of its own, loaded with an empty cache, whose script is ready."""
    page = browser.open("about:blank", before=WATCH)
    page.call("Network.clearBrowserCache")
    page.go(url)
    try:
        wait_for(page, "bench.frame !== null", "html.js, which says that its script is ready")
        yield page
    finally:
        page.close()


def wait_for(page: Page, condition: str, what: str) -> None:
    deadline = time.monotonic() + 20
    while not page.value(f"Boolean({condition})"):
        if time.monotonic() > deadline:
            raise MissingError(f"the page has not got {what}")
        time.sleep(0.1)


def typed(page: Page) -> list[float]:
    """Type some words and take them back; return what each key took, in ms."""
    return [pressed(page, "#q", key) for word in WORDS for key in (*word, *["Backspace"] * len(word))]


def pressed(page: Page, selector: str, key: str) -> float:
    """Press a key in an element; return how long it took until what it brings was painted, in ms."""
    page.value(f"document.querySelector('{selector}').focus()")
    page.value("bench.await('keydown')")
    page.press(key)
    return page.value("bench.answer")


def clicked(page: Page, selector: str) -> float:
    """Click the label around an element, and return the same."""
    page.value("bench.await('click')")
    page.click(f"label:has({selector})")
    return page.value("bench.answer")


if __name__ == "__main__":
    os.environ["HOME"] = "/nonexistent"
    sys.exit(main())
