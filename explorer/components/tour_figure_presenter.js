// @ts-check
// Pictures in type for the back row: cut around what is spoken of, until they fit at the least size.

import { drawn, painted, sized } from "./tour_figure.js";

/** Pixels of type that is read from the last row: 28 on a screen of 1280. */
const least = () => Math.max(28, (28 * innerWidth) / 1280);
const MOST = [40, 30, 24, 20, 17, 15, 13, 11, 9, 7, 5, 4, 3]; // rows of a picture, tried in turn

/**
 * Draw pictures as large as their room allows, of each as much as fits it.
 * @param {any} view with the `look`, and the step's words in `header`
 * @param {HTMLElement} plate
 * @param {any[]} panels
 * @returns {any} what was drawn, for `painted`
 */
export function enlarged(view, plate, panels) {
  plate.classList.add("large");
  plate.style.setProperty("--panels", `${panels.length}`);
  const small = least();
  // Columns that a matrix has room for beside the others and one list of names.
  const wide = Math.floor((innerWidth * 0.86 - 7 * small) / panels.length / (1.3 * small));
  for (const most of MOST) {
    const own = {
      look: view.look,
      header: { ...view.header, panels: panels.map(cutTo(most, wide)) },
    };
    plate.replaceChildren(...drawn(own));
    const last = most === MOST[MOST.length - 1];
    if (!last && !sized(plate, [small, small])) continue;
    if (!sized(plate, [small, small * 1.6])) sized(plate, [12, small]);
    painted(own);
    return own;
  }
}

/** So many of n places, those nearest to what is to be kept. @param {number} n @param {number[]} keep @param {number} most */
export function around(n, keep, most) {
  const all = [...Array(n).keys()];
  if (n <= most) return all;
  const wanted = keep.filter((at) => at >= 0).slice(0, most);
  const far = (/** @type {number} */ at) => Math.min(...wanted.map((one) => Math.abs(one - at)));
  const near = all.sort((a, b) => (wanted.length ? far(a) - far(b) : 0) || a - b);
  return near.slice(0, most).sort((a, b) => a - b);
}

/** @param {number} most @param {number} beside @returns {(panel: any) => any} */
const cutTo = (most, beside) => (panel) => CUTS[panel.kind]?.(panel, most, beside) || panel;

const noted = ({ note }, shown, all, what) =>
  [note, shown < all && `${shown} of ${all} ${what}`].filter(Boolean).join(" · ");

/** @type {Record<string, (panel: any, most: number, beside: number) => any>} */
const CUTS = {
  grid(panel, most, beside) {
    const { rows, columns, values, marks, what = "tokens" } = panel;
    const down = around(rows.length, marks.map(([row]) => row), most); // prettier-ignore
    const right = around(columns.length, marks.map(([, column]) => column), Math.max(2 * most, 6)); // prettier-ignore
    return {
      ...panel,
      note: noted(panel, down.length, rows.length, what),
      rows: down.map((at) => rows[at]),
      columns: right.map((at) => columns[at]),
      values: down.map((row) => right.map((column) => values[row][column])),
      marks: marks
        .map(([row, column, text]) => [down.indexOf(row), right.indexOf(column), text])
        .filter(([row, column]) => row >= 0 && column >= 0),
    };
  },
  lines(panel, most) {
    const { left, right, weights, held, mark } = panel;
    const one = left.length === right.length; // one text on both sides
    const keep = [held, ...(mark ? [mark[0]] : [])];
    const from = around(left.length, one ? keep : [held], most);
    const to = one ? from : around(right.length, mark ? [mark[0]] : [held], most);
    return {
      ...panel,
      note: noted(panel, from.length, left.length, "tokens"),
      left: from.map((at) => left[at]),
      right: to.map((at) => right[at]),
      weights: from.map((q) => to.map((k) => weights[q][k])),
      held: from.indexOf(held),
      mark: mark && to.includes(mark[0]) ? [to.indexOf(mark[0]), mark[1]] : undefined,
    };
  },
  bars(panel, most) {
    const { rows, mark, what = "rows" } = panel;
    const size = ({ values }) => Math.max(...values.map(Math.abs));
    const first = [...rows.keys()].sort(
      (a, b) => rows[b].on - rows[a].on || size(rows[b]) - size(rows[a]) || a - b,
    );
    const kept = first.slice(0, most).sort((a, b) => a - b);
    return {
      ...panel,
      note: noted(panel, kept.length, rows.length, what),
      rows: kept.map((at) => rows[at]),
      mark: mark && [kept.indexOf(mark[0]), mark[1]],
    };
  },
  strips(panel, most) {
    const { strips } = panel;
    const kept = around(strips.length, strips.flatMap(({ on }, at) => (on ? [at] : [])), most); // prettier-ignore
    return { ...panel, strips: kept.map((at) => strips[at]) };
  },
  ladder(panel, most) {
    const { rungs } = panel;
    const step = Math.max(1, (rungs.length - 1) / Math.max(1, most - 1));
    const kept = rungs.filter(
      ({ on }, at) => on || rungs.length <= most || Math.round(Math.round(at / step) * step) === at,
    );
    return {
      ...panel,
      note: noted(panel, kept.length, rungs.length, "rows"),
      rungs: kept.map((rung) => ({ ...rung, words: rung.words.slice(0, most < 7 ? 2 : 3) })),
    };
  },
  dials(panel, most) {
    const { dials } = panel;
    const kept = around(dials.length, dials.flatMap(({ on }, at) => (on ? [at] : [])), most); // prettier-ignore
    return {
      ...panel,
      note: noted(panel, kept.length, dials.length, "turns"),
      dials: kept.map((at) => dials[at]),
    };
  },
};
