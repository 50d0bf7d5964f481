// @ts-check
// All heads: a canvas of thumbnails under a grid of real buttons, and the same heads as a sortable
// list. While a word is selected, each head shows that word's row alone.

import { coarseOf } from "./optimistic_updates.js";
import { bus } from "./bus.js";
import { cellAt, ends, headGrid, legend, thumbnails, thumbWords } from "./matrix_canvas.js";
import style from "./heads.css.js";
import { list } from "./heads_list.js";
import { folded, rowCaption, rowOf, rowText, weightAt, written } from "./row_thumbnails.js";
import { fitted, focused, hear, make, mount } from "./mount.js";
import { notAllowed, spokenLine } from "./number_format.js";
import { css } from "./theme.js";
import { named } from "./tokens.js";
import { looksAhead, permitted } from "./codec.js";

/** @typedef {import("./mount.js").View} View */

const UNNAMED = ["no clear pattern", "text too short"];

export default mount("heads", style, (view) => {
  const { header, blocks } = view;
  if (view.fresh) {
    view.keys = header.keys || header.tokens;
    view.permitted = permitted(blocks.runs, header.tokens.length * view.keys.length);
    view.ahead = looksAhead(view.permitted, view.keys.length);
    view.quiet = new Set(header.quiet);
  }
  // Each head's weights in 256 levels: what a head is drawn from until its own numbers are there.
  const coarse = (/** @type {number} */ layer, /** @type {number} */ head) =>
    coarseOf(view, layer, head);
  bus.tell({ coarse });
  view.word = wordOf(view, bus.now);
  drawSoon(view);
  hear(view, (now) => {
    const word = wordOf(view, now);
    if (word?.join() !== view.word?.join()) {
      view.word = word;
      drawSoon(view);
    } else view.mark?.();
  });
});

// The large picture says which word is held a moment after the heads have come: they are drawn once.
/** @param {View} view */
function drawSoon(view) {
  if (view.awaited) return;
  view.awaited = true;
  queueMicrotask(() => {
    view.awaited = false;
    draw(view);
  });
}

/** The word that is held, [axis, place], where this grid has it. @param {View} view @param {any} now */
function wordOf({ header, keys }, { word }) {
  if (!word || word.rows !== header.tokens.length || word.columns !== keys.length) return null;
  return word.at >= 0 ? [word.axis, word.at] : null;
}

/** @param {View} view */
function draw(view, focus = "") {
  const { root, header } = view;
  const place = [...root.querySelectorAll(".cell")].findIndex((cell) => cell === focused(root));
  /** @type {any[]} */
  const body = header.listed ? list(view, { shown, choose, spoken, draw }) : grid(view);
  root.replaceChildren(...body);
  view.ready?.();
  // A word that is held elsewhere draws all heads anew: whoever is among them stays there.
  const next = focus ? root.querySelector(focus) : root.querySelectorAll(".cell")[place];
  /** @type {HTMLElement | null | undefined} */ (next)?.focus({ preventScroll: !focus });
}

/** @param {View} view */
const shown = ({ header }, head) => !header.only || head.name === header.only;

/** Whether each head shows the row of the selected word alone. @param {View} view */
const byWord = (view) => Boolean(view.header.by_word && view.word);

/** @param {View} view */
function counted({ header: { heads, only, listed }, all }) {
  const n = heads.filter(({ name }) => name === only).length;
  if (only) return `${n} of ${heads.length} heads: ${only}`;
  return heads.length < MANY || all || listed ? `All ${heads.length} heads` : "The strongest heads";
}

/** What stands above the heads: how many there are, and what their colours mean. @param {View} view */
function heading(view) {
  const { header, look } = view;
  const [axis, at] = view.word || [];
  const word = byWord(view) && named((axis ? view.keys : header.tokens)[at]);
  const does = word && (axis ? ["what attends to ", word] : ["what ", word, " attends to"]);
  const [low, high] = ends(header.scale, header.log);
  return make(
    "div",
    "heading",
    make("span", "", make("b", "", counted(view)), ...(does ? [", ", ...does] : [])),
    legend(look.one, low, high),
  );
}

/** @param {View} view */
function choose(view, { layer, head }) {
  view.send("head", `${layer}.${head}`);
  bus.tell({ layer, head });
}

const spoken = (head) =>
  `Layer ${head.layer}, head ${head.head}: ${head.name} ${figure(head)}`.trim();

// What a head's name is seen by, said as it is written.
function figure(head) {
  const value = head.name === "diffuse" ? head.entropy : head.score;
  return value === null ? "" : written(value);
}

// ---- grid ----------------------------------------------------------------------------------------

/** @param {View} view */
function grid(view) {
  const { header } = view;
  const status = spokenLine("status", "div");
  const note = make("p", "note");
  const row = byWord(view) ? (head, at) => rowOf(view, at) : null;
  const which = someOf(view);
  const { box, canvas, cells, rove } = headGrid({
    which,
    layers: header.heads.length / header.n_head,
    heads: header.n_head,
    about: "All heads, layers down, heads across. Arrow keys move, Enter opens.",
    shape: header.columns / header.rows,
    cell: (at, _layer, _head, place) => {
      const head = header.heads[at];
      const list = row?.(head, at);
      /** @type {any[]} */
      const says = list ? [spoken(head), ". ", ...rowText(view, at, list)] : [spoken(head)];
      const cell = make(
        "button",
        {
          class: head.back ? "cell back" : "cell",
          "aria-label": says.map((each) => each.textContent ?? each).join(""),
          onclick: () => choose(view, head),
          onfocus: () => {
            view.focus = place;
            status.replaceChildren(...says.map((each) => each.cloneNode?.(true) ?? each));
          },
          onmousemove: (event) => hover(view, event, cell, at, status),
          onmouseleave: () => status.replaceChildren(),
        },
        make("span", "thumb"),
        which &&
          make("span", { class: "at", "aria-hidden": "true" }, `L${head.layer} H${head.head}`),
        list ? rowCaption(view, at, list) : caption(head),
      );
      return cell;
    },
  });
  view.mark = () => {
    const { layer, head } = bus.now;
    cells.forEach((cell, place) => {
      const one = header.heads[which ? which[place] : place];
      const on = one.layer === layer && one.head === head;
      cell.setAttribute("aria-pressed", `${on}`);
      if (on) view.focus = place;
    });
    rove(Math.min(view.focus ?? 0, cells.length - 1));
  };
  view.mark();
  view.ready = () =>
    fitted(view, box, () => {
      const fold = header.fold * paint(view, box, canvas, cells, which);
      note.textContent = noteOf(view, fold);
    });
  return [heading(view), box, more(view), status, note].filter(Boolean);
}

const MANY = 96; // heads from which on those that rest on sinks are folded
const SHOWN = 45; // of the others, the strongest first

/** The heads that a grid shows, null for all in their layers: those of one pattern, and of a model of
 * many heads those that do not rest on sinks, by the weight that the selected word gives another
 * token. The head on screen is always among them. @param {View} view */
function someOf(view) {
  const { header } = view;
  const all = [...header.heads.keys()];
  if (header.only) return all.filter((at) => header.heads[at].name === header.only);
  if (all.length < MANY || view.all) return null;
  const place = byWord(view) ? view.word[1] : -1;
  const strength = (/** @type {number} */ at) => {
    const { score, chance } = header.heads[at];
    if (place < 0) return (score ?? 0) - (chance ?? 0);
    const row = rowOf(view, at);
    return Math.max(
      ...row.filter((_, cell) => cell > 0 && cell !== Math.floor(place / header.fold)),
    );
  };
  const awake = all.filter((at) => header.heads[at].name !== "sink");
  const strengths = new Map(awake.map((at) => [at, strength(at)]));
  awake.sort((a, b) => (strengths.get(b) || 0) - (strengths.get(a) || 0));
  const { layer, head } = bus.now;
  const open = all.filter(
    (at) => header.heads[at].layer === layer && header.heads[at].head === head,
  );
  return [...new Set([...open, ...awake])].slice(0, SHOWN);
}

/** Of a model of many heads the way to all of them. @param {View} view */
function more(view) {
  const { heads, only } = view.header;
  if (only || heads.length < MANY) return null;
  const sinks = heads.filter(({ name }) => name === "sink").length;
  const onclick = () => {
    view.all = !view.all;
    draw(view, ".more");
  };
  const label = view.all
    ? "Show the strongest heads"
    : `Show all ${heads.length} heads, ${sinks} of which rest on sinks`;
  return make("button", { class: "more small", onclick }, label);
}

/** @param {View} view @param {number} fold cells each way behind a pixel */
const noteOf = ({ header }, fold) =>
  [
    header.quiet.length && "Heads that mostly attend to the tokens left out are faint.",
    fold > 1 && `Each pixel is the largest of ${fold} × ${fold} weights.`,
  ]
    .filter(Boolean)
    .join(" ");

// What a button says is its label: the figure below it says the same in short.
const caption = (head) =>
  make(
    "span",
    { class: "caption", "aria-hidden": "true" },
    make("span", "name", UNNAMED.includes(head.name) ? "–" : head.name),
  );

// ---- painting and pointing -----------------------------------------------------------------------

/** @param {View} view */
function paint(view, box, canvas, cells, which) {
  const { header, blocks, look } = view;
  const { scale, log } = header;
  const [axis, place] = (byWord(view) && view.word) || [];
  const held = place === undefined ? -1 : Math.floor(place / header.fold);
  const size = header.rows * header.columns;
  /** @type {Uint32Array[]} */
  const tables = [];
  const headAt = (place) => (which ? which[place] : place);
  const bytes = (place) => {
    const at = headAt(place);
    const all = blocks.cells.subarray(at * size, (at + 1) * size);
    if (held < 0) return all;
    if (!axis) return all.subarray(held * header.columns, (held + 1) * header.columns);
    return Uint8Array.from({ length: header.rows }, (_, r) => all[r * header.columns + held]);
  };
  const fold = thumbnails({
    box,
    canvas,
    places: cells.map((cell) => cell.firstChild),
    rows: held < 0 ? header.rows : 1,
    columns: held >= 0 && axis ? header.rows : header.columns,
    bytes,
    words: (place, row) => {
      const at = headAt(place);
      const peak = blocks.peak[at];
      if (scale === "row")
        return thumbWords(look.one, peak, peak * (Math.max(...row) / 255) ** 2, log);
      return (tables[at] ||= thumbWords(look.one, peak, scale === "head" ? peak : 1, log));
    },
    faint: (at) => cells[at].matches(".back"),
  });
  if (fold) canvas.dataset.painted = header.token;
  box.style.setProperty("--nothing", css(look.one[0]));
  return fold;
}

/** @param {View} view */
function hover(view, event, cell, at, status) {
  const { header, keys } = view;
  const { rows, columns, fold, tokens } = header;
  const head = header.heads[at];
  const strip = byWord(view) && view.word;
  const [axis, place] = strip || [];
  const [height, width] = strip ? [1, axis ? rows : columns] : [rows, columns];
  const under = cellAt(event, cell.firstChild, height, width);
  if (!under) return status.replaceChildren(cell.getAttribute("aria-label"));
  const held = Math.floor(place / fold);
  const [r, c] = !strip ? under : axis ? [under[1], held] : [held, under[1]];
  const most = fold > 1 ? "largest about " : "";
  const value =
    view.quiet.has(c) && fold === 1
      ? "quiet"
      : free(view, r, c)
        ? most + weightAt(view, at, r * columns + c).toFixed(3)
        : notAllowed(r, c, view.ahead);
  status.replaceChildren(
    `L${head.layer} H${head.head}  `,
    named(folded(view, tokens, r)),
    " attends to ",
    named(folded(view, keys, c)),
    `  ${value}`,
  );
}

/** True where any of the cells behind one of a thumbnail's is allowed. @param {View} view */
function free({ header: { fold, tokens }, keys, permitted: may }, r, c) {
  if (!may) return true;
  for (let q = r * fold; q < Math.min(r * fold + fold, tokens.length); q++)
    for (let k = c * fold; k < Math.min(c * fold + fold, keys.length); k++)
      if (may[q * keys.length + k]) return true;
  return false;
}
