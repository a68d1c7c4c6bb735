// The pages are complete without this; with it they filter and sort, tell more of a GPU, and keep
// themselves up to date. What comes from a host is put into the page as text only.
"use strict";

const find = (selector, part = document) => part.querySelector(selector);
const findAll = (selector, part = document) => [...part.querySelectorAll(selector)];

// ---- The theme, before anything is painted ----

const root = document.documentElement;
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : darkSystem.matches);

function storage(use) {
  try {
    return use(localStorage);
  } catch {
    return null; // The choice lasts as long as the page.
  }
}

root.dataset.theme = storage((store) => store.getItem("webmon-theme")) || "";

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  // Whoever comes back to what the system says follows the system again.
  root.dataset.theme = darkSystem.matches === (theme === "dark") ? "" : theme;
  storage((store) => store.setItem("webmon-theme", root.dataset.theme));
  nameTheme();
}

function nameTheme() {
  const button = find("#theme");
  button.textContent = isDark() ? "light" : "dark";
  button.title = `switch to the ${button.textContent} theme`;
  button.hidden = false;
}

// ---- The index: what each host and GPU can be found and sorted by ----

let hosts = null; // what known() has read; nothing when the page has changed since
let ranks = null; // the order of the hosts, as the server has it

/** Return the hosts of the page in the server's order. */
function known() {
  if (hosts) return hosts;
  hosts = readHosts(find("main"));
  if (ranks) for (const host of hosts) host.rank = ranks.get(host.section.id);
  hosts.sort((one, other) => one.rank - other.rank);
  return hosts;
}

/** Read what the filter looks into a little at a time, before somebody types. */
function readAhead(from = 0) {
  if (from >= known().length) return;
  for (const host of hosts.slice(from, from + 50)) host.gpus.forEach((gpu) => gpu.words);
  setTimeout(readAhead, 20, from + 50);
}

function readHosts(main) {
  return findAll("#hosts > .host", main).map((section, rank) => {
    const text = (part) => find(`header ${part}`, section)?.textContent ?? "";
    const words = [text("h2"), text(".label"), text(".group"), section.className.replace("host", "")];
    const link = find("h2 a", section);
    const host = { section, rank, link, name: link.textContent, words: words.join(" ").toLowerCase() };
    host.gpus = findAll("li.gpu", section).map((cell, place) => new Gpu(cell, host, place));
    return host;
  });
}

const UNKNOWN = "\u2013";

/** A GPU, as its cell tells it. There may be thousands, so each part is read when it is asked for. */
class Gpu {
  constructor(cell, host, place) {
    Object.assign(this, { cell, host, place, link: cell.firstElementChild });
  }
  text(part) {
    return this.cell.getElementsByClassName(part)[0]?.textContent ?? "";
  }
  get index() {
    return this.link.firstChild.textContent;
  }
  get model() {
    return this.link.lastChild.data.trim();
  }
  get card() {
    return this.model + (find("i", this.link) ? " MIG" : "");
  }
  get isFree() {
    return this.cell.classList.contains("free");
  }
  /** Memory: 0 is what is used, 1 what there is. */
  memory(which) {
    const size = this.text("mem").split(/[/ ]/)[which];
    return isNaN(size) ? UNKNOWN : `${size}\u202fGB`;
  }
  get words() {
    this.read ??= `${this.host.words} ${this.card} ${this.text("state")} ${this.text("who")}`.toLowerCase();
    return this.read;
  }
}

function meanUse(host) {
  const uses = host.gpus.map((gpu) => parseFloat(gpu.text("use"))).filter((use) => !isNaN(use));
  return uses.length ? uses.reduce((sum, use) => sum + use) / uses.length : -1;
}

const ORDERS = {
  host: () => 0,
  free: (host) => -host.gpus.filter((gpu) => gpu.isFree).length,
  busy: (host) => -meanUse(host),
};

// ---- The table: every GPU a row ----

const users = (gpu) => gpu.cell.querySelector(".who b")?.textContent;

function program(gpu) {
  return users(gpu) === undefined ? "" : gpu.text("who").slice(users(gpu).length).trim();
}

function seconds(span) {
  const [count, unit] = span.split(" ");
  return count * { s: 1, min: 60, h: 3600, d: 86400 }[unit];
}

const reading = (gpu, unit) => gpu.text("more").match(`[\\d.]+\\s${unit}`)?.[0] ?? UNKNOWN;

// What a column shows, and what it is sorted by if that is not the text itself.
const COLUMNS = {
  host: [(gpu) => gpu.host.name, (_, gpu) => gpu.host.rank],
  gpu: [(gpu) => gpu.index, Number],
  model: [(gpu) => gpu.card],
  state: [(gpu) => gpu.text("state")],
  use: [(gpu) => gpu.text("use"), parseFloat],
  used: [(gpu) => gpu.memory(0), parseFloat],
  memory: [(gpu) => gpu.memory(1), parseFloat],
  temperature: [(gpu) => reading(gpu, "°C"), parseFloat],
  power: [(gpu) => reading(gpu, "W"), parseFloat],
  user: [(gpu) => users(gpu) ?? gpu.text("who"), (_, gpu) => users(gpu) ?? ""],
  program: [program],
  running: [(gpu) => gpu.text("for"), seconds],
};
// Thousands of rows are slow: the first come at once, some more by themselves, the rest on request.
const FIRST_ROWS = 80;
const MOST_ROWS = 480;
let rowsWanted = FIRST_ROWS;
let sorted = [];
let growing = 0;
const inWords = new Intl.Collator(undefined, { numeric: true }).compare;
const isNothing = (value) => value === "" || value === UNKNOWN || Number.isNaN(value);

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function sortedRows(gpus) {
  const [shown, worth = (text) => text] = COLUMNS[view.by];
  const turn = view.down ? -1 : 1;
  const rows = gpus.map((gpu) => ({ gpu, value: worth(shown(gpu), gpu) }));
  // What is not known comes last, either way.
  return rows.sort((a, b) => {
    if (isNothing(a.value) || isNothing(b.value)) return isNothing(a.value) - isNothing(b.value);
    const difference = typeof a.value === "number" ? a.value - b.value : inWords(a.value, b.value);
    return turn * difference || a.gpu.host.rank - b.gpu.host.rank || a.gpu.place - b.gpu.place;
  });
}

function makeRow(gpu, heads) {
  const links = { host: gpu.host.link, gpu: gpu.link };
  const row = make("tr", { className: gpu.cell.classList[1], id: `row-${gpu.link.getAttribute("href")}` });
  for (const { className, firstChild } of heads) {
    const name = firstChild.value;
    const inside = make(links[name] ? "a" : "span", {}, COLUMNS[name][0](gpu));
    if (links[name]) inside.setAttribute("href", links[name].getAttribute("href"));
    else if (name === "state") inside.className = name;
    row.append(make("td", { className }, inside));
  }
  return row;
}

function drawTable(main, gpus) {
  const list = find("#list", main);
  list.hidden = view.view !== "table";
  find("tbody", list).replaceChildren();
  if (list.hidden) return;
  for (const button of findAll("th button", list)) {
    if (button.value !== view.by) button.parentNode.removeAttribute("aria-sort");
    else button.parentNode.setAttribute("aria-sort", view.down ? "descending" : "ascending");
  }
  sorted = sortedRows(gpus);
  addRows(list);
}

function addRows(list) {
  const body = find("tbody", list);
  const heads = findAll("th", list);
  const rows = sorted.slice(body.rows.length, rowsWanted).map(({ gpu }) => makeRow(gpu, heads));
  body.append(...rows);
  const further = find("#further", list);
  const left = sorted.length - body.rows.length;
  further.hidden = left <= 0;
  further.textContent = `${Math.min(left, MOST_ROWS)} more`;
  clearTimeout(growing);
  if (left > 0 && rowsWanted < MOST_ROWS) growing = setTimeout(moreRows, 300, rowsWanted + FIRST_ROWS);
  return rows;
}

function moreRows(count) {
  if (view.view !== "table") return [];
  rowsWanted = count;
  return addRows(find("#list"));
}

// ---- The view: what is shown, and how; all of it is in the address ----

const view = readView();

function readView() {
  const given = new URLSearchParams(location.search);
  const one = (name, choices) => (choices.includes(given.get(name)) ? given.get(name) : choices[0]);
  const by = given.get("by") || "host";
  const column = by.replace(/^-/, "");
  return {
    q: given.get("q") || "",
    free: given.get("free") === "1",
    memory: Math.max(0, Number(given.get("memory")) || 0),
    models: given.getAll("model"),
    sort: one("sort", Object.keys(ORDERS)),
    view: one("view", ["cards", "compact", "table"]),
    by: Object.hasOwn(COLUMNS, column) ? column : "host",
    down: Object.hasOwn(COLUMNS, column) && by !== column,
  };
}

function writeView() {
  const given = new URLSearchParams();
  if (view.q.trim()) given.set("q", view.q.trim());
  if (view.free) given.set("free", "1");
  if (view.memory) given.set("memory", view.memory);
  for (const model of view.models) given.append("model", model);
  if (view.sort !== "host") given.set("sort", view.sort);
  if (view.view !== "cards") given.set("view", view.view);
  if (view.by !== "host" || view.down) given.set("by", (view.down ? "-" : "") + view.by);
  const query = given.size ? `?${given}` : "";
  history.replaceState(null, "", location.pathname + query + location.hash);
}

const asksGpu = () => view.free || view.memory > 0 || view.models.length > 0;

/** Tell whether hosts and cells are as the server has them. */
function isPlain() {
  return view.view !== "table" && view.sort === "host" && !view.q.trim() && !asksGpu();
}

/** Show what the view asks for, in the page or in one that is about to be swapped in. */
function arrange(main, hosts) {
  const found = find("#found", main);
  if (!found) return;
  const terms = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (gpu) =>
    (!view.free || gpu.isFree) &&
    (!view.memory || parseFloat(gpu.memory(1)) >= view.memory) &&
    (!view.models.length || view.models.includes(gpu.model)) &&
    terms.every((term) => gpu.words.includes(term));
  const narrowed = asksGpu() || terms.length > 0;
  const shown = [];
  let count = 0;
  let any = false;
  for (const host of hosts) {
    let some = !host.gpus.length && !asksGpu() && terms.every((term) => host.words.includes(term));
    const fitting = narrowed ? host.gpus.filter(fits) : host.gpus;
    some ||= fitting.length > 0;
    if (host.section.hidden === some) host.section.hidden = !some;
    // The cells of a host that is hidden can stay as they are.
    if (some) {
      for (const gpu of host.gpus) {
        const hidden = narrowed && !fitting.includes(gpu);
        if (gpu.cell.hidden !== hidden) gpu.cell.hidden = hidden;
      }
    }
    shown.push(...fitting);
    count += host.gpus.length;
    any ||= some;
  }
  main.dataset.view = view.view;
  find("#hosts", main).hidden = view.view === "table";
  find("#none", main).hidden = !narrowed || (view.view === "table" ? shown.length > 0 : any);
  found.textContent = narrowed ? `${shown.length} of ${count} GPUs shown` : "";
  order(find("#hosts", main), hosts);
  drawTable(main, shown);
}

function order(container, hosts) {
  const keyed = hosts.map((host) => [ORDERS[view.sort](host), host]);
  keyed.sort(([a, one], [b, other]) => a - b || one.rank - other.rank);
  let at = container.firstElementChild;
  for (const [, { section }] of keyed) {
    if (section === at) at = at.nextElementSibling;
    else container.insertBefore(section, at);
  }
}

const titles = new Map(); // the hover texts, by the address of the GPU

/** Make the controls work, and say what the view says. */
function equip(main) {
  for (const cell of findAll("li.gpu[title]", main)) {
    // It is for those without JavaScript; here it would lie over the details.
    titles.set(cell.firstElementChild.getAttribute("href"), cell.title);
    cell.removeAttribute("title");
  }
  for (const copy of findAll(".copy", main)) copy.hidden = false;
  const tools = find("#tools", main);
  if (!tools) return;
  tools.hidden = false;
  for (const tile of findAll(".tile", main)) {
    tile.disabled = false;
    tile.setAttribute("aria-pressed", view.models.includes(tile.value));
  }
  const { q, free, memory, sort, view: choice } = tools.elements;
  if (q.value.trim() !== view.q.trim()) q.value = view.q;
  free.checked = view.free;
  sort.value = view.sort;
  choice.value = view.view;
  const size = view.memory || "";
  if (![...memory.options].some((option) => option.value === String(size))) memory.append(new Option(`${size} GB`, size));
  memory.value = size;
}

function change(changes) {
  Object.assign(view, changes);
  rowsWanted = FIRST_ROWS;
  writeView();
  const main = find("main");
  equip(main);
  arrange(main, known());
  if (about && !linkTo(about)) close();
}

function listen(main) {
  main.addEventListener("input", ({ target }) => {
    const value = target.id === "free" ? target.checked : target.value;
    change({ [target.name || target.id]: target.id === "memory" ? Number(value) : value });
  });
  main.addEventListener("submit", (event) => event.preventDefault());
  main.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    if (button.matches(".tile")) {
      const others = view.models.filter((model) => model !== button.value);
      change({ models: others.length < view.models.length ? others : [...others, button.value] });
    } else if (button.matches("th button")) {
      change({ by: button.value, down: view.by === button.value && !view.down });
    } else if (button.id === "all") {
      change({ q: "", free: false, memory: 0, models: [] });
      find("#q").focus();
    } else if (button.id === "further") {
      const [first] = moreRows(rowsWanted + MOST_ROWS);
      find("a", first).focus();
    }
  });
}

// ---- The details of a GPU: on hover, on focus, and on a click or tap, which keeps them open ----

let box = null;
const pages = new Map(); // the host pages that have been asked for, by their address
let about = null; // the address of the GPU that the box is about
let isPinned = false;
let timer = 0;

function later(action, delay) {
  clearTimeout(timer);
  timer = setTimeout(action, delay);
}

// The link of the GPU that an element is part of; and the visible one of those to a GPU.
function linkOf(element) {
  return element.closest?.("li.gpu, #table tbody tr")?.querySelector("a[href*='.html#gpu']");
}

function linkTo(address) {
  return findAll(`main a[href="${CSS.escape(address)}"]`).find((link) => link.checkVisibility());
}

function open(link, pin = false) {
  clearTimeout(timer);
  const address = link.getAttribute("href");
  isPinned = pin;
  if (about !== address || box.hidden) {
    about = address;
    box.hidden = false;
    show(null);
    load();
  }
  if (pin) box.focus({ preventScroll: true });
}

function close() {
  clearTimeout(timer);
  if (!about) return;
  const link = box.contains(document.activeElement) ? linkTo(about) : null;
  about = null;
  isPinned = false;
  box.hidden = true;
  link?.focus({ preventScroll: true });
}

async function load() {
  const address = about;
  const [path, place] = address.split("#");
  try {
    if (!pages.has(path)) pages.set(path, get(path).then(parse));
    const page = await pages.get(path);
    if (about === address) show(page, place);
  } catch (error) {
    pages.delete(path);
    if (about === address) show(null, place, `The rest can't be loaded: ${error.message}.`);
  }
}

/** Fill the box from a host's page; without one, with what the overview knows. */
function show(page, place, problem = "") {
  const link = linkTo(about);
  if (!link) return close();
  const host = known().find(({ link }) => link.getAttribute("href") === about.split("#")[0]);
  const copyOf = (id) => page?.getElementById(id)?.cloneNode(true) ?? "";
  const cross = make("button", { type: "button", className: "close", title: "close" }, "×");
  const head = make("p", { className: "where" }, host.link.cloneNode(true), copyOf("ssh"), cross);
  const short = make("p", { className: "short" }, [problem, titles.get(about)].join("\n").trim());
  const fresh = make("div", {}, head, copyOf(place) || short);
  for (const part of findAll("[id]", fresh)) part.removeAttribute("id");
  box.setAttribute("aria-label", `${host.name}, GPU ${about.split("#gpu")[1]}`);
  equip(fresh);
  tellAges(fresh);
  morphChildren(box, fresh);
  position(link);
}

function position(link) {
  const cell = link.closest("li, tr").getBoundingClientRect();
  const below = innerHeight - cell.bottom;
  const isBelow = below >= box.offsetHeight + 12 || below >= cell.top;
  const left = Math.max(8, Math.min(cell.left, root.clientWidth - box.offsetWidth - 8));
  const top = isBelow ? cell.bottom + 4 : Math.max(4, cell.top - box.offsetHeight - 4);
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${top + scrollY}px`;
}

function listenForDetails() {
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "mouse" || isPinned) return;
    const link = linkOf(target);
    if (box.contains(target)) clearTimeout(timer);
    else if (link) later(() => open(link), about ? 60 : 180);
    else later(close, 300);
  });
  document.addEventListener("focusin", ({ target }) => {
    if (box.contains(target)) return;
    const link = linkOf(target);
    if (link === target && link.matches(":focus-visible")) open(link);
    else if (about && !isPinned && !target.matches("body")) close();
  });
  document.addEventListener("click", (event) => {
    const { target } = event;
    if (target.closest(".close")) return close();
    if (target.closest(".copy")) return copy(target.closest(".copy"));
    const link = linkOf(target);
    if (!link || target.closest("a, button")?.matches(":not([href*='#gpu'])")) {
      if (!box.contains(target)) close();
    } else if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (isPinned && about === link.getAttribute("href")) close();
      else open(link, true);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && about) close();
  });
  box.addEventListener("focusout", ({ relatedTarget }) => {
    if (isPinned && relatedTarget && !box.contains(relatedTarget)) close();
  });
}

// ---- Copy ----

async function copy(button) {
  const label = button.firstChild;
  try {
    await navigator.clipboard.writeText(button.value);
    label.data = "copied ";
  } catch {
    // There is no navigator.clipboard on plain http.
    label.data = copyBySelection(button) ? "copied " : "can't copy ";
  }
  setTimeout(() => (label.data = "copy "), 2000);
}

function copyBySelection(button) {
  const area = make("textarea", { value: button.value, className: "hide", readOnly: true });
  button.after(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  button.focus({ preventScroll: true });
  return isCopied;
}

// ---- Refresh: fetch the page in the background and swap in what has changed ----

const every = Number(root.dataset.refresh) * 1000;
let askedAt = Date.now();
let isAsking = false;
let lost = ""; // why the server can't be reached
let shownTag = "";

async function get(path) {
  if (location.protocol === "file:") throw new Error("this page was opened from a folder");
  const answer = await fetch(path, { cache: "no-cache", signal: AbortSignal.timeout(20000) }).catch((error) => {
    throw new Error(error.name === "TimeoutError" ? "the server does not answer" : "the server can't be reached");
  });
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  return answer;
}

async function parse(answer) {
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

async function refresh() {
  if (document.hidden || isAsking) return;
  isAsking = true;
  askedAt = Date.now();
  try {
    const answer = await get(location.pathname);
    const tag = answer.headers.get("etag");
    if (!tag || tag !== shownTag) swap(await parse(answer));
    shownTag = tag;
    lost = "";
  } catch (error) {
    lost = error.message;
  }
  isAsking = false;
  tell();
}

function swap(next) {
  if (!find("#fresh", next)) throw new Error("the server answers with another page");
  const assets = (page) => findAll("[rel=stylesheet], [src]", page).map((part) => part.outerHTML).join();
  // Another version of webmon: its page wants its own script and style.
  if (assets(next) !== assets(document)) return location.reload();
  const main = find("main");
  const nextMain = find("main", next);
  const focused = document.activeElement;
  equip(nextMain);
  ranks = new Map(findAll("#hosts > .host", nextMain).map((section, rank) => [section.id, rank]));
  arrange(nextMain, isPlain() ? [] : readHosts(nextMain));
  tellAges(nextMain);
  morph(main, nextMain);
  morph(find("#fresh"), find("#fresh", next));
  equip(main);
  hosts = null;
  setTimeout(readAhead);
  title = next.title;
  icon = find("link[rel=icon]", next).getAttribute("href");
  if (focused.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  pages.clear();
  if (about) load();
}

/** Make an element like another one, touching only what differs: focus, scroll and selection stay. */
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName) return old.replaceWith(document.importNode(fresh, true));
  if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = fresh.data);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  morphChildren(old, fresh);
}

function morphChildren(old, fresh) {
  const wanted = new Set([...fresh.children].map((child) => child.id));
  const named = new Map();
  for (const child of [...old.children]) {
    if (child.id && !wanted.has(child.id)) child.remove();
    else if (child.id) named.set(child.id, child);
  }
  let at = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const match = want.id ? named.get(want.id) : at?.id ? null : at;
    if (match && match === at) at = at.nextSibling;
    else old.insertBefore(match || document.adoptNode(want), at);
    if (match) morph(match, want);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

// ---- Ages, and what is wrong: old data, a lost server ----

let title = "";
let icon = "";

function age(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return "just now";
}

function tellAges(part) {
  for (const time of findAll("time", part)) {
    const text = age(time.dateTime);
    if (time.textContent !== text) time.textContent = text;
    const local = new Date(time.dateTime).toLocaleString();
    if (time.title !== local) time.title = local;
  }
}

function tell() {
  const fresh = find("#fresh");
  const taken = find("time", fresh).dateTime;
  const isStale = Date.now() - Date.parse(taken) > Number(fresh.dataset.staleAfter) * 1000;
  const isOld = isStale || lost !== "";
  if (lost && find("#why").textContent !== lost) find("#why").textContent = lost;
  find("#lost").hidden = !lost;
  find("#stale").hidden = !isStale;
  for (const time of findAll(".warning time")) time.dateTime = taken;
  fresh.classList.toggle("old", isOld);
  tellAges(document);
  const link = find("link[rel=icon]");
  const shown = isOld ? link.dataset.old : icon;
  if (link.getAttribute("href") !== shown) link.setAttribute("href", shown);
  document.title = isOld ? `(old) ${title}` : title;
}

// ---- Start ----

document.addEventListener("DOMContentLoaded", () => {
  const main = find("main");
  title = document.title;
  icon = find("link[rel=icon]").getAttribute("href");
  nameTheme();
  find("#theme").addEventListener("click", switchTheme);
  darkSystem.addEventListener("change", nameTheme);
  equip(main);
  if (isPlain()) main.dataset.view = view.view;
  else arrange(main, known());
  setTimeout(readAhead);
  listen(main);
  box = find("#details");
  listenForDetails();
  addEventListener("beforeprint", () => moreRows(Infinity));
  tell();
  setInterval(tell, 5000);
  if (location.protocol === "file:") setTimeout(() => location.reload(), every);
  else setInterval(refresh, every);
  document.addEventListener("visibilitychange", () => {
    if (Date.now() - askedAt >= every) refresh();
  });
  root.classList.add("js");
});
