// @ts-check
// All heads of an attention as small matrices, layers below each other.

import { num } from "./number_format.js";
import { wordAt } from "./theme.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */

/** @param {Pen} pen @param {any} figure @param {Box} box */
export function headmatrices(
  pen,
  { values, shape, names, selected, select },
  { x, y, width, height = Infinity },
) {
  const { letter, look } = pen;
  const [layers, heads, rows, columns] = shape;
  const [down, across] = [2.4 * letter, 1.5 * letter];
  const [gap, label] = [0.5 * letter, 1.4 * letter];
  const legend = 1.6 * letter;
  const room = (width - down) / heads - gap;
  const most = (height - legend - across) / layers - label;
  const wide = Math.max(1.2 * letter, Math.min(room, 9 * letter, Math.max(most, 3.2 * letter)));
  const high = (wide * Math.min(rows, columns)) / columns;
  const [left, top] = [x + down, y + legend + across];
  pen.scale(left + heads * (wide + gap) - gap, y + 0.5 * letter, look.one, num(0, 2), num(1, 2));
  for (let head = 0; head < heads; head++)
    pen.text(left + head * (wide + gap) + wide / 2, top - 0.7 * letter, `H${head}`, { size: 0.8, anchor: "middle", alpha: 0.75 }); // prettier-ignore
  for (let layer = 0; layer < layers; layer++) {
    const line = top + layer * (high + label);
    pen.text(x, line + high / 2, `L${layer}`, { size: 0.8, alpha: 0.75 });
    for (let head = 0; head < heads; head++) {
      const at = layer * heads + head;
      const spot = left + head * (wide + gap);
      const on = selected[0] === layer && selected[1] === head;
      const draw = () => {
        pen.rect(spot, line, wide, high, { class: "block", fill: look.paper, stroke: look.border }); // prettier-ignore
        pen.cells([spot, line, wide, high], rows, columns, (cell) => {
          const value = values[at * rows * columns + cell];
          return Number.isNaN(value) ? undefined : wordAt(look.one, value);
        });
        if (on) pen.rect(spot - 2, line - 2, wide + 4, high + 4, { fill: "none", stroke: look.primary, "stroke-width": 3, rx: 3 }); // prettier-ignore
        const name = names[at] === "no clear pattern" ? "" : names[at];
        pen.text(spot, line + high + 0.65 * letter, name, { size: 0.75, room: wide, bold: on, fill: on ? look.primary : undefined }); // prettier-ignore
      };
      const said = `Layer ${layer}, head ${head}: ${names[at]}`;
      if (select.length)
        pen.target({ select: [`${layer}`, `${head}`], label: said, pressed: on }, draw); // prettier-ignore
      else draw();
    }
  }
  return legend + across + layers * (high + label);
}
