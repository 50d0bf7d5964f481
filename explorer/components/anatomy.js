// @ts-check
// One weight taken apart. Four pictures share this file: the head's matrix, the story of a cell, a
// vector as a strip, the split into heads.

import style from "./anatomy.css.js";
import { shapes } from "./anatomy_shapes.js";
import { story } from "./anatomy_story.js";
import { strips } from "./anatomy_strips.js";
import { hatched, legend, plane, raster } from "./matrix_canvas.js";
import { fitted, focused, hear, letter, make, mount, put, redraw } from "./mount.js";
import { notAllowed, num, ofRow, spokenLine } from "./number_format.js";
import { stepped } from "./keys.js";
import { clamp, shade, wordAt } from "./theme.js";
import { named } from "./tokens.js";
import { looksAhead, permitted, unfold } from "./codec.js";

/** @typedef {import("./mount.js").View} View */

const MOST_NAMED = 60; // tokens named along the matrix

export default mount("anatomy", style, (view) => {
  const { root, header } = view;
  view.at ||= {};
  view.fits = [];
  view.groups = {};
  const focus = focused(root)?.dataset.focus;
  root.className = `anatomy ${header.kind}`;
  ({ matrix, story, strip, shapes })[header.kind](view);
  fitted(view, root, () => view.fits.forEach((fit) => fit()));
  const again = focus && root.querySelector(`[data-focus="${CSS.escape(focus)}"]`);
  if (again) /** @type {HTMLElement} */ (again).focus({ preventScroll: true });
});

/** @param {View} view */
function matrix(view) {
  const { header, blocks, look } = view;
  const [rows, n] = [header.queries.length, header.keys.length];
  const { weight, unknown } = unfold(blocks);
  const free = permitted(blocks.runs, rows * n);
  const ahead = looksAhead(free, n);
  const peak = weight.reduce((a, b) => Math.max(a, b), 0);
  const line = spokenLine("told");
  const { scroll, canvas, marks, size, bring, sign } = plane({
    rows: header.queries,
    columns: header.keys,
    sides: header.sides,
    masked: Boolean(free),
    marks: ["mark", "over"],
    canvas: header.about,
    about: `${header.about}. Arrow keys move from cell to cell, Enter opens one.`,
    start: (by) => stepped(view.cell || [0, 0], by, rows, n),
    look: (cell, byKey) => {
      show(cell);
      if (cell && byKey) bring(cell);
    },
    open: (cell) => {
      view.cell = cell;
      view.send("cell", cell);
      show(cell);
    },
    says: ([q, k]) => [valueOf(q, k), header.queries[q], header.keys[k]],
  });
  raster(
    rows,
    n,
    (at) => (free && !free[at] ? undefined : wordAt(look.one, shade(weight[at], peak))),
    canvas,
  );
  const valueOf = (q, k) => {
    const at = q * n + k;
    const about = unknown && unknown[at] > 0.00005 ? "≈ " : "";
    return free && !free[at] ? notAllowed(q, k, ahead) : about + ofRow(weight[at], 3);
  };
  const inside = (cell) => cell && cell[0] < rows && cell[1] < n;
  const show = (over) => {
    [view.cell, over].forEach((cell, i) =>
      put(marks[i], {
        hidden: !inside(cell),
        vars: inside(cell) ? { row: cell[0], at: cell[1] } : {},
      }),
    );
    const cell = over || view.cell;
    if (!inside(cell)) return line.replaceChildren("Choose a cell to open it.");
    const [q, k] = cell;
    line.replaceChildren(
      named(header.queries[q]),
      ` ${q} → `,
      named(header.keys[k]),
      ` ${k}  `,
      make("strong", "", valueOf(q, k)),
    );
  };
  view.fits.push(() => {
    const unit = letter();
    const room = scroll.clientWidth - (scroll.querySelector(".down")?.clientWidth || 96) - 4;
    const least = Math.max(rows, n) <= MOST_NAMED ? 0.75 * unit : 3;
    const tall = Math.max(22 * unit, window.innerHeight * 0.5);
    size(clamp(Math.min(room / n, Math.max(1.25 * unit, tall / rows)), least, 2.5 * unit));
  });
  const foot = make("div", "foot", legend(look.one, "0", num(peak, 3)), free && hatched(), sign);
  redraw(view, [line, scroll, foot], [".scroll"]);
  // The story says which cell is open; the matrix is not sent again for it.
  hear(view, ({ anatomy }) => {
    if (anatomy?.matrix === header.token) view.cell = anatomy.cell;
    show(null);
  });
}

/** @param {View} view */
function strip(view) {
  const { header, blocks } = view;
  const { vector } = blocks;
  const piece = header.heads ? vector.length / header.heads : 0;
  const say = (at) => [
    piece
      ? `head ${Math.floor(at / piece)}, its ${header.unit} ${at % piece}:  ${num(vector[at])}`
      : `${header.unit} ${at}:  ${num(vector[at])}`,
  ];
  const rest = piece
    ? `${vector.length} numbers in ${header.heads} pieces of ${piece}; the framed piece is head ${header.head}’s.`
    : `${vector.length} numbers, length ${num(Math.hypot(...vector))}`;
  const name = header.name ? [header.name] : [];
  const box = strips(view, {
    group: "one",
    id: "one",
    n: vector.length,
    about: header.about,
    say,
    rest: [rest],
    cuts: header.heads,
    cut: header.head,
    rows: [{ name, values: vector, sides: "two", top: header.top, strong: true }],
  });
  if (!header.name) box.classList.add("bare");
  view.root.replaceChildren(box);
}
