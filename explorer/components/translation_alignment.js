// @ts-check
// The alignment: where each produced token looks in the source.

import { legend, plane, raster } from "./matrix_canvas.js";
import { letter, make, put } from "./mount.js";
import { odds, spokenLine, weightText } from "./number_format.js";
import { offer, paper, plate, scaleBar, tag, text } from "./svg_export.js";
import { clamp, shade, wordAt } from "./theme.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

/** @param {View} view @param {Look} look */
const wordOf = ({ weight, peak }, look, at) => wordAt(look.one, shade(weight[at], peak));

/** @param {View} view */
export function alignment(view) {
  const { header, rows, n, title } = view;
  const value = spokenLine("value");
  let over = null;
  const { scroll, left, top, canvas, marks, size, bring, sign, point } = plane({
    rows: header.says.map((label) => `→ ${label}`),
    columns: header.source,
    sides: ["output token", "source"],
    names: ["says-axis", "source-axis"],
    marks: ["row", "column"],
    canvas: `Alignment, ${title}: ${rows} produced tokens down, ${n} source tokens across. The numbers are in the table below.`,
    about:
      "Alignment matrix. Up and down step through the output, left and right read the row’s weights.",
    start: ([down]) => [clamp(view.step + down, 0, rows - 1), 0],
    look: (cell, byKey) => {
      if (cell && byKey) {
        view.stepper.go(cell[0]);
        bring(cell);
      }
      read(cell);
    },
    open: ([row]) => view.stepper.go(row),
    choose: (axis, at) => axis === 0 && view.stepper.go(at),
    says: ([r, c]) => [figure(r * n + c), header.says[r], header.source[c]],
  });
  raster(rows, n, (at) => wordOf(view, view.look, at), canvas);
  const figure = (at) => weightText(view.weight[at], view.unknown?.[at]);
  const [held, column] = marks;
  held.hidden = false;
  const read = (cell) => {
    over = cell;
    put(column, { hidden: !cell, vars: { at: cell?.[1] } });
    [...top.children].forEach((e, at) => e.classList.toggle("on", at === cell?.[1]));
    if (!cell)
      return value.replaceChildren(
        "Point at a cell, or tap it, for its weight. Each row sums to 1.",
      );
    value.replaceChildren(
      `Step ${cell[0] + 1}: when generating `,
      named(header.says[cell[0]]),
      " it attends to ",
      named(header.source[cell[1]]),
      "  ",
      make("strong", "", figure(cell[0] * n + cell[1])),
    );
  };
  read(null);
  view.sized.push(() => {
    const room = scroll.clientWidth - (top.offsetLeft || 96) - 4;
    const tall = Math.max(30 * letter(), window.innerHeight * 0.6);
    size(clamp(room / n, 12, 56), clamp(tall / rows, 14, 44));
  });
  view.parts.push((step) => {
    put(held, { vars: { at: step }, data: { at: step } });
    [...left.children].forEach((e, at) => e.classList.toggle("on", at === step));
    if (over && over[0] !== step) point(null);
    bring([step, -1]);
  });
  offer(view, "Alignment", (look) => drawing(view, look));
  return make(
    "section",
    "alignment",
    make("h4", "", `Alignment: ${title.replace("Mean", "mean").replace("Layer", "layer")}`),
    scroll,
    value,
    make(
      "div",
      "foot",
      legend(view.look.one, "0", `${view.peak.toFixed(3)}, the largest here`),
      sign,
    ),
    ...header.caption.slice(0, 2).map((line) => make("p", "note", line)),
  );
}

// The matrix with its labels, scale and caption: it says what it is without the page around it.
/** @param {View} view @param {Look} look */
function drawing(view, look) {
  const { header, rows, n, blocks, step } = view;
  const cell = Math.max(12, Math.min(36, 560 / n));
  const x = 190;
  const width = Math.max(x + n * cell + 24, 640);
  const title = `Cross-attention: ${view.title.toLowerCase()}`;
  return paper(look, { title, caption: header.caption, width, most: 12 }, (top) => {
    const y = top + 76;
    const foot = y + rows * cell + 24;
    const row = { x, y: y + step * cell, width: n * cell, height: cell };
    const says = header.says.map((label, at) => `${label}  ${odds(Math.exp(blocks.logprob[at]))}`);
    const parts = [
      text(16, y - 8, "output, p ↓  source →", { "font-size": 11 }),
      plate(look, {
        x,
        y,
        wide: cell,
        rows: says,
        columns: header.source,
        long: [24, 9],
        word: (at) => wordOf(view, look, at),
      }),
      tag("rect", { ...row, fill: "none", stroke: look.primary, "stroke-width": 2 }),
      scaleBar(look, look.one, x + 30, foot, ["0", view.peak.toFixed(3)]),
      text(x + 230, foot + 11, `Outlined: step ${step + 1}.`),
    ];
    return [parts.join(""), foot + 32];
  });
}
