// The pages are complete without this. What comes from a host is put into them as text only.
"use strict";

const find = (selector, part = document) => part.querySelector(selector);
const findAll = (selector, part = document) => [...part.querySelectorAll(selector)];
const on = (event, action) => document.addEventListener(event, action);
const to = (link) => link.getAttribute("href");
const focus = (element) => element?.focus({ preventScroll: true });

// ---- The theme, before anything is painted ----

const root = document.documentElement;
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : darkSystem.matches);

function storage(use) {
  try {
    return use(localStorage);
  } catch {
    return null;
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
  find("#theme").textContent = isDark() ? "light" : "dark";
  find("#theme").hidden = false;
}

// ---- The index of hosts and GPUs ----

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

/** Read what the filter looks into, bit by bit. */
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

/** A GPU. There may be thousands, so each part of its cell is read when it is asked for. */
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
  /** Memory: 0 is what is used, 1 what there is. */
  memory(which) {
    const size = this.text("mem").split(/[/ ]/)[which];
    return isNaN(size) ? UNKNOWN : `${size}\u202fGB`;
  }
  get words() {
    return (this.read ??= `${this.host.words} ${this.card} ${this.text("state")} ${this.text("who")}`.toLowerCase());
  }
}

function meanUse(host) {
  const uses = host.gpus.map((gpu) => parseFloat(gpu.text("use"))).filter((use) => !isNaN(use));
  return uses.length ? uses.reduce((sum, use) => sum + use) / uses.length : -1;
}

const ORDERS = {
  host: () => 0,
  free: (host) => -findAll(".free", host.section).length,
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

// What a column shows, and what it is sorted by if that is not the text.
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
// Rows are slow: the first come at once, some more by themselves, the rest on request.
const FIRST_ROWS = 40;
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
  const [shown, worth = (text) => text] = COLUMNS[view.by.replace("-", "")];
  const turn = view.by.startsWith("-") ? -1 : 1;
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
  const row = make("tr", { className: gpu.cell.classList[1], id: `row-${to(gpu.link)}` });
  for (const { className, firstChild } of heads) {
    const name = firstChild.value;
    const inside = make(links[name] ? "a" : "span", {}, COLUMNS[name][0](gpu));
    if (links[name]) inside.setAttribute("href", to(links[name]));
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
    const turn = { [view.by]: "ascending", [view.by.slice(1)]: "descending" }[button.value];
    if (turn) button.parentNode.setAttribute("aria-sort", turn);
    else button.parentNode.removeAttribute("aria-sort");
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

// ---- The view: all of it is in the address ----

// What each part is as a rule, and what else it may be.
const VIEW = {
  q: ["", /./],
  free: ["", /^1$/],
  memory: ["", /^[\d.]+$/],
  sort: ["host", /^(free|busy)$/],
  view: ["cards", /^(compact|table)$/],
  by: ["host", RegExp(`^-?(${Object.keys(COLUMNS).join("|")})$`)],
};
const view = readView();

function readView() {
  const given = new URLSearchParams(location.search);
  const view = { models: given.getAll("model") };
  for (const [name, [usual, fit]] of Object.entries(VIEW)) {
    const value = given.get(name) ?? "";
    view[name] = fit.test(value) ? value : usual;
  }
  return view;
}

function writeView() {
  const given = new URLSearchParams();
  for (const [name, [usual]] of Object.entries(VIEW)) if (view[name].trim() !== usual) given.set(name, view[name].trim());
  for (const model of view.models) given.append("model", model);
  const query = given.size ? `?${given}` : "";
  history.replaceState(null, "", location.pathname + query + location.hash);
}

/** Show what the view asks for, in the page or in the next one. */
function arrange(main, hosts) {
  const found = find("#found", main);
  if (!found) return;
  const terms = view.q.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (gpu) =>
    (!view.free || gpu.cell.matches(".free")) &&
    (!view.memory || parseFloat(gpu.memory(1)) >= view.memory) &&
    (!view.models.length || view.models.includes(gpu.model)) &&
    terms.every((term) => gpu.words.includes(term));
  const asksGpu = view.free || view.memory || view.models.length > 0;
  const narrowed = asksGpu || terms.length > 0;
  const shown = [];
  const late = [];
  let count = 0;
  let any = false;
  cancelAnimationFrame(settling);
  for (const host of hosts) {
    const fitting = narrowed ? host.gpus.filter(fits) : host.gpus;
    const bare = !host.gpus.length && !asksGpu && terms.every((term) => host.words.includes(term));
    if (fitting.length || bare) late.push([host, fitting]);
    else host.section.hidden = true;
    shown.push(...fitting);
    count += host.gpus.length;
    any ||= fitting.length > 0 || bare;
  }
  if (view.view !== "table") settle(late, main.isConnected ? HOSTS_AT_ONCE[view.view] : Infinity);
  main.dataset.view = view.view;
  find("#hosts", main).hidden = view.view === "table";
  find("#none", main).hidden = !narrowed || (view.view === "table" ? shown.length > 0 : any);
  found.textContent = narrowed ? `${shown.length} of ${count} GPUs shown` : "";
  order(find("#hosts", main), hosts);
  drawTable(main, shown);
}

// To show a host takes time: those that fill a window come at once, the others frame by frame.
const HOSTS_AT_ONCE = { cards: 12, compact: 200 };
let settling = 0;

function settle(hosts, most) {
  let touched = 0;
  for (const [at, [{ section, gpus }, fitting]] of hosts.entries()) {
    if (touched > most) {
      settling = requestAnimationFrame(() => settle(hosts.slice(at), most));
      return;
    }
    const wrong = gpus.filter((gpu) => gpu.cell.hidden === fitting.includes(gpu));
    for (const gpu of wrong) gpu.cell.hidden = !gpu.cell.hidden;
    touched += section.hidden || wrong.length > 0;
    if (section.hidden) section.hidden = false;
  }
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

/** Make a page that has just come work. */
function equip(main) {
  for (const cell of findAll("li.gpu[title]", main)) {
    // Here it would lie over the details.
    titles.set(to(cell.firstElementChild), cell.title);
    cell.removeAttribute("title");
  }
  for (const copy of findAll(".copy", main)) copy.hidden = false;
  for (const tile of findAll(".tile", main)) tile.disabled = false;
  reflect(main);
}

/** Let the controls say what the view says. */
function reflect(main) {
  const tools = find("#tools", main);
  if (!tools) return;
  tools.hidden = false;
  for (const tile of findAll(".tile", main)) {
    tile.setAttribute("aria-pressed", view.models.includes(tile.value));
  }
  const { q, free, memory, sort, view: choice } = tools.elements;
  if (q.value.trim() !== view.q.trim()) q.value = view.q;
  free.checked = view.free !== "";
  sort.value = view.sort;
  choice.value = view.view;
  memory.value = view.memory;
  if (!memory.value && view.memory) memory.add(new Option(`${view.memory} GB`, view.memory, true, true));
}

function change(changes) {
  Object.assign(view, changes);
  rowsWanted = FIRST_ROWS;
  writeView();
  const main = find("main");
  reflect(main);
  arrange(main, known());
  if (about && !linkTo(about)) close();
}

function listen(main) {
  main.addEventListener("input", ({ target }) => {
    change({ [target.name || target.id]: target.id !== "free" ? target.value : target.checked ? "1" : "" });
  });
  main.addEventListener("submit", (event) => event.preventDefault());
  main.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (!button) return;
    if (button.matches(".tile")) {
      const models = new Set(view.models);
      if (!models.delete(button.value)) models.add(button.value);
      change({ models: [...models] });
    } else if (button.matches("th button")) {
      change({ by: (view.by === button.value ? "-" : "") + button.value });
    } else if (button.id === "all") {
      change({ q: "", free: "", memory: "", models: [] });
      find("#q").focus();
    } else if (button.id === "further") {
      const [first] = moreRows(rowsWanted + MOST_ROWS);
      find("a", first).focus();
    }
  });
}

// ---- The details of a GPU: on hover, on focus; a click or tap keeps them open ----

let box = null;
const pages = new Map(); // the host pages that have been asked for, by their address
let about = null; // the address of the GPU that the box is about
let isPinned = false;
let isClosing = false;
let timer = 0;

function later(action, delay) {
  clearTimeout(timer);
  timer = setTimeout(action, delay);
}

// The link of the GPU that an element is part of; the visible one to a GPU.
function linkOf(element) {
  return element.closest?.("li.gpu, #table tbody tr")?.querySelector("a[href*='.html#gpu']");
}

function linkTo(address) {
  return findAll(`main a[href="${CSS.escape(address)}"]`).find((link) => link.checkVisibility());
}

function open(link, pin = false) {
  clearTimeout(timer);
  const address = to(link);
  isPinned = pin;
  if (about !== address || box.hidden) {
    about = address;
    box.hidden = false;
    show(null);
    load();
  }
  if (pin) focus(box);
}

function close() {
  clearTimeout(timer);
  if (!about) return;
  const link = box.contains(document.activeElement) ? linkTo(about) : null;
  about = null;
  isPinned = false;
  box.hidden = true;
  isClosing = true;
  focus(link);
  isClosing = false;
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
    if (about === address && !find(".sheet", box)) show(null, place, `The rest can't be loaded: ${error.message}.`);
  }
}

/** Fill the box from a host's page, or else with what the overview knows. */
function show(page, place, problem = "") {
  const link = linkTo(about);
  if (!link) return close();
  const host = known().find(({ link }) => to(link) === about.split("#")[0]);
  const copyOf = (id) => page?.getElementById(id)?.cloneNode(true) ?? "";
  const cross = make("button", { type: "button", className: "close", title: "close" }, "×");
  const head = make("p", { className: "where" }, host.link.cloneNode(true), copyOf("ssh"), cross);
  const short = make("p", { className: "short" }, [problem, titles.get(about)].join("\n").trim());
  const fresh = make("div", {}, head, copyOf(place) || short);
  for (const part of findAll("[id]", fresh)) part.removeAttribute("id");
  box.setAttribute("aria-label", `${host.name}, GPU ${about.split("#gpu")[1]}`);
  equip(fresh);
  tellAges(fresh);
  const focused = document.activeElement;
  morphChildren(box, fresh);
  if (box.contains(focused)) focus(focused);
  position(link);
}

function position(link) {
  const cell = link.closest("li, tr").getBoundingClientRect();
  const below = innerHeight - cell.bottom;
  const height = Math.min(box.scrollHeight + 2, 620, innerHeight * 0.75);
  const isBelow = below >= height + 12 || below >= cell.top;
  box.style.setProperty("--room", `${(isBelow ? below : cell.top) - 12}px`);
  const left = Math.max(8, Math.min(cell.left, root.clientWidth - box.offsetWidth - 8));
  const top = isBelow ? cell.bottom + 4 : Math.max(4, cell.top - box.offsetHeight - 4);
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${top + scrollY}px`;
}

function listenForDetails() {
  on("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "mouse" || isPinned) return;
    const link = linkOf(target);
    if (box.contains(target)) clearTimeout(timer);
    else if (link) later(() => open(link), about ? 60 : 180);
    else later(close, 300);
  });
  on("focusin", ({ target }) => {
    if (isClosing || box.contains(target)) return;
    const link = linkOf(target);
    if (link === target && link.matches(":focus-visible")) open(link);
    else if (about && !isPinned && (!link || to(link) !== about)) close();
  });
  on("click", (event) => {
    const { target } = event;
    if (target.closest(".close")) return close();
    if (target.closest(".copy")) return copy(target.closest(".copy"));
    const link = linkOf(target);
    if (!link || target.closest("a, button")?.matches(":not([href*='#gpu'])")) {
      if (!box.contains(target)) close();
    } else if (!event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      if (isPinned && about === to(link)) close();
      else open(link, true);
    }
  });
  root.addEventListener("pointerleave", () => isPinned || later(close, 300));
  addEventListener("resize", () => about && linkTo(about) && position(linkTo(about)));
  on("keydown", (event) => {
    if (event.key === "Escape" && about) close();
  });
  box.addEventListener("focusout", ({ relatedTarget }) => {
    if (isPinned && relatedTarget && !box.contains(relatedTarget) && relatedTarget !== linkTo(about)) close();
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
  focus(button);
  return isCopied;
}

// ---- Refresh: swap in what has changed ----

const every = Number(root.dataset.refresh) * 1000;
let askedAt = Date.now();
let isAsking = false;
let lost = ""; // why the server can't be reached
let shownTag = "";

async function get(path) {
  if (location.protocol === "file:") throw new Error("this page was opened from a folder");
  const answer = await fetch(path, { cache: "no-cache", signal: AbortSignal.timeout(20000) }).catch(() => {
    throw new Error("the server can't be reached");
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
  arrange(nextMain, readHosts(nextMain));
  tellAges(nextMain);
  morph(main, nextMain);
  morph(find("#fresh"), find("#fresh", next));
  reflect(main);
  hosts = null;
  setTimeout(readAhead);
  title = next.title;
  icon = to(find("link[rel=icon]", next));
  if (focused.isConnected && document.activeElement !== focused) focus(focused);
  pages.clear();
  if (about) linkTo(about) ? load() : close();
}

/** Make an element like another one, touching only what differs. */
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName) return old.replaceWith(document.importNode(fresh, true));
  if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = fresh.data);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  morphChildren(old, fresh);
}

// What an element is about: a host, a GPU, a model.
function keyOf(node) {
  const child = node?.firstElementChild;
  return node?.id || node?.value || child?.value || child?.getAttribute("href");
}

function morphChildren(old, fresh) {
  const wanted = new Set([...fresh.children].map(keyOf));
  const named = new Map();
  for (const child of [...old.children]) {
    const key = keyOf(child);
    if (key && !wanted.has(key)) child.remove();
    else if (key) named.set(key, child);
  }
  let at = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const key = keyOf(want);
    const match = key ? named.get(key) : keyOf(at) ? null : at;
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

// ---- Ages; old data; a lost server ----

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
  if (to(link) !== shown) link.setAttribute("href", shown);
  document.title = isOld ? `(old) ${title}` : title;
}

// ---- Start ----

on("DOMContentLoaded", () => {
  const main = find("main");
  title = document.title;
  icon = to(find("link[rel=icon]"));
  new Image().src = find("link[rel=icon]").dataset.old; // there when the network no longer is
  nameTheme();
  find("#theme").addEventListener("click", switchTheme);
  darkSystem.addEventListener("change", nameTheme);
  equip(main);
  main.dataset.view = view.view;
  if (location.search) arrange(main, known());
  setTimeout(readAhead);
  listen(main);
  box = find("#details");
  listenForDetails();
  addEventListener("beforeprint", () => moreRows(Infinity));
  tell();
  setInterval(tell, 5000);
  if (location.protocol === "file:") setTimeout(() => location.reload(), every);
  else setInterval(refresh, every);
  on("visibilitychange", () => {
    if (Date.now() - askedAt >= every) refresh();
  });
  root.classList.add("js");
});
