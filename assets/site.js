// The pages are complete without this. What comes from a host is put into them as text only.
"use strict";

const find = (selector, part = document) => part.querySelector(selector);
const findAll = (selector, part = document) => [...part.querySelectorAll(selector)];
const on = document.addEventListener.bind(document);
const to = (link) => link?.getAttribute("href");
const focus = (element) => element?.focus({ preventScroll: true });

/** Write a text if it is another: a selection stays, and nothing is read out twice. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

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

root.dataset.theme = storage((store) => store["webmon-theme"]) || "";

function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  // Whoever comes back to what the system says follows the system again.
  root.dataset.theme = darkSystem.matches === (theme === "dark") ? "" : theme;
  storage((store) => (store["webmon-theme"] = root.dataset.theme));
  nameTheme();
}

function nameTheme() {
  Object.assign(find("#theme"), { textContent: isDark() ? "light" : "dark", hidden: false });
}

// ---- The index of hosts and GPUs ----

let hosts = null; // what known() has read; nothing when the page has changed since
const ranks = new Map(); // the server's order of the hosts; empty as long as it is the page's

/** Return the hosts of the page in the server's order. */
function known() {
  return (hosts ??= readHosts(find("main")).sort((one, other) => one.rank - other.rank));
}

/** Read what the filter looks into, bit by bit. */
function readAhead(from = 0) {
  if (from >= known().length) return;
  for (const host of hosts.slice(from, from + 50)) host.gpus.forEach((gpu) => gpu.words);
  setTimeout(readAhead, 20, from + 50);
}

function readHosts(main) {
  return findAll("#hosts > .host", main).map((section, place) => {
    const link = find("h2 a", section);
    const texts = findAll("h2, .label, .group", section).map((part) => part.textContent);
    const words = [...texts, section.className.replace("host", "")].join(" ").toLowerCase();
    const host = { section, link, words, name: link.textContent, rank: ranks.get(section.id) ?? place };
    host.gpus = findAll("li.gpu", section).map((cell) => new Gpu(cell, host));
    return host;
  });
}

const UNKNOWN = "\u2013";

/** A GPU. There may be thousands: what its cell says is read when it is asked for. */
class Gpu {
  constructor(cell, host) {
    Object.assign(this, { cell, host, link: cell.firstElementChild });
  }
  text(part) {
    return this.cell.getElementsByClassName(part)[0]?.textContent ?? "";
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
  const uses = host.gpus.map((gpu) => parseFloat(gpu.text("use"))).filter((use) => use >= 0);
  return uses.length ? uses.reduce((sum, use) => sum + use) / uses.length : -1;
}

const ORDERS = {
  host: () => 0,
  free: (host) => -findAll(".free", host.section).length,
  busy: (host) => -meanUse(host),
};

// ---- The table: every GPU a row ----

const SECONDS = { s: 1, min: 60, h: 3600, d: 86400 };
const seconds = (span) => parseFloat(span) * SECONDS[span.split(" ")[1]];
const users = (gpu) => find(".who b", gpu.cell)?.textContent;
const reading = (gpu, unit) => gpu.text("more").match(`[\\d.]+\\s${unit}`)?.[0] ?? UNKNOWN;

// What a column shows, and what it is sorted by if that is not the text.
const COLUMNS = {
  host: [(gpu) => gpu.host.name, (_, gpu) => gpu.host.rank],
  gpu: [(gpu) => gpu.link.firstChild.textContent, Number],
  model: [(gpu) => gpu.card],
  state: [(gpu) => gpu.text("state")],
  use: [(gpu) => gpu.text("use"), parseFloat],
  used: [(gpu) => gpu.memory(0), parseFloat],
  memory: [(gpu) => gpu.memory(1), parseFloat],
  temperature: [(gpu) => reading(gpu, "°C"), parseFloat],
  power: [(gpu) => reading(gpu, "W"), parseFloat],
  user: [(gpu) => users(gpu) ?? gpu.text("who"), (_, gpu) => users(gpu) ?? ""],
  program: [(gpu) => find("bdi", gpu.cell)?.textContent.trim() ?? ""],
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
  // What is not known comes last, either way; equal ones stay in the server's order.
  return rows.sort((a, b) => {
    if (isNothing(a.value) || isNothing(b.value)) return isNothing(a.value) - isNothing(b.value);
    return turn * (typeof a.value === "number" ? a.value - b.value : inWords(a.value, b.value));
  });
}

function makeRow(gpu, heads) {
  const links = { host: gpu.host.link, gpu: gpu.link };
  const row = make("tr", { className: gpu.cell.classList[1], id: `row-${to(gpu.link)}` });
  for (const { className, firstChild } of heads) {
    const name = firstChild.value;
    const inside = make(links[name] ? "a" : "span", {}, COLUMNS[name][0](gpu));
    if (links[name]) inside.href = to(links[name]);
    else if (name === "state") inside.className = name;
    row.append(make("td", { className }, inside));
  }
  return row;
}

function drawTable(main, gpus) {
  const list = find("#list", main);
  list.hidden = !isTable();
  find("tbody", list).replaceChildren();
  if (list.hidden) return;
  for (const button of findAll("th button", list)) {
    const turns = { [view.by]: "ascending", [view.by.slice(1)]: "descending" };
    button.parentNode.ariaSort = turns[button.value];
  }
  sorted = sortedRows(gpus);
  addRows(list);
}

function addRows(list) {
  const body = find("tbody", list);
  const heads = findAll("th", list);
  const rows = sorted.slice(body.rows.length, rowsWanted).map(({ gpu }) => makeRow(gpu, heads));
  body.append(...rows);
  const left = sorted.length - body.rows.length;
  const textContent = `${Math.min(left, MOST_ROWS)} more`;
  Object.assign(find("#further", list), { hidden: left <= 0, textContent });
  clearTimeout(growing);
  if (left > 0 && rowsWanted < MOST_ROWS) growing = setTimeout(moreRows, 300, rowsWanted + FIRST_ROWS);
  return rows;
}

function moreRows(count) {
  if (!isTable()) return [];
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
const asked = new URLSearchParams(location.search);
const view = { models: asked.getAll("model") };
for (const [name, [usual, fit]] of Object.entries(VIEW)) {
  const value = asked.get(name) ?? "";
  view[name] = fit.test(value) ? value : usual;
}
const isTable = () => view.view === "table";

function writeView() {
  const given = new URLSearchParams();
  for (const [name, [usual]] of Object.entries(VIEW)) if (view[name].trim() !== usual) given.set(name, view[name].trim());
  for (const model of view.models) given.append("model", model);
  history.replaceState(null, "", location.pathname + (given.size ? `?${given}` : "") + location.hash);
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
  const asksGpu = view.free || view.memory || view.models.length;
  const narrowed = asksGpu || terms.length;
  const late = [];
  cancelAnimationFrame(settling);
  for (const host of hosts) {
    const fitting = host.gpus.filter(fits);
    const bare = !host.gpus.length && !asksGpu && terms.every((term) => host.words.includes(term));
    if (fitting.length || bare) late.push([host, fitting]);
    else host.section.hidden = true;
  }
  const shown = late.flatMap(([, fitting]) => fitting);
  const count = hosts.flatMap((host) => host.gpus).length;
  if (!isTable()) settle(late, main.isConnected ? HOSTS_AT_ONCE[view.view] : Infinity);
  main.dataset.view = view.view;
  find("#hosts", main).hidden = isTable();
  find("#none", main).hidden = !narrowed || (isTable() ? shown : late).length > 0;
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
    if (touched > most) return (settling = requestAnimationFrame(() => settle(hosts.slice(at), most)));
    const wrong = gpus.filter((gpu) => gpu.cell.hidden === fitting.includes(gpu));
    for (const gpu of wrong) gpu.cell.hidden = !gpu.cell.hidden;
    touched += section.hidden || wrong.length > 0;
    section.hidden = false;
  }
}

function order(container, hosts) {
  const keyed = hosts.map((host) => [ORDERS[view.sort](host), host]).sort(([a], [b]) => a - b);
  let at = container.firstElementChild;
  for (const [, { section }] of keyed) {
    if (section === at) at = at.nextElementSibling;
    else container.insertBefore(section, at);
  }
}

const titles = new Map(); // the hover texts, by the GPU's address

/** Make a page that has just come work. */
function equip(main) {
  for (const cell of findAll("li.gpu[title]", main)) {
    // Here it would lie over the details.
    titles.set(to(cell.firstElementChild), cell.title);
    cell.removeAttribute("title");
  }
  for (const copy of findAll(".copy", main)) copy.hidden = false;
  reflect(main);
}

/** Let the controls say what the view says. */
function reflect(main) {
  const tools = find("#tools", main);
  if (!tools) return;
  tools.hidden = false;
  for (const tile of findAll(".tile", main)) {
    Object.assign(tile, { disabled: false, ariaPressed: view.models.includes(tile.value) });
  }
  const { q, free, memory, sort, view: choice } = tools.elements;
  if (q.value.trim() !== view.q.trim()) q.value = view.q;
  free.checked = view.free !== "";
  sort.value = view.sort;
  choice.value = view.view;
  memory.value = view.memory;
  if (memory.value !== view.memory) memory.add(new Option(`${view.memory} GB`, view.memory, true, true));
}

function change(changes) {
  Object.assign(view, changes);
  rowsWanted = FIRST_ROWS;
  writeView();
  const main = find("main");
  reflect(main);
  arrange(main, known());
  if (about && !linkInView()) close();
}

function listen() {
  on("input", ({ target }) => {
    change({ [target.name || target.id]: target.id !== "free" ? target.value : target.checked ? "1" : "" });
  });
  on("submit", (event) => event.preventDefault());
  on("click", ({ target }) => {
    const button = target.closest("button");
    if (button?.matches(".tile")) {
      const models = new Set(view.models);
      if (!models.delete(button.value)) models.add(button.value);
      change({ models: [...models] });
    } else if (button?.matches("th button")) {
      change({ by: (view.by === button.value ? "-" : "") + button.value });
    } else if (button?.id === "all") {
      change({ q: "", free: "", memory: "", models: [] });
      find("#q").focus();
    } else if (button?.id === "further") {
      const [first] = moreRows(rowsWanted + MOST_ROWS);
      find("a", first).focus();
    } else if (button?.id === "theme") switchTheme();
  });
}

// ---- The details of a GPU: on hover, on focus; a click keeps them open ----

let box = null;
const pages = new Map(); // the host pages that were asked for, by address
let about = null; // the address of the GPU that the box is about
let isPinned = false;
let isClosing = false;
let timer = 0;

function later(action, delay) {
  clearTimeout(timer);
  timer = setTimeout(action, delay);
}

// The link of the GPU that an element is part of; the visible one of the box's GPU.
function linkOf(element) {
  return element.closest?.("li.gpu, #table tr")?.querySelector("a[href*='.html#gpu']");
}

function linkInView() {
  return findAll(`main a[href="${CSS.escape(about)}"]`).find((link) => link.checkVisibility());
}

function open(link, pin = false) {
  clearTimeout(timer);
  const address = to(link);
  isPinned = pin;
  if (about !== address) {
    about = address;
    box.hidden = false;
    show();
    load();
  }
  if (pin) focus(box);
}

function close() {
  clearTimeout(timer);
  if (!about) return;
  const link = box.contains(document.activeElement) ? linkInView() : null;
  about = null;
  isPinned = false;
  box.hidden = true;
  isClosing = true;
  focus(link);
  isClosing = false;
}

async function load() {
  const address = about;
  const [path] = address.split("#");
  try {
    if (!pages.has(path)) pages.set(path, get(path).then(parse));
    const page = await pages.get(path);
    if (about === address) show(page);
  } catch (error) {
    pages.delete(path);
    if (about === address && !find(".sheet", box)) show(null, `The rest can't be loaded: ${error.message}.`);
  }
}

/** Fill the box from a host's page, or else with what the overview knows. */
function show(page, problem = "") {
  const link = linkInView();
  if (!link) return close();
  const [path, place] = about.split("#");
  const host = known().find(({ link }) => to(link) === path);
  const copyOf = (id) => page?.getElementById(id)?.cloneNode(true) ?? "";
  const cross = make("button", { className: "close", title: "close" }, "×");
  const head = make("p", { className: "where" }, host.link.cloneNode(true), copyOf("ssh"), cross);
  const short = make("p", { className: "short" }, [problem, titles.get(about)].join("\n").trim());
  const fresh = make("div", {}, head, copyOf(place) || short);
  for (const part of findAll("[id]", fresh)) part.removeAttribute("id");
  box.ariaLabel = `${host.name}, GPU ${place.replace("gpu", "")}`;
  equip(fresh);
  tellAges(fresh);
  const focused = document.activeElement;
  morphChildren(box, fresh);
  if (box.contains(focused)) focus(focused);
  position(link);
}

function position(link) {
  const { left, top, bottom } = link.closest("li, tr").getBoundingClientRect();
  const below = innerHeight - bottom;
  const height = Math.min(box.scrollHeight + 2, 620, innerHeight * 0.75);
  const isBelow = below >= height + 12 || below >= top;
  box.style.setProperty("--room", `${(isBelow ? below : top) - 12}px`);
  const across = Math.max(8, Math.min(left, root.clientWidth - box.offsetWidth - 8));
  const down = isBelow ? bottom + 4 : Math.max(4, top - box.offsetHeight - 4);
  box.style.left = `${across + scrollX}px`;
  box.style.top = `${down + scrollY}px`;
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
    else if (about && !isPinned && to(link) !== about) close();
  });
  on("click", (event) => {
    const { target, ctrlKey, metaKey, shiftKey, altKey } = event;
    const button = target.closest(".close, .copy");
    if (button) return button.matches(".copy") ? copy(button) : close();
    const link = linkOf(target);
    if (!link || target.closest("a, button")?.matches(":not([href*='#gpu'])")) {
      if (!box.contains(target)) close();
    } else if (!(ctrlKey || metaKey || shiftKey || altKey)) {
      event.preventDefault();
      if (isPinned && about === to(link)) close();
      else open(link, true);
    }
  });
  root.addEventListener("pointerleave", () => isPinned || later(close, 300));
  addEventListener("resize", () => about && linkInView() && position(linkInView()));
  on("keydown", ({ key }) => key === "Escape" && about && close());
  box.addEventListener("focusout", ({ relatedTarget }) => {
    if (isPinned && relatedTarget && !box.contains(relatedTarget) && relatedTarget !== linkInView()) close();
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

const every = root.dataset.refresh * 1000;
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

const parse = async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html");

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
  ranks.clear();
  const nextHosts = readHosts(nextMain);
  for (const { section, rank } of nextHosts) ranks.set(section.id, rank);
  arrange(nextMain, nextHosts);
  tellAges(nextMain);
  morph(main, nextMain);
  morph(find("#fresh"), find("#fresh", next));
  reflect(main);
  hosts = null;
  setTimeout(readAhead);
  title = next.title;
  icon = to(find("link[rel=icon]", next));
  if (focused.isConnected) focus(focused);
  pages.clear();
  if (about) linkInView() ? load() : close();
}

/** Make an element like another one, touching only what differs. */
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (!old.attributes) return void (old.data = fresh.data);
  // What somebody has opened stays open.
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  morphChildren(old, fresh);
}

// What an element is about: a host, a GPU, a model.
function keyOf(node) {
  const child = node?.firstElementChild;
  return node?.id || node?.value || child?.value || to(child);
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
    else old.insertBefore(match || want, at);
    if (match) morph(match, want);
  }
  while (at?.nextSibling) at.nextSibling.remove();
  at?.remove();
}

// ---- Ages; old data; a lost server ----

let title = "";
let icon = "";

function age(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  const unit = ["d", "h", "min"].find((unit) => seconds >= SECONDS[unit]);
  return unit ? `${Math.floor(seconds / SECONDS[unit])} ${unit} ago` : "just now";
}

function tellAges(part) {
  for (const time of findAll("time", part)) {
    say(time, age(time.dateTime));
    time.title = new Date(time.dateTime).toLocaleString();
  }
}

function tell() {
  const fresh = find("#fresh");
  const taken = find("time", fresh).dateTime;
  const isStale = Date.now() - Date.parse(taken) > fresh.dataset.staleAfter * 1000;
  const isOld = isStale || lost !== "";
  if (lost) say(find("#why"), lost);
  find("#lost").hidden = !lost;
  find("#stale").hidden = !isStale;
  for (const time of findAll(".warning time")) time.dateTime = taken;
  fresh.classList.toggle("old", isOld);
  tellAges(document);
  const link = find("link[rel=icon]");
  const shown = isOld ? link.dataset.old : icon;
  if (to(link) !== shown) link.href = shown;
  document.title = isOld ? `(old) ${title}` : title;
}

// ---- Start ----

on("DOMContentLoaded", () => {
  const main = find("main");
  title = document.title;
  icon = to(find("link[rel=icon]"));
  new Image().src = find("link[rel=icon]").dataset.old; // there when the network no longer is
  nameTheme();
  darkSystem.addEventListener("change", nameTheme);
  equip(main);
  main.dataset.view = view.view;
  if (location.search) arrange(main, known());
  setTimeout(readAhead);
  listen();
  box = find("#details");
  listenForDetails();
  addEventListener("beforeprint", () => moreRows(Infinity));
  tell();
  setInterval(tell, 5000);
  if (location.protocol === "file:") setTimeout(() => location.reload(), every);
  else setInterval(refresh, every);
  on("visibilitychange", () => Date.now() - askedAt >= every && refresh());
  root.classList.add("js");
});
