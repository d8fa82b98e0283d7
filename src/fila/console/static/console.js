// Keeps a page current without moving it, and a few comforts. Everything works without this file: pages are whole, and
// forms are forms. What arrives is HTML that the server has escaped; it is parsed, compared, and never run.
"use strict";

const EVERY_MS = 2000;
const main = document.getElementById("main");
const away = document.getElementById("away");
let tag = "";

function keyOf(node) {
  return node.nodeType === 1 ? node.getAttribute("data-key") || node.id || "" : "";
}

function sameKind(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function morphAttributes(from, to) {
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !(name === "open" && from.nodeName === "DETAILS")) {
      from.setAttribute(name, value);
    }
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS")) from.removeAttribute(name);
  }
}

// Makes `from` look like `to` by the fewest changes: what is focused, selected, opened or half filled in stays so.
function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType === 3) {
    from.nodeValue = to.nodeValue;
    return;
  }
  if (from.nodeType !== 1 || from.hasAttribute("data-still")) return;
  if (["INPUT", "TEXTAREA", "SELECT"].includes(from.nodeName)) return;
  morphAttributes(from, to);
  const keyed = new Map();
  for (const child of from.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const known = keyOf(wanted) ? keyed.get(keyOf(wanted)) : null;
    if (known && sameKind(known, wanted)) {
      if (known === place) place = place.nextSibling;
      else from.insertBefore(known, place);
      morph(known, wanted);
    } else if (place && !keyOf(wanted) && sameKind(place, wanted)) {
      const here = place;
      place = place.nextSibling;
      morph(here, wanted);
    } else {
      from.insertBefore(document.importNode(wanted, true), place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    if (!keyOf(place) || ![...to.childNodes].some((each) => keyOf(each) === keyOf(place))) place.remove();
    place = next;
  }
}

function tellAway(text) {
  if (away.textContent !== text) away.textContent = text;
  away.hidden = !text;
  document.documentElement.toggleAttribute("data-away", Boolean(text));
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { "fila-live": tag || "-" }, redirect: "manual" });
  if (answer.status === 401 || answer.type === "opaqueredirect") return location.reload();
  if (answer.status === 304) return tellAway("");
  if (answer.status === 503) return tellAway("The broker does not answer. What you see is from before; the console keeps asking.");
  const text = await answer.text();
  tag = answer.headers.get("etag") || "";
  const wanted = new DOMParser().parseFromString(text, "text/html").querySelector("main");
  if (wanted) {
    for (const { name, value } of main.attributes) wanted.setAttribute(name, value);
    morph(main, wanted);
  }
  tellAway("");
}

async function live() {
  if (!document.hidden) {
    try {
      await refresh();
    } catch {
      tellAway("The console does not answer. Is `fila console` still running?");
    }
  }
  setTimeout(live, EVERY_MS);
}

document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    navigator.clipboard.writeText(copy.previousElementSibling.textContent).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
  }
});

document.getElementById("theme").addEventListener("change", (event) => {
  document.documentElement.dataset.theme = event.target.value;
  document.cookie = `fila_theme=${event.target.value}; path=/; max-age=31536000; samesite=strict`;
});

// A form that changes nothing is sent when its choice changes.
for (const select of document.querySelectorAll("select[data-send]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}

if (main.hasAttribute("data-live")) setTimeout(live, EVERY_MS);
