// Times as ages, kept up to date; and a warning when the data is old although the page is not.
"use strict";

const fresh = document.getElementById("fresh");
const stale = document.getElementById("stale");
const times = [...document.querySelectorAll("time")];

function age(seconds) {
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

function tell() {
  const now = Date.now();
  for (const time of times) {
    const seconds = Math.max(0, (now - Date.parse(time.dateTime)) / 1000);
    time.title = new Date(time.dateTime).toLocaleString();
    time.textContent = age(seconds);
  }
  const taken = Date.parse(fresh.querySelector("time").dateTime);
  const old = (now - taken) / 1000 > Number(fresh.dataset.staleAfter);
  fresh.classList.toggle("old", old);
  stale.hidden = !old;
}

tell();
setInterval(tell, 5000);
