// SPDX-License-Identifier: Apache-2.0
// The two things of the site that need a script: light or dark by choice, and the search. Nothing is fetched from
// elsewhere; the index of the search is a script too, because a page opened from a disk may not read other files.
"use strict";

const root = document.documentElement.dataset.root;

function stored() {
  try { return localStorage.getItem("scheme"); } catch { return null; }
}

function setScheme(scheme) {
  if (scheme) document.documentElement.dataset.scheme = scheme;
}
setScheme(stored());

function isDark() {
  const chosen = document.documentElement.dataset.scheme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function startScheme() {
  const button = document.getElementById("scheme");
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => {
    setScheme(isDark() ? "light" : "dark");
    // Without storage the choice is for this page only.
    try { localStorage.setItem("scheme", document.documentElement.dataset.scheme); } catch { }
    label();
  });
  label();
}

// A section is [page, heading, address, text]. All words must occur; the heading and the page name count more.
function rank(section, words) {
  const [page, heading, , text] = section.map((part) => part.toLowerCase());
  let score = 0;
  for (const word of words) {
    if (heading.includes(word)) score += heading === word ? 40 : 10;
    else if (page.includes(word)) score += 4;
    else if (text.includes(word)) score += 1;
    else return 0;
  }
  return score;
}

function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (at > 0 ? "… " : "") + text.slice(at, at + 110);
}

function show(list, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length === 0 ? [] : (window.searchIndex || [])
    .map((section) => [rank(section, words), section])
    .filter(([score]) => score > 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, 12);
  list.replaceChildren(...hits.map(([, [page, heading, address, text]]) => {
    const [item, link, about] = ["li", "a", "span"].map((name) => document.createElement(name));
    link.href = root + address;
    link.textContent = heading === page ? page : `${page}: ${heading}`;
    about.textContent = excerpt(text, words[0]);
    item.append(link, about);
    return item;
  }));
  if (words.length > 0 && hits.length === 0) list.textContent = "Nothing found";
  list.hidden = words.length === 0;
}

function startSearch() {
  const input = document.getElementById("search"), list = document.getElementById("found");
  input.parentElement.hidden = false;
  input.addEventListener("focus", () => {
    const script = document.createElement("script");
    script.src = root + "search_index.js";
    script.addEventListener("load", () => show(list, input.value));
    document.head.append(script);
  }, {once: true});
  input.addEventListener("input", () => show(list, input.value));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.hidden = true;
    if (event.key === "Enter" && event.target === input) list.querySelector("a")?.click();
    if (event.key === "/" && !/INPUT|TEXTAREA/.test(event.target.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!input.parentElement.contains(event.target)) list.hidden = true;
  });
}

document.addEventListener("DOMContentLoaded", () => {
  startScheme();
  startSearch();
});
