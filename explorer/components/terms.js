// @ts-check
// The field's terms where they stand on the page: the first of each is marked, and says what it means
// when it is pointed at or tapped. A button lists those of the page, for the keyboard.

import GLOSSARY from "./glossary.toml.js";
import { make, until } from "./mount.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {{ name: string, means: string }} Term */
/** @typedef {{ term: Term, range: Range }} Found */

const NAME = "headlight-term";
const SETTLES = 400; // ms without a change, after which the page is read again
// What is no running text: what is pressed or typed into, code, tables, pictures.
const NO_TEXT =
  "button, input, textarea, select, code, pre, a, label, svg, .js-plotly-plot, [data-testid=stDataFrame]";
const TEXT = "p, li, h1, h2, h3, h4, dd";

/** @type {Map<string, Term>} */
const BY_SPELLING = new Map();
for (const [name, means, spellings] of GLOSSARY)
  for (const each of spellings)
    if (each.length > 1) BY_SPELLING.set(each.toLowerCase(), { name, means });
const LITERAL = /[.*+?^${}()|[\]\\]/g;
const longest = [...BY_SPELLING.keys()].sort((a, b) => b.length - a.length);
const FINDER = new RegExp(
  `(?<![\\p{L}\\p{N}_])(?:${longest.map((each) => each.replace(LITERAL, "\\$&")).join("|")})(?=s?(?![\\p{L}\\p{N}_]))`,
  "giu",
);

/** @type {Found[]} */
let found = [];

/** The terms of a text, each with where it begins and ends. @param {string} text */
export const termsIn = (text) =>
  [...text.matchAll(FINDER)].map((match) => ({
    term: /** @type {Term} */ (BY_SPELLING.get(match[0].toLowerCase())),
    from: match.index,
    to: match.index + match[0].length,
  }));

/** The button that lists the page's terms, and the marks on the page. @param {View} view */
export function terms(view) {
  const main = document.querySelector("[data-testid=stMain]") || document.body;
  const tip = make("div", { class: "tip", role: "tooltip", hidden: true });
  const list = make("dl", { class: "words", hidden: true });
  const button = make(
    "button",
    {
      type: "button",
      title: "What the words on this page mean",
      "aria-expanded": "false",
      onclick: () => open(button.getAttribute("aria-expanded") === "false"),
    },
    "Terms",
  );
  const open = (/** @type {boolean} */ shown) => {
    if (shown) list.replaceChildren(...found.flatMap(({ term }) => told(term)));
    list.hidden = !shown;
    list.style.top = `${button.getBoundingClientRect().bottom + 6}px`;
    button.setAttribute("aria-expanded", `${shown}`);
  };
  const read = () => {
    found = [...marked(main)];
    CSS.highlights?.set(NAME, new Highlight(...found.map(({ range }) => range)));
    button.hidden = !found.length;
    if (!found.length) open(false);
  };
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = window.setTimeout(read, SETTLES);
  };
  const point = (/** @type {MouseEvent} */ event) => say(tip, under(event.clientX, event.clientY));
  const leave = () => say(tip, undefined);
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape") return;
    leave();
    open(false);
  };
  const changes = new MutationObserver(later);
  changes.observe(main, { childList: true, subtree: true, characterData: true });
  main.addEventListener("mousemove", /** @type {EventListener} */ (point));
  main.addEventListener("click", /** @type {EventListener} */ (point));
  main.addEventListener("scroll", leave, { passive: true });
  addEventListener("keydown", key);
  until(view, "terms", () => {
    clearTimeout(timer);
    changes.disconnect();
    CSS.highlights?.delete(NAME);
    main.removeEventListener("mousemove", /** @type {EventListener} */ (point));
    main.removeEventListener("click", /** @type {EventListener} */ (point));
    main.removeEventListener("scroll", leave);
    removeEventListener("keydown", key);
  });
  later();
  return { button, panels: [tip, list] };
}

/** @param {Term} term */
const told = ({ name, means }) => [make("dt", "", name), make("dd", "", means)];

/** The first place of each term on the page. @param {Element} main @returns {Iterable<Found>} */
function marked(main) {
  /** @type {Map<string, Found>} */
  const first = new Map();
  for (const block of main.querySelectorAll(TEXT)) {
    if (block.closest(NO_TEXT) || !block.checkVisibility()) continue;
    const walk = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (node.parentElement?.closest(NO_TEXT)) continue;
      for (const { term, from, to } of termsIn(node.textContent || "")) {
        if (first.has(term.name)) continue;
        const range = document.createRange();
        range.setStart(node, from);
        range.setEnd(node, to);
        first.set(term.name, { term, range });
      }
    }
  }
  return first.values();
}

/** @param {number} x @param {number} y */
const under = (x, y) =>
  found.find(({ range }) =>
    [...range.getClientRects()].some(
      (box) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom,
    ),
  );

/** @param {HTMLElement} tip @param {Found | undefined} at */
function say(tip, at) {
  if (tip.hidden === !at && tip.dataset.name === (at?.term.name ?? "")) return;
  tip.dataset.name = at?.term.name ?? "";
  tip.hidden = !at;
  if (!at) return;
  const box = at.range.getBoundingClientRect();
  tip.replaceChildren(make("b", "", at.term.name), ` ${at.term.means}`);
  tip.style.left = `${Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8))}px`;
  const below = box.bottom + 6;
  const fits = below + tip.offsetHeight < innerHeight;
  tip.style.top = `${fits ? below : box.top - tip.offsetHeight - 6}px`;
}
