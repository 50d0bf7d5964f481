// @ts-check
// The table of the logit lens: only columns in sight are in the page, and a map shows the whole.

import { raster } from "./matrix_canvas.js";
import { arrow, plainKey } from "./keys.js";
import { fitted, focused, hear, letter, make, put, until } from "./mount.js";
import { chance, spokenLine } from "./number_format.js";
import { clamp, wordAt } from "./theme.js";
import { named, tint } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const SPARE = 6; // columns drawn on either side of those in sight

/** @param {View} view @param {Record<string, any>} of how cells are told and coloured */
export function grid(view, of) {
  const { header, blocks, root } = view;
  const n = header.tokens.length;
  view.of = of;
  view.farthest = blocks.kl.reduce((most, kl) => Math.max(most, kl), 0);
  const text = header.tokens.join(" ") + header.sites.length;
  const same = view.text === text;
  view.text = text;
  if (!same) view.focus = view.held = undefined; // a cell of another text may not be here
  const before = same && view.scroll ? view.scroll.scrollLeft : 0;
  const wasFocused = focused(root)?.classList.contains("say");
  view.says = spokenLine("says");
  view.rows = [-1, ...header.sites.keys()].map((site) => row(view, site));
  const table = make(
    "div",
    {
      class: "table",
      role: "grid",
      "aria-label":
        "What each site would say, sites down, tokens across. Arrow keys move, Enter holds a cell.",
      "aria-rowcount": header.sites.length + 1,
      "aria-colcount": n + 1,
      onmouseleave: () => look(view, null),
    },
    ...view.rows,
  );
  const scroll = (view.scroll = make("div", "scroll", table));
  const map = overview(view);
  view.columns = new Map();
  view.held ??= [header.sites.length - 1, 0];
  view.focus ??= [...view.held];
  root.replaceChildren(view.says, map.box, scroll, of.foot(view));
  view.fill = () => {
    const [first, last] = inSight(view);
    for (const [token, cells] of view.columns)
      if ((token < first || token > last) && token !== view.focus[1]) {
        cells.forEach((cell) => cell.remove());
        view.columns.delete(token);
      }
    for (let token = first; token <= last; token++) need(view, token);
    map.frame();
  };
  fitted(view, root, () => {
    view.side = view.rows[0].firstChild.getBoundingClientRect().width;
    const room = root.clientWidth - 2; // inside the border
    view.cell = clamp(Math.floor((room - view.side) / n), 4.75 * letter(), 8.5 * letter());
    put(table, { vars: { cell: `${view.cell}px`, n } });
    map.box.hidden = view.side + n * view.cell <= room + 1;
    map.paint();
    view.fill();
  });
  scroll.scrollLeft = before;
  scroll.onscroll = view.fill;
  until(view, "scroll", () => (scroll.onscroll = null));
  // The opened cell says which one is held; a cell of another text is none of this table's.
  let marked = false;
  hear(view, ({ lens }) => {
    if (!lens || lens.tokens !== n || lens.sites !== header.sites.length) return;
    const moved = !marked || lens.held[1] !== view.held[1] || !same;
    marked = true;
    if (view.held.join() !== lens.held.join()) view.focus = [...lens.held];
    view.held = [...lens.held];
    if (moved) bring(view, view.held[1], true);
    view.fill();
    remark(view);
    look(view, null);
  });
  if (!marked) look(view, null);
  if (wasFocused) need(view, view.focus[1])[view.focus[0] + 1].focus({ preventScroll: true });
}

/** The first and last column to draw. @param {View} view */
function inSight({ scroll, cell, side, header }) {
  const first = Math.floor(scroll.scrollLeft / cell) - SPARE;
  const last = Math.ceil((scroll.scrollLeft + scroll.clientWidth - side) / cell) + SPARE;
  return [Math.max(0, first), Math.min(header.tokens.length - 1, last)];
}

/** @param {View} view */
function row({ header }, site) {
  const top = site < 0;
  const last = site === header.sites.length - 1;
  const name = make(
    "span",
    { class: "name", role: top ? "columnheader" : "rowheader", "aria-colindex": 1 },
    top ? make("span", "", "reads") : header.sites[site],
    top && header.asksNext && make("span", "", "comes next"),
    last && make("em", "", "the model’s answer"),
  );
  const kind = `row${top ? " top" : ""}${last ? " last" : ""}`;
  return make("div", { class: kind, role: "row", "aria-rowindex": site + 2 }, name);
}

/** The elements of a column, the head first; made when they are first wanted. @param {View} view */
function need(view, token) {
  const made = view.columns.get(token);
  if (made) return made;
  const cells = [
    head(view, token),
    ...view.header.sites.map((_, site) => cellOf(view, site, token)),
  ];
  view.columns.set(token, cells);
  cells.forEach((cell, at) => {
    put(cell, { vars: { at: token }, "aria-colindex": token + 2 });
    view.rows[at].append(cell);
  });
  return cells;
}

/** @param {View} view */
function head(view, token) {
  const { header, held } = view;
  const right = header.right[token];
  const label = header.labels[right];
  const next = header.asksNext ? `; “${label}” comes next` : `; it hides “${label}”`;
  return make(
    "div",
    {
      class: token === held[1] ? "head on" : "head",
      role: "columnheader",
      title: `${header.tokens[token]} (token ${token})${right >= 0 ? next : ""}`,
      onclick: () => choose(view, [view.held[0], token]),
    },
    named(header.tokens[token], "reads"),
    right >= 0 && named(`${header.asksNext ? "→ " : "hides "}${label}`, "next"),
    right < 0 && header.asksNext && make("b", "next", "→ ?"),
  );
}

/** @param {View} view */
function cellOf(view, site, token) {
  const {
    header,
    blocks,
    look: { one },
    of,
  } = view;
  const at = site * header.tokens.length + token;
  const best = blocks.words[at * header.top];
  const right = best === header.right[token];
  const p = chance(Math.exp(blocks.logp[at * header.top]));
  const cell = make(
    "div",
    {
      class: "say",
      role: "gridcell",
      tabindex: view.focus[0] === site && view.focus[1] === token ? 0 : -1,
      "aria-label": `${header.spoken[site]}, token ${token}, ${header.tokens[token]}: ${header.labels[best]}, ${p}${right ? ", right" : ""}`,
      "aria-selected": view.held[0] === site && view.held[1] === token,
      onclick: () => choose(view, [site, token]),
      onmouseenter: () => look(view, [site, token]),
      onblur: () => look(view, null),
      onkeydown: (event) => step(view, event, site, token),
      onfocus: () => {
        focusOn(view, site, token);
        look(view, [site, token]);
      },
    },
    right && make("i", "tick", "✓"),
    named(header.labels[best], best === header.final[token] ? "same" : ""),
  );
  tint(cell, wordAt(one, of.share(view, at)));
  return cell;
}

/** Of all cells one can be reached with Tab. @param {View} view */
function focusOn(view, site, token) {
  const [s, t] = view.focus;
  const before = view.columns.get(t)?.[s + 1];
  if (before) before.tabIndex = -1;
  view.focus = [site, token];
  need(view, token)[site + 1].tabIndex = 0;
}

/** @param {View} view */
function step(view, event, site, token) {
  if (!plainKey(event)) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    return choose(view, [site, token]);
  }
  const last = view.header.tokens.length - 1;
  const by = arrow(event) || { Home: [0, -token], End: [0, last - token] }[event.key];
  if (!by) return;
  event.preventDefault();
  const [s, t] = [site + by[0], token + by[1]];
  if (s < 0 || t < 0 || s >= view.header.sites.length || t > last) return;
  const cell = need(view, t)[s + 1];
  bring(view, t, false);
  cell.focus({ preventScroll: true });
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** @param {View} view */
function choose(view, held) {
  view.held = held;
  focusOn(view, held[0], held[1]);
  remark(view);
  look(view, null);
  view.send("cell", held.join("."));
}

/** @param {View} view */
function remark({ held: [site, token], columns, focus, rows }) {
  for (const [t, cells] of columns)
    cells.forEach((cell, at) => {
      if (at === 0) return cell.classList.toggle("on", t === token);
      cell.setAttribute("aria-selected", t === token && at === site + 1);
      cell.tabIndex = focus[0] === at - 1 && focus[1] === t ? 0 : -1;
    });
  rows.forEach((line, at) => line.classList.toggle("on", at === site + 1));
}

// Scroll a column into sight, clear of the heads of the rows: to the middle, or no further than it takes.
/** @param {View} view */
function bring(view, token, toMiddle) {
  const { scroll, cell, side } = view;
  const [left, room] = [token * cell, scroll.clientWidth - side];
  const [before, after] = [left < scroll.scrollLeft, left + cell > scroll.scrollLeft + room];
  const near = before ? left - cell / 2 : left + 1.5 * cell - room;
  if (before || after) scroll.scrollLeft = toMiddle ? left + cell / 2 - room / 2 : near;
  view.fill();
}

/** On the cell that is pointed at, else on the one that is held. @param {View} view */
const look = (view, over) => view.says.replaceChildren(...view.of.told(view, over || view.held));

// Every cell as a few pixels, where the table is wider than its frame; the box is what the table shows.
/** @param {View} view */
function overview(view) {
  const {
    header,
    look: { one },
    of,
  } = view;
  const [rows, n] = [header.sites.length, header.tokens.length];
  const [canvas, glass] = [make("canvas"), make("span", "glass")];
  const paint = () => raster(rows, n, (at) => wordAt(one, of.share(view, at)), canvas);
  const frame = () => {
    const { scroll, cell, side } = view;
    const [from, width] = [scroll.scrollLeft, scroll.clientWidth - side].map(
      (each) => each / (n * cell),
    );
    put(glass, { style: { left: `${100 * from}%`, width: `${100 * Math.min(1, width)}%` } });
  };
  const to = (event) => {
    const { scroll, cell, side } = view;
    const at = (event.clientX - box.getBoundingClientRect().left) / box.clientWidth;
    scroll.scrollLeft = at * n * cell - (scroll.clientWidth - side) / 2;
  };
  const box = make(
    "div",
    {
      class: "map",
      "aria-hidden": "true", // the table below says the same, cell by cell
      onpointerdown: (event) => {
        box.setPointerCapture(event.pointerId);
        to(event);
      },
      onpointermove: (event) => event.buttons && to(event),
    },
    canvas,
    glass,
  );
  return { box, paint, frame };
}
