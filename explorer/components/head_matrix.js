// @ts-check
// A head's matrix: rows look, columns are looked at; one row, one column and one cell may be held.

import { touched } from "./cell_tooltip.js";
import { ends, hatched, legend, plane, raster } from "./matrix_canvas.js";
import { letter, make, put } from "./mount.js";
import { share } from "./number_format.js";

/** @typedef {import("./mount.js").View} View */

const READABLE = 11; // pixels of a cell at which its labels can still be read
const WIDEST = 60;

/** @param {View} view @param {Record<string, any>} head what the views of a head share */
export function matrix(view, { COLUMN, ROW, coloured, hold, look, open, value }) {
  const { header, n } = view;
  const rows = header.queries.length;
  const [down, right] = view.sides;
  const { scroll, frame, top, spans, canvas, marks, size, bring, sign, point, tell } = plane({
    rows: header.queries,
    columns: header.keys,
    sides: view.sides,
    masked: Boolean(view.permitted),
    late: view.late,
    marks: ["row pinned", "column pinned", "row", "column", "opened pinned"],
    canvas: `Attention of ${header.title}: ${rows} ${down} tokens down, ${n} ${right} tokens across. The table view has the numbers.`,
    about: "Matrix. Arrow keys move from cell to cell, Enter holds the row and opens the cell.",
    start: () => [Math.max(0, view.held[ROW]), 0],
    look: (cell, byKey) => {
      view.cursor = byKey ? cell : null;
      look(view, cell);
      if (cell && byKey) bring(cell);
    },
    open: (cell) => open(view, ...cell),
    choose: (axis, at) => hold(view, axis, at),
    says: ([q, k]) => [value(view, q, k), header.queries[q], header.keys[k]],
  });
  raster(rows, n, (at) => coloured(view, at), canvas);
  const hidden = view.hidden && hiddenStrip(view.hidden, frame);
  const note = make("span", "note");
  const fit = make("button", {
    class: "small",
    data: { focus: "fit" },
    onclick: () => {
      view.whole = !view.whole;
      sized();
    },
  });
  // Many names are laid out slowly: at once at the size that they will have.
  if (n * READABLE > window.innerWidth && !view.whole) size(READABLE);
  // Twice: names grow with the cells, and leave them less room.
  const sized = () => [1, 2].forEach(measured);
  const measured = () => {
    const room = scroll.clientWidth - (top.offsetLeft || 96) - 4 - (hidden?.offsetWidth || 0);
    const tall = Math.max(22.5 * letter(), Math.min(46 * letter(), window.innerHeight - 480));
    const fitting = Math.min(room / n, Math.max(22, Math.min(WIDEST, tall / rows)));
    const every = size(view.whole ? fitting : Math.max(fitting, READABLE));
    scroll.classList.toggle("whole", Boolean(view.whole));
    fit.textContent = view.whole ? "Readable size" : "Fit whole matrix";
    fit.hidden = fitting >= READABLE;
    note.textContent = every > 1 ? `One token in ${every} is named.` : "";
  };
  view.fit = [scroll, sized];
  view.point = point;
  const [pinRow, pinColumn, overRow, overColumn, cell] = marks;
  const at = (mark, place, vars = {}) =>
    put(mark, { hidden: place < 0, vars: { at: place, ...vars } });
  view.draw = (q, k) => {
    const [row, column] = view.held;
    at(pinRow, row);
    at(pinColumn, column);
    at(overRow, q);
    at(overColumn, k);
    const opened = view.cell?.[ROW] === row ? view.cell : null;
    at(cell, opened ? opened[COLUMN] : -1, { row });
    if (q < 0 && touched()) tell(opened);
    spans.forEach((list, axis) =>
      list.forEach((e, i) => e.classList.toggle("on", i === [q, k][axis] || i === view.held[axis])),
    );
  };
  const [low, high] = ends(
    header.scale,
    header.log,
    header.scale === "head" ? view.peak.toFixed(3) : undefined,
  );
  const scale = legend(view.look.one, low, high);
  return [scroll, make("div", "foot", fit, sign, note, view.permitted && hatched(), scale)];
}

// Beside each row what of it is hidden: a bar and a number, right of the cells and apart from them.
function hiddenStrip(shares, frame) {
  frame.classList.add("with-hidden");
  const strip = make(
    "div",
    { class: "hidden-side", "aria-hidden": "true" },
    ...[...shares].map((part) => make("span", { vars: { share: part } }, share(part))),
  );
  frame.children[1].after(make("div", { class: "hidden-top", "aria-hidden": "true" }, "hidden"));
  frame.append(strip);
  return strip;
}
