// @ts-check
// All heads: a canvas of thumbnails under a grid of real buttons, and the same heads as a sortable
// list. While a word is held, each head shows that word's row alone: what it looks at, everywhere.

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
    if (!header.heads.some((head) => head.name === view.filter)) view.filter = null;
  }
  // Each head's weights in 256 levels: what a head is drawn from until its own numbers are there.
  const coarse = (/** @type {number} */ layer, /** @type {number} */ head) =>
    coarseOf(view, layer, head);
  bus.tell({ coarse });
  view.as ??= "grid";
  view.wordFirst ??= true;
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
  const { root } = view;
  const place = [...root.querySelectorAll(".cell")].findIndex((cell) => cell === focused(root));
  const body = view.as === "grid" ? grid(view) : list(view, { shown, choose, spoken, draw });
  root.replaceChildren(bar(view), ...body);
  view.ready?.();
  // A word that is held elsewhere draws all heads anew: whoever is among them stays there.
  const next = focus ? root.querySelector(focus) : root.querySelectorAll(".cell")[place];
  /** @type {HTMLElement | null | undefined} */ (next)?.focus({ preventScroll: !focus });
}

/** @param {View} view */
function bar(view) {
  const { header } = view;
  const counts = new Map();
  for (const { name } of header.heads) counts.set(name, (counts.get(name) || 0) + 1);
  const names = header.names.filter((name) => counts.has(name));
  const chips = names.map((name) =>
    make(
      "button",
      {
        class: "chip",
        title: header.meaning[name],
        "aria-pressed": view.filter === name,
        data: { name },
        onclick: () => {
          view.filter = view.filter === name ? null : name;
          draw(view, `.chip[data-name="${CSS.escape(name)}"]`);
        },
      },
      `${name} `,
      make("b", "", counts.get(name)),
    ),
  );
  const toggle = (about, of, choices) =>
    make(
      "div",
      { class: `toggle ${of}`, role: "group", "aria-label": about },
      ...choices.map(([value, ...label]) =>
        make(
          "button",
          {
            "aria-pressed": view[of] === value,
            onclick: () => {
              view[of] = value;
              draw(view, `.toggle.${of} [aria-pressed=true]`);
            },
          },
          ...label,
        ),
      ),
    );
  const [axis, at] = view.word || [];
  const word = view.word && named((axis ? view.keys : header.tokens)[at]);
  const does = axis ? [word, " is looked at by"] : [word, " looks at"];
  return make(
    "div",
    "bar",
    make(
      "div",
      { class: "chips", role: "group", "aria-label": "Show only heads of one pattern" },
      ...chips,
    ),
    make(
      "div",
      "toggles",
      view.word &&
        view.as === "grid" &&
        toggle("In each head", "wordFirst", [
          [true, ...does],
          [false, "All rows"],
        ]),
      toggle("Heads as", "as", [
        ["grid", "Grid"],
        ["list", "List"],
      ]),
    ),
  );
}

/** @param {View} view */
const shown = (view, head) => !view.filter || head.name === view.filter;

/** @param {View} view */
function choose(view, { layer, head }) {
  view.send("head", `${layer}.${head}`);
  bus.tell({ layer, head, chosen: true });
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
  const { header, look } = view;
  const status = spokenLine("status", "div");
  const note = make("p", "note");
  const row = view.wordFirst && view.word ? (head, at) => rowOf(view, at) : null;
  const { box, canvas, cells, rove } = headGrid({
    layers: header.heads.length / header.n_head,
    heads: header.n_head,
    about: "All heads, layers down, heads across. Arrow keys move, Enter opens.",
    shape: header.columns / header.rows,
    cell: (at) => {
      const head = header.heads[at];
      const list = row?.(head, at);
      /** @type {any[]} */
      const says = list ? [spoken(head), ". ", ...rowText(view, at, list)] : [spoken(head)];
      const cell = make(
        "button",
        {
          class: `cell${shown(view, head) ? "" : " dim"}${head.back ? " back" : ""}`,
          "aria-label": says.map((each) => each.textContent ?? each).join(""),
          onclick: () => choose(view, head),
          onfocus: () => {
            view.focus = at;
            status.replaceChildren(...says.map((each) => each.cloneNode?.(true) ?? each));
          },
          onmousemove: (event) => hover(view, event, cell, at, status),
          onmouseleave: () => status.replaceChildren(),
        },
        make("span", "thumb"),
        list ? rowCaption(view, at, list) : caption(head),
      );
      return cell;
    },
  });
  view.mark = () => {
    const { layer, head } = bus.now;
    cells.forEach((cell, at) => {
      const on = header.heads[at].layer === layer && header.heads[at].head === head;
      cell.setAttribute("aria-pressed", `${on}`);
      if (on) view.focus = at;
    });
    rove(view.focus ?? 0);
  };
  view.mark();
  const [low, high] = ends(header.scale, header.log);
  const foot = make("div", "foot", status, legend(look.one, low, high));
  view.ready = () =>
    fitted(view, box, () => {
      const fold = header.fold * paint(view, box, canvas, cells);
      if (fold) note.textContent = noteOf(view, fold);
    });
  return [box, foot, note];
}

/** @param {View} view @param {number} fold cells each way behind a pixel */
function noteOf({ header, word, wordFirst }, fold) {
  const said =
    word && wordFirst
      ? header.note.replace(/^.*? first token top left\. /, "One bar a token, first token left. ")
      : header.note;
  const quiet = header.quiet.length
    ? " Tokens left out have no column, and heads that mostly rest on them stand back."
    : "";
  return said + quiet + (fold > 1 ? ` A pixel is the largest of ${fold} × ${fold} cells.` : "");
}

// What a button says is its label: the figure below it says the same in short.
const caption = (head) =>
  make(
    "span",
    { class: "caption", "aria-hidden": "true" },
    make("span", "name", UNNAMED.includes(head.name) ? "–" : head.name),
    figure(head) && make("span", "score", figure(head)),
  );

// ---- painting and pointing -----------------------------------------------------------------------

/** @param {View} view */
function paint(view, box, canvas, cells) {
  const { header, blocks, look } = view;
  const { scale, log } = header;
  const [axis, place] = (view.wordFirst && view.word) || [];
  const held = place === undefined ? -1 : Math.floor(place / header.fold);
  const size = header.rows * header.columns;
  /** @type {Uint32Array[]} */
  const tables = [];
  const bytes = (at) => {
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
    words: (at, row) => {
      const peak = blocks.peak[at];
      if (scale === "row")
        return thumbWords(look.one, peak, peak * (Math.max(...row) / 255) ** 2, log);
      return (tables[at] ||= thumbWords(look.one, peak, scale === "head" ? peak : 1, log));
    },
    faint: (at) => cells[at].matches(".dim, .back"),
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
  const strip = view.wordFirst && view.word;
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
    " looks at ",
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
