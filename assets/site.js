// webmon's one script. The pages are complete without it; with it they filter and sort, tell more of
// a GPU, and keep themselves up to date. Whatever comes from a host is put into the page as text only.
"use strict";

// ---- The theme, before anything is painted ----

const root = document.documentElement;
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = () => (darkSystem.matches ? "dark" : "light");
const otherTheme = () => ((root.dataset.theme || systemTheme()) === "dark" ? "light" : "dark");

function storage(use) {
  try {
    return use(localStorage);
  } catch {
    return null; // Without storage the choice lasts as long as the page.
  }
}

const chosen = storage((store) => store.getItem("webmon-theme"));
if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

function switchTheme() {
  const theme = otherTheme();
  // Whoever comes back to what the system says follows the system again.
  if (theme === systemTheme()) {
    delete root.dataset.theme;
    storage((store) => store.removeItem("webmon-theme"));
  } else {
    root.dataset.theme = theme;
    storage((store) => store.setItem("webmon-theme", theme));
  }
  nameTheme();
}

function nameTheme() {
  const button = document.getElementById("theme");
  button.textContent = otherTheme();
  button.title = `switch to the ${otherTheme()} theme`;
  button.hidden = false;
}

// ---- The index: what each host and GPU can be found and sorted by ----

const titles = new Map(); // the hover texts, by the address of the GPU

function readHosts(main) {
  return [...main.querySelectorAll("#hosts > .host")].map((section, rank) => {
    const text = (part) => section.querySelector(`header ${part}`)?.textContent ?? "";
    const status = section.className.replace("host", "");
    const words = [text("h2"), text(".label"), text(".group"), status].join(" ").toLowerCase();
    const host = { section, rank, words, name: text("h2"), link: section.querySelector("h2 a") };
    const cells = [...section.querySelectorAll("li.gpu")];
    host.gpus = cells.map((cell, place) => readGpu(cell, host, place));
    return host;
  });
}

function readGpu(cell, host, place) {
  const link = cell.firstElementChild;
  const parts = {};
  for (const part of cell.children) parts[part.className.split(" ", 1)[0]] = part;
  const text = (name) => parts[name]?.textContent ?? "";
  if (cell.title) {
    // It is for those without JavaScript; here it would lie over the details.
    titles.set(link.getAttribute("href"), cell.title);
    cell.removeAttribute("title");
  }
  const [used, total] = text("mem").split("/").map(parseFloat);
  return {
    cell, link, host, place, parts, text, used, total,
    model: link.lastChild.data.trim(),
    words: `${host.words} ${link.textContent.slice(link.firstChild.textContent.length)} ${text("state")} ${text("who")}`.toLowerCase(),
    isFree: cell.classList.contains("free"),
  };
}

function meanUse(host) {
  const known = host.gpus.map((gpu) => parseFloat(gpu.text("use"))).filter((use) => !isNaN(use));
  return known.length ? known.reduce((sum, use) => sum + use, 0) / known.length : -1;
}

const ORDERS = {
  host: () => 0,
  free: (host) => -host.gpus.filter((gpu) => gpu.isFree).length,
  busy: (host) => -meanUse(host),
};

// ---- The table: every GPU a row ----

const UNKNOWN = "\u2013";
const gigabytes = (size) => (isNaN(size) ? UNKNOWN : `${size}\u202fGB`);
const reading = (gpu, unit) => gpu.text("more").match(`[\\d.]+\\s${unit}`)?.[0] ?? UNKNOWN;
const users = (gpu) => gpu.parts.who?.querySelector("b")?.textContent;

function program(gpu) {
  return users(gpu) === undefined ? "" : gpu.text("who").slice(users(gpu).length).trim();
}

function seconds(span) {
  const [count, unit] = span.split(" ");
  return count * { s: 1, min: 60, h: 3600, d: 86400 }[unit];
}

// What a column is called, what it shows, and what it is sorted by: a number, or a text as it is read.
const COLUMNS = {
  host: ["host", (gpu) => gpu.host.name, (gpu) => gpu.host.rank],
  gpu: ["GPU", (gpu) => gpu.link.firstChild.textContent, (gpu) => gpu.place],
  model: ["model", (gpu) => gpu.link.textContent.slice(gpu.link.firstChild.textContent.length).trim()],
  state: ["state", (gpu) => gpu.text("state")],
  use: ["utilization", (gpu) => gpu.text("use"), (gpu) => parseFloat(gpu.text("use"))],
  used: ["used", (gpu) => gigabytes(gpu.used), (gpu) => gpu.used],
  memory: ["memory", (gpu) => gigabytes(gpu.total), (gpu) => gpu.total],
  temperature: ["temp.", (gpu) => reading(gpu, "°C"), (gpu) => parseFloat(reading(gpu, "°C"))],
  power: ["power", (gpu) => reading(gpu, "W"), (gpu) => parseFloat(reading(gpu, "W"))],
  user: ["users", (gpu) => users(gpu) ?? gpu.text("who"), (gpu) => users(gpu) ?? ""],
  program: ["program", program],
  running: ["running", (gpu) => gpu.text("for"), (gpu) => seconds(gpu.text("for"))],
};
const BATCH = 250;
let rowsWanted = BATCH;
const inWords = new Intl.Collator(undefined, { numeric: true }).compare;
const isNothing = (value) => value === "" || value === UNKNOWN || Number.isNaN(value);

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function sortedRows(gpus) {
  const [, shown, sortable = shown] = COLUMNS[view.by];
  const turn = view.down ? -1 : 1;
  const rows = gpus.map((gpu) => ({ gpu, value: sortable(gpu) }));
  // What is not known comes last, whichever way it is sorted.
  return rows.sort((a, b) => {
    if (isNothing(a.value) || isNothing(b.value)) return isNothing(a.value) - isNothing(b.value);
    const difference = typeof a.value === "number" ? a.value - b.value : inWords(a.value, b.value);
    return turn * difference || a.gpu.host.rank - b.gpu.host.rank || a.gpu.place - b.gpu.place;
  });
}

function makeRow(gpu) {
  const row = make("tr", { className: gpu.cell.classList[1] });
  for (const [name, [, shown]] of Object.entries(COLUMNS)) {
    const text = shown(gpu);
    const target = { host: gpu.host.link, gpu: gpu.link }[name];
    const content = target ? make("a", { href: target.getAttribute("href") }, text) : text;
    const inside = name === "state" ? make("span", { className: "state" }, text) : content;
    row.append(make("td", { className: `c-${name}` }, inside));
  }
  row.id = `row-${gpu.link.getAttribute("href")}`;
  return row;
}

function makeHead() {
  const row = make("tr", {});
  for (const [name, [title]] of Object.entries(COLUMNS)) {
    const head = make("th", { scope: "col", className: `c-${name}` }, make("button", { type: "button", value: name }, title));
    if (name === view.by) head.setAttribute("aria-sort", view.down ? "descending" : "ascending");
    row.append(head);
  }
  return make("thead", {}, row);
}

function drawTable(main, gpus) {
  const list = main.querySelector("#list");
  list.hidden = view.view !== "table";
  if (list.hidden) return list.replaceChildren();
  const rows = sortedRows(gpus).slice(0, rowsWanted).map(({ gpu }) => makeRow(gpu));
  const table = make("table", { id: "table" }, makeHead(), make("tbody", {}, ...rows));
  const left = gpus.length - rows.length;
  const further = make("button", { type: "button", id: "further", hidden: left <= 0 }, `${left} more`);
  const drawn = make("div", { id: "list" }, table, further);
  morphChildren(list, drawn);
}

// ---- The view: what is shown, and how; all of it is in the address ----

const VIEWS = ["cards", "compact", "table"];
const view = readView();
let hosts = [];

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
    view: one("view", VIEWS),
    by: column in COLUMNS ? column : "host",
    down: column in COLUMNS && by.startsWith("-"),
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
  storage(() => history.replaceState(null, "", location.pathname + query + location.hash));
}

/** Show what the view asks for, in the page or in one that is about to be swapped in. */
function arrange(main, hosts) {
  const found = main.querySelector("#found");
  if (!found) return;
  const terms = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  const asksGpu = view.free || view.memory > 0 || view.models.length > 0;
  const fits = (gpu) =>
    (!view.free || gpu.isFree) &&
    (!view.memory || gpu.total >= view.memory) &&
    (!view.models.length || view.models.includes(gpu.model)) &&
    terms.every((term) => gpu.words.includes(term));
  const shown = [];
  let count = 0;
  let any = false;
  for (const host of hosts) {
    let some = !host.gpus.length && !asksGpu && terms.every((term) => host.words.includes(term));
    for (const gpu of host.gpus) {
      const wanted = fits(gpu);
      if (gpu.cell.hidden === wanted) gpu.cell.hidden = !wanted;
      if (wanted) shown.push(gpu);
      some ||= wanted;
    }
    if (host.section.hidden === some) host.section.hidden = !some;
    count += host.gpus.length;
    any ||= some;
  }
  const narrowed = asksGpu || terms.length > 0;
  main.dataset.view = view.view;
  main.querySelector("#hosts").hidden = view.view === "table";
  main.querySelector("#none").hidden = any || !narrowed;
  found.textContent = narrowed ? `${shown.length} of ${count} GPUs shown` : "";
  order(main.querySelector("#hosts"), hosts);
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

/** Make the controls work, and say what the view says. */
function equip(main) {
  for (const copy of main.querySelectorAll(".copy")) copy.hidden = false;
  const tools = main.querySelector("#tools");
  if (!tools) return;
  tools.hidden = false;
  for (const tile of main.querySelectorAll(".tile")) {
    tile.disabled = false;
    tile.setAttribute("aria-pressed", view.models.includes(tile.value));
  }
  const { q, free, memory, sort } = tools.elements;
  if (q.value.trim() !== view.q.trim()) q.value = view.q;
  free.checked = view.free;
  sort.value = view.sort;
  tools.querySelector(`#view-${view.view}`).checked = true;
  const size = view.memory || "";
  if (![...memory.options].some((option) => option.value === String(size))) memory.append(new Option(`${size} GB`, size));
  memory.value = size;
}

function change(changes) {
  Object.assign(view, changes);
  rowsWanted = BATCH;
  writeView();
  const main = document.querySelector("main");
  equip(main);
  arrange(main, hosts);
  if (about && !linkTo(about)) close();
}

function listen(main) {
  main.addEventListener("input", ({ target }) => {
    if (target.id === "q") change({ q: target.value });
    else if (target.id === "free") change({ free: target.checked });
    else if (target.id === "memory") change({ memory: Number(target.value) });
    else if (target.id === "sort") change({ sort: target.value });
    else if (target.name === "view") change({ view: target.value });
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
      document.getElementById("q").focus();
    } else if (button.id === "further") {
      moreRows(rowsWanted + BATCH);
    }
  });
}

function moreRows(count) {
  rowsWanted = count;
  arrange(document.querySelector("main"), hosts);
}

// ---- The details of a GPU: on hover, on focus, and on a click or tap, which keeps them open ----

const box = make("div", { id: "details", hidden: true, tabIndex: -1 });
box.setAttribute("role", "dialog");
const pages = new Map(); // the host pages that have been asked for, by their address
let about = null; // the address of the GPU that the box is about
let isPinned = false;
let timer = 0;

function later(action, delay) {
  clearTimeout(timer);
  timer = setTimeout(action, delay);
}

/** Return the link of the GPU that an element is part of. */
function linkOf(element) {
  return element.closest?.("li.gpu, #table tbody tr")?.querySelector("a[href*='.html#gpu']");
}

/** Return the visible link of a GPU. */
function linkTo(address) {
  const all = document.querySelectorAll(`main a[href="${CSS.escape(address)}"]`);
  return [...all].find((link) => link.checkVisibility());
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
  box.classList.toggle("pinned", pin);
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
  const host = hosts.find((host) => host.link.getAttribute("href") === about.split("#")[0]);
  const head = make("p", { className: "where" }, make("a", { href: host.link.getAttribute("href") }, host.name));
  const ssh = page?.getElementById("ssh");
  if (ssh) head.append(document.importNode(ssh, true));
  head.append(make("button", { type: "button", className: "close", title: "close" }, "×"));
  const fresh = make("div", {}, head);
  const sheet = page?.getElementById(place);
  if (sheet) fresh.append(document.importNode(sheet, true));
  else fresh.append(make("p", { className: "short" }, problem, problem && "\n", titles.get(about) ?? (page ? "It is no longer there." : "")));
  for (const part of fresh.querySelectorAll("[id]")) part.removeAttribute("id");
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
  const isCopied = await toClipboard(button.value).catch(() => byHand(button));
  const label = button.firstChild;
  label.data = isCopied ? "copied " : "can't copy ";
  setTimeout(() => (label.data = "copy "), 2000);
}

async function toClipboard(text) {
  await navigator.clipboard.writeText(text); // not there on plain http: byHand() then
  return true;
}

function byHand(button) {
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
let lost = null; // why the server can't be reached
let shownTag = null;

async function get(path) {
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
  if (document.hidden) return;
  askedAt = Date.now();
  try {
    const answer = await get(location.pathname);
    const tag = answer.headers.get("etag");
    if (!tag || tag !== shownTag) swap(await parse(answer));
    shownTag = tag;
    lost = null;
  } catch (error) {
    lost = error.message;
  }
  tell();
}

function swap(next) {
  if (!next.getElementById("fresh")) throw new Error("the server answers with another page");
  const script = (page) => page.querySelector("script[src]")?.getAttribute("src");
  // Another version of webmon: its page wants its own script.
  if (script(next) !== script(document)) return location.reload();
  const main = document.querySelector("main");
  const nextMain = next.querySelector("main");
  const focused = document.activeElement;
  equip(nextMain);
  const nextHosts = readHosts(nextMain);
  arrange(nextMain, nextHosts);
  tellAges(nextMain);
  const rank = new Map(nextHosts.map((host) => [host.section.id, host.rank]));
  morph(main, nextMain);
  morph(document.getElementById("fresh"), next.getElementById("fresh"));
  hosts = readHosts(main);
  for (const host of hosts) host.rank = rank.get(host.section.id);
  hosts.sort((one, other) => one.rank - other.rank);
  equip(main);
  title = next.title;
  icon = next.querySelector("link[rel=icon]").getAttribute("href");
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
let stale = null;

function age(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return "just now";
}

function tellAges(part) {
  for (const time of part.querySelectorAll("time")) {
    const text = age(time.dateTime);
    if (time.textContent !== text) time.textContent = text;
    const local = new Date(time.dateTime).toLocaleString();
    if (time.title !== local) time.title = local;
  }
}

function tell() {
  const fresh = document.getElementById("fresh");
  const taken = fresh.querySelector("time").dateTime;
  const isOld = (Date.now() - Date.parse(taken)) / 1000 > Number(fresh.dataset.staleAfter);
  for (const time of stale.querySelectorAll("time")) time.dateTime = taken;
  const isLost = lost !== null;
  const banner = document.getElementById("lost");
  if (isLost && banner.dataset.why !== lost) {
    banner.dataset.why = lost;
    const when = make("time", { dateTime: taken });
    banner.replaceChildren(`Out of touch: ${lost}. What is shown here is from `, when, "; it is tried again by itself.");
  }
  banner.querySelector("time")?.setAttribute("datetime", taken);
  banner.hidden = !isLost;
  if (!isLost) delete banner.dataset.why;
  fresh.classList.toggle("old", isOld || isLost);
  stale.hidden = !isOld;
  tellAges(document);
  const link = document.querySelector("link[rel=icon]");
  const shown = isOld || isLost ? link.dataset.old : icon;
  if (link.getAttribute("href") !== shown) link.setAttribute("href", shown);
  const said = isOld || isLost ? `(old) ${title}` : title;
  if (document.title !== said) document.title = said;
}

// ---- Start ----

document.addEventListener("DOMContentLoaded", () => {
  const main = document.querySelector("main");
  title = document.title;
  icon = document.querySelector("link[rel=icon]").getAttribute("href");
  stale = document.getElementById("stale");
  nameTheme();
  document.getElementById("theme").addEventListener("click", switchTheme);
  darkSystem.addEventListener("change", nameTheme);
  hosts = readHosts(main);
  equip(main);
  arrange(main, hosts);
  listen(main);
  document.body.append(box);
  listenForDetails();
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button.copy");
    if (button) copy(button);
  });
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
