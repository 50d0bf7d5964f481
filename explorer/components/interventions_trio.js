// @ts-check
// One head's matrix before, after, and the difference, under one crosshair.

import { bus } from "./bus.js";
import { hatched, legend, plane, raster } from "./matrix_canvas.js";
import { fitted, letter, make, put } from "./mount.js";
import { signed, spokenLine } from "./number_format.js";
import { BOLD, offer, paper, plate, scaleBar, text } from "./svg_export.js";
import { shade, wordAt } from "./theme.js";
import { named } from "./tokens.js";
import { permitted, unfold } from "./codec.js";

/** @typedef {import("./mount.js").View} View */

const TITLES = { before: "Before", after: "After", difference: "After − before" };
const PARTS = Object.keys(TITLES);

/** @param {View} view */
export function trio(view) {
  const { root, header, blocks, look } = view;
  const [m, n] = [header.rows.length, header.keys.length];
  view.may = {};
  for (const name of ["before", "after"]) {
    view[name] = unfold(blocks, `${name}.`);
    view.may[name] = permitted(blocks[`${name}.runs`], m * n);
  }
  const { before, after, may } = view;
  view.difference = Float32Array.from(before.weight, (weight, at) => after.weight[at] - weight);
  const largest = (list) => list.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
  view.full = Math.max(largest(before.weight), largest(after.weight));
  view.far = largest(view.difference);
  const line = spokenLine("status");
  const masked = Boolean(may.before || may.after);
  const read = (cell) => {
    planes.forEach((each) => each.mark(cell || [-1, -1]));
    if (!cell)
      return line.replaceChildren(
        `Point at a cell, or use the arrow keys on a matrix, to read it in all three. Rows are queries, columns keys.${masked ? " Hatched: not allowed." : ""}`,
      );
    const [q, k] = cell;
    const at = q * n + k;
    const parts = PARTS.map((name) => make("strong", "", value(view, name, at)));
    const who = [named(header.rows[q]), " attends to ", named(header.keys[k]), ": "];
    line.replaceChildren(...who, parts[0], " before, ", parts[1], " after, difference ", parts[2]);
  };
  const planes = PARTS.map((name) => panel(view, name, read));
  const box = make("div", "trio", ...planes.map((each) => each.box));
  const foot = make(
    "div",
    "foot",
    legend(look.one, "0", view.full.toFixed(2)),
    legend(look.two, signed(-view.far, 2), signed(view.far, 2)),
    masked && hatched(),
  );
  offer(view, "Matrices", (on) => drawing(view, on));
  root.replaceChildren(box, line, foot);
  read(null);
  bus.tell({ layer: header.layer, head: header.head });
  fitted(view, box, () => planes.forEach((each) => each.fit()));
}

/** @param {View} view */
function panel(view, name, read) {
  const { header, look } = view;
  const [m, n] = [header.rows.length, header.keys.length];
  const { scroll, left, top, canvas, marks, size, bring, sign } = plane({
    rows: header.rows,
    columns: header.keys,
    sides: ["query", "key"],
    masked: Boolean(view.may[name]),
    focus: name,
    marks: ["row", "column"],
    canvas: `${TITLES[name]}: ${header.title}`,
    about: `${TITLES[name]}: ${header.title}. Arrow keys read the cells; the table below has the same numbers.`,
    start: () => [0, 0],
    look: (cell, byKey) => {
      read(cell);
      if (cell && byKey) bring(cell);
    },
    says: ([q, k]) => [value(view, name, q * n + k), header.rows[q], header.keys[k]],
  });
  raster(m, n, (at) => wordOf(view, look, name, at), canvas);
  canvas.dataset.painted = header.token;
  const fit = () => {
    const room = scroll.clientWidth - (top.offsetLeft || 88) - 4;
    size(Math.max(4, Math.min(room / n, (30 * letter()) / Math.max(m, n), 44)));
  };
  const mark = (cell) => {
    marks.forEach((each, axis) => put(each, { hidden: cell[axis] < 0, vars: { at: cell[axis] } }));
    [left, top].forEach((side, axis) =>
      [...side.children].forEach((span, at) => span.classList.toggle("on", at === cell[axis])),
    );
  };
  const box = make("section", "panel", make("h4", "", TITLES[name]), scroll, sign);
  return { box, fit, mark };
}

/** @param {View} view */
function value(view, name, at) {
  const unknown = (which) => view[which].unknown?.[at] || 0;
  if (name === "difference") {
    const apart = unknown("before") + unknown("after");
    return (apart ? "≈ " : "") + signed(view.difference[at], apart ? 3 : 4);
  }
  if (view.may[name] && !view.may[name][at]) return "not allowed";
  const weight = view[name].weight[at];
  return unknown(name) ? `≈ ${weight.toFixed(3)}` : weight.toFixed(4);
}

/** @param {View} view @param {import("./theme.js").Look} look */
function wordOf(view, look, name, at) {
  if (name === "difference")
    return wordAt(look.two, 0.5 + (view.far > 0 ? view.difference[at] / view.far / 2 : 0));
  if (view.may[name] && !view.may[name][at]) return undefined;
  return wordAt(look.one, shade(view[name].weight[at], view.full));
}

// The three matrices with labels, scales and caption, on their own.
/** @param {View} view @param {import("./theme.js").Look} look */
function drawing(view, look) {
  const { header, may } = view;
  const [m, n] = [header.rows.length, header.keys.length];
  const cell = Math.max(2, Math.min(30, 360 / Math.max(m, n)));
  const [aside, above] = [110, 100];
  const one = Math.max(aside + n * cell + 20, 310);
  const title = header.title + (may.before || may.after ? " (hatched: not allowed)" : "");
  return paper(look, { title, caption: header.caption, width: 3 * one + 20 }, (from) => {
    const y = from + above;
    const parts = PARTS.flatMap((name, at) => {
      const x = at * one + aside;
      const change = name === "difference";
      /** @type {[string, string]} */
      const ends = change
        ? [signed(-view.far, 3), signed(view.far, 3)]
        : ["0", view.full.toFixed(3)];
      return [
        text(x, from + 6, TITLES[name], { "font-size": 14, ...BOLD }),
        plate(look, {
          x,
          y,
          wide: cell,
          rows: header.rows,
          columns: header.keys,
          hatch: Boolean(may[name]),
          word: (i) => wordOf(view, look, name, i),
        }),
        scaleBar(look, change ? look.two : look.one, x, y + m * cell + 20, ends),
      ];
    });
    return [parts.join(""), y + m * cell + 50];
  });
}
