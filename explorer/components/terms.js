// @ts-check
// Lines of text as nodes: formulas with indices and powers, and terms of the field, each explained
// where it first stands, under the pointer, with the focus of the keyboard, and on a tap.

import { make, worded } from "./mount.js";
import { formulas } from "./number_format.js";
import { tint } from "./vote_figure.js";

const PRODUCT = /(?<=(?<!\p{L})\p{L}) · (?=\p{L}(?!\p{L}))/gu; // of two letters, in one line

/** A line as nodes, its formulas with indices and powers. @param {string} line */
const typeset = (line) =>
  formulas(line.replace(PRODUCT, "\u00a0·\u00a0")).map(([tag, text]) =>
    tag ? make(tag, "", text) : text,
  );

/** A term as it came: its name, its meaning, and its spellings without capitals. @typedef {[string, string, string[]]} Term */

const escaped = (/** @type {string} */ text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Words in quotation marks, which are of a text, and spellings of terms, the longest first. @param {Term[]} terms */
function finder(terms) {
  const spellings = terms.flatMap((term) => term[2]).sort((a, b) => b.length - a.length);
  const ways = spellings.map(escaped).join("|");
  return new RegExp(
    `“(?!\\[\\w+\\]”)[^”]*”|(?<![\\p{L}\\p{N}_])(?:${ways})(?![\\p{L}\\p{N}_])`,
    "giu",
  );
}

/**
 * A line as nodes, in which terms are explained where they stand for the first time. `before`: names
 * of those that an earlier line of the panel has, to which this line's are added.
 * @param {Term[]} terms
 * @param {string} line
 * @param {Set<string>} before
 */
export function explained(terms, line, before) {
  if (!terms.length) return typeset(line);
  /** @type {(Node | string)[]} */
  const nodes = [];
  let from = 0;
  for (const { index, 0: spelling } of line.matchAll(finder(terms))) {
    const at = terms.findIndex((term) => term[2].includes(spelling.toLowerCase()));
    if (at < 0 || before.has(terms[at][0])) continue;
    before.add(terms[at][0]);
    const attributes = {
      class: "term",
      tabindex: 0,
      "aria-describedby": `term-${at}`,
      data: { focus: `term ${at}` },
      ...HANDLERS,
    };
    nodes.push(...typeset(line.slice(from, index)), make("dfn", attributes, ...typeset(spelling)));
    from = index + spelling.length;
  }
  return [...nodes, ...typeset(line.slice(from))];
}

/** A finding as nodes, its first sentence apart, without the terms of the title. @param {import("./mount.js").View} view @param {string} line @param {Set<string>} [terms] those explained so far */
export function sentenceOf(view, line, terms = new Set()) {
  const { header, figures } = view;
  explained(header.terms, header.title, terms);
  /** @type {(Node | string)[]} */
  const nodes = headed(apart(explained(header.terms, line, terms)));
  if (figures[0]?.kind === "sentencevotes") tint(view, figures[0], nodes[0]);
  figures[0]?.hued?.(view, figures[0], nodes[0]);
  return nodes;
}

/** Nodes in which what stands in quotation marks is marked. @param {(Node | string)[]} nodes @returns {any[]} */
const apart = (nodes) =>
  nodes.flatMap((each) => /** @type {any[]} */ (typeof each === "string" ? worded(each) : [each]));

/** A sentence as nodes, with indices and powers, and with what is of a text. @param {string} line */
export const lettered = (line) =>
  line.split(/(“[^”]*”)/).flatMap((each) => (each[0] === "“" ? worded(each) : typeset(each)));

/** A finding whose first sentence, by itself, is the headline of a page. @param {(Node | string)[]} nodes @returns {(Node | string)[]} */
function headed(nodes) {
  const ends = nodes.map((each) => (typeof each === "string" ? each.search(/[.!?…](?=\s)/) : -1));
  const at = ends.findIndex((end) => end >= 0);
  if (at < 0) return [make("span", "first", ...nodes)];
  const [text, end] = [String(nodes[at]), ends[at] + 1];
  const first = make("span", "first", ...nodes.slice(0, at), text.slice(0, end));
  return [first, text.slice(end), ...nodes.slice(at + 1)];
}

const HANDLERS = {
  onmouseenter: show,
  onfocus: show,
  onmouseleave: hide,
  onblur: hide,
  onkeydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && hide(event),
};

/** What the terms of a panel mean, shown beside the one that is pointed at. @param {Term[]} terms */
export function meanings(terms) {
  const lines = terms.map(([name, means], at) =>
    make(
      "p",
      { id: `term-${at}`, role: "tooltip", class: "means" },
      make("strong", "", name),
      `: ${means}`,
    ),
  );
  return make("div", "meanings", ...lines);
}

/** Show what a term means. @param {Event} event */
function show({ currentTarget: target }) {
  const term = /** @type {HTMLElement} */ (target);
  const root = /** @type {HTMLElement} */ (term.closest(".panel"));
  const line = /** @type {HTMLElement} */ (meaningOf(term));
  for (const each of root.querySelectorAll(".means.open")) each.classList.remove("open");
  line.classList.add("open");
  const [box, all] = [term, root].map((each) => each.getBoundingClientRect());
  line.style.left = `${Math.max(0, Math.min(box.left - all.left, all.width - line.offsetWidth))}px`;
  line.style.top = `${box.bottom - all.top}px`;
}

/**
 * Hide it again, unless the pointer goes to what is shown or leaves a term that has the focus.
 * @param {any} event
 */
function hide({ type, currentTarget: term, relatedTarget: to }) {
  const line = meaningOf(term);
  if (type === "mouseleave" && line.contains(to)) line.onmouseleave = hide;
  else if (type !== "mouseleave" || !term.matches(":focus")) line.classList.remove("open");
}

/** @param {Element} element a term, or what it means */
const meaningOf = (element) =>
  /** @type {HTMLElement} */ (
    element.matches(".means")
      ? element
      : element.closest(".panel")?.querySelector(`#${element.getAttribute("aria-describedby")}`)
  );
