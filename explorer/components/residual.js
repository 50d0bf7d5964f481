// @ts-check
// One number of the residual stream by token and place as a map, and one token's way through it as a
// line (or bars, for heads).

import { bus } from "./bus.js";
import { cellAt, context, legend, raster } from "./matrix_canvas.js";
import { arrow, plainKey } from "./keys.js";
import { fitted, hear, make, mount, put, redraw } from "./mount.js";
import style from "./residual.css.js";
import { followed, placeInGroup } from "./token_profile.js";
import { exact, fixed, spokenLine } from "./number_format.js";
import { BOLD, offer, paper, plate, scaleBar, tag, text } from "./svg_export.js";
import { css, inkOn, wordAt } from "./theme.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const WIDEST = 92;
const NARROWEST = 15;
const NUMBERS_FROM = 40; // pixels of a cell's width from which its number is written in it
const MOST_FINE_ROWS = 64;

export default mount("residual", style, (view) => {
  const { header } = view;
  if (!view.same) ({ chart, followed })[header.kind](view, say);
  // The map marks the token that the line follows; the line says which one that is.
  if (header.kind === "followed")
    bus.tell({ residual: { picture: header.picture, token: header.chosen } });
  else
    hear(view, ({ residual }) => residual?.picture === header.token && view.mark(residual.token));
});

/** @param {View} view @param {Look} look */
function wordOf({ header }, look, value) {
  if (Number.isNaN(value)) return undefined;
  const { low, high, log, measure } = header;
  const share = log
    ? value > 0
      ? Math.log(value / low) / Math.log(high / low)
      : 0
    : (value - low) / (high - low);
  return wordAt(measure.diverging ? look.two : look.one, share);
}

const say = ({ measure }, value) =>
  Number.isNaN(value) ? "not defined" : exact(value, measure.digits) + measure.unit;

// In a cell there is room for the digits and no more.
const brief = ({ measure }, value) => fixed(value, measure.digits) + measure.unit;

// ---- the map -------------------------------------------------------------------------------------

/** @param {View} view */
function chart(view) {
  const { header, blocks, look } = view;
  const [m, n] = [header.tokens.length, header.columns.length];
  const across = heads(header.columns);
  const labels = [...across.querySelectorAll(".label")];
  const [held, over] = [
    make("i", { class: "held", hidden: true }),
    make("i", { class: "over", hidden: true }),
  ];
  const canvas = make("canvas");
  const cells = make("div", "cells", canvas, held, over);
  const value = spokenLine("value");
  const rest = `${header.measure.name}: ${header.measure.meaning}. Point at a cell to read it; ${header.hint}`;
  const read = (y, x) => {
    over.hidden = y === undefined;
    labels.forEach((label, at) => label.classList.toggle("on", at === x));
    if (over.hidden) return value.replaceChildren(rest);
    view.x = x;
    put(over, { vars: { x, y } });
    value.replaceChildren(
      named(header.tokens[y]),
      ` (token ${y}), ${header.columns[x][2]}: `,
      make("strong", "", say(header, blocks.values[y * n + x])),
    );
  };
  const choose = (at) => {
    view.mark(at);
    view.send("token", at);
  };
  const list = header.tokens.map((label, at) =>
    make(
      "button",
      {
        class: `row${header.special[at] ? " special" : ""}`,
        dir: "auto",
        tabindex: at ? -1 : 0,
        data: { focus: `row ${at}` },
        "aria-pressed": false,
        "aria-label": `Token ${at}, ${label}`,
        title: label,
        onclick: () => choose(at),
        onfocus: () => read(at, view.x ?? 0),
        onkeydown: (event) => step(event, at),
      },
      label,
    ),
  );
  const stop = (at) => list.forEach((one, i) => (one.tabIndex = i === at ? 0 : -1));
  const step = (event, at) => {
    if (!plainKey(event)) return;
    const [down, right] = arrow(event) || [0, 0];
    const far = {
      Home: 0,
      End: m - 1,
      PageDown: Math.min(m - 1, at + 10),
      PageUp: Math.max(0, at - 10),
    };
    const to = far[event.key] ?? at + down;
    if (!right && to === at) return;
    event.preventDefault();
    event.stopPropagation();
    if (right) {
      read(at, Math.max(0, Math.min(n - 1, (view.x ?? 0) + right)));
      bring(-1, view.x);
    } else if (list[to]) {
      stop(to);
      list[to].focus({ preventScroll: true });
      bring(to, -1);
    }
  };
  const rows = make("div", "rows", ...list);
  const frame = make("div", "frame", make("div", "corner"), across, rows, cells);
  const scroll = make(
    "div",
    {
      class: "scroll",
      role: "group",
      "aria-label": `${header.title}: tokens down, places across. Up and down move from token to token, left and right from place to place, Enter follows the token. The table below has the same numbers.`,
    },
    frame,
  );
  const near = (now, room, from, size) =>
    from < now ? from : from + size > now + room ? from + size - room : now;
  const bring = (y, x) => {
    const [high, wide] = [
      scroll.clientHeight - across.offsetHeight,
      scroll.clientWidth - rows.offsetWidth,
    ];
    if (y >= 0) scroll.scrollTop = near(scroll.scrollTop, high, y * view.high, view.high);
    if (x >= 0) scroll.scrollLeft = near(scroll.scrollLeft, wide, x * view.wide, view.wide);
  };
  view.mark = (at) => {
    put(held, { hidden: !(at >= 0 && at < m), vars: { at } });
    list.forEach((one, i) => one.setAttribute("aria-pressed", `${i === at}`));
    stop(at);
    if (!held.hidden && view.high) bring(at, -1);
    view.root.dataset.followed = at;
  };
  cells.onmousemove = (event) => read(...(cellAt(event, cells, m, n) || []));
  cells.onmouseleave = () => read();
  cells.onclick = (event) => {
    const cell = cellAt(event, cells, m, n);
    if (cell) choose(cell[0]);
  };
  const words = header.measure.diverging ? look.two : look.one;
  const top = `${say(header, header.high)}${header.log ? ", logarithmic" : ""}`;
  offer(view, "Map", (on) => drawing(view, on));
  const foot = make("div", "foot", legend(words, say(header, header.low), top));
  value.replaceChildren(rest);
  redraw(view, [scroll, value, foot], [".scroll"]);
  const longest = Math.max(...header.columns.map(([, label]) => label.length), 1) * 7.5;
  const numbered = header.columns.every(([, label]) => /^\d+$/.test(label));
  fitted(view, view.root, () => {
    const room = Math.floor((scroll.clientWidth - rows.offsetWidth - 2) / Math.max(1, n));
    view.wide = Math.max(NARROWEST, Math.min(WIDEST, room));
    view.high = m <= 24 ? 28 : m <= MOST_FINE_ROWS ? 21 : 14;
    put(frame, { vars: { wide: `${view.wide}px`, high: `${view.high}px`, n, m } });
    across.classList.toggle("upright", !numbered && longest > view.wide);
    across.classList.toggle("sparse", numbered && longest + 4 > view.wide);
    paint(view, canvas, m, n);
  });
}

function heads(columns) {
  /** @type {[string, number][]} */
  const groups = [];
  for (const [group] of columns) {
    const last = groups.at(-1);
    if (last && last[0] === group) last[1]++;
    else groups.push([group, 1]);
  }
  return make(
    "div",
    "across",
    ...groups.map(([group, size]) =>
      make(
        "span",
        { class: "group", title: group, style: { gridColumn: `span ${size}` } },
        size === 1 && group === "Input" ? "In" : group,
      ),
    ),
    ...columns.map(([, label, name], at) =>
      make(
        "span",
        { class: placeInGroup(columns, at) % 2 ? "label odd" : "label", title: name },
        label,
      ),
    ),
  );
}

/** @param {View} view */
function paint(view, canvas, m, n) {
  const { blocks, header, look, root } = view;
  const colour = (at) => wordOf(view, look, blocks.values[at]);
  canvas.dataset.painted = header.token;
  if (m > MOST_FINE_ROWS) {
    raster(m, n, colour, canvas);
    return;
  }
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [view.wide * ratio, view.high * ratio];
  put(canvas, { width: Math.max(1, Math.round(n * wide)), height: Math.round(m * high) });
  const pen = context(canvas);
  pen.font = `${12.5 * ratio}px ${getComputedStyle(root).fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  blocks.values.forEach((value, at) => {
    const [y, x] = [Math.floor(at / n), at % n];
    const word = colour(at);
    pen.fillStyle = word === undefined ? look.border : css(word);
    pen.fillRect(Math.round(x * wide), Math.round(y * high), Math.ceil(wide), Math.ceil(high));
    if (view.wide < NUMBERS_FROM) return;
    pen.fillStyle = word === undefined ? look.ink : inkOn(word);
    const figure = Number.isNaN(value) ? "–" : brief(header, value);
    pen.fillText(figure, (x + 0.5) * wide, (y + 0.54) * high);
  });
}

// ---- the file ------------------------------------------------------------------------------------

/** @param {View} view @param {Look} look */
function drawing(view, look) {
  const { header, blocks } = view;
  const { columns, tokens } = header;
  const [m, n] = [tokens.length, columns.length];
  const wide = Math.max(22, Math.min(64, 720 / n));
  const high = m > MOST_FINE_ROWS ? 14 : 20;
  const x = 150;
  const width = Math.max(680, x + n * wide + 24);
  return paper(look, { title: header.title, caption: header.caption, width, most: 10 }, (from) => {
    const y = from + 78;
    const groups = columns.map(([name], at) =>
      placeInGroup(columns, at)
        ? ""
        : text(x + at * wide + 2, from + 2, n > 14 ? name.replace("Layer ", "L") : name, BOLD),
    );
    const at = Number(view.root.dataset.followed);
    const row = { x, y: y + at * high, width: n * wide, height: high };
    const mark = { fill: "none", stroke: look.primary, "stroke-width": 2 };
    const foot = y + m * high + 24;
    const parts = [
      ...groups,
      plate(look, {
        x,
        y,
        wide,
        high,
        rows: tokens,
        columns: columns.map(([, label]) => label),
        word: (i) => wordOf(view, look, blocks.values[i]),
      }),
      at >= 0 ? tag("rect", { ...row, ...mark }) : "",
      scaleBar(look, header.measure.diverging ? look.two : look.one, x, foot, [
        say(header, header.low),
        say(header, header.high),
      ]),
    ];
    return [parts.join(""), foot + 32];
  });
}
