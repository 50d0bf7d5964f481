// @ts-check
// A head as lines between two columns of tokens: from the query to the keys that it attends to.

import { sharp } from "./matrix_canvas.js";
import { make } from "./mount.js";
import { share } from "./number_format.js";
import { named, strongest } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const FAINTEST = 0.02;
// More lines than this are one block of ink: of all of them only the strongest are drawn. Those of one
// token are always all drawn.
const MOST = 400;

/** @param {Element} one a token */
const placeOf = (one) => Number(one.getAttribute("data-at"));
const LONG = 30; // tokens of a text from which on the selected word is shown with PARTNERS alone
const PARTNERS = 10;

/** @param {View} view @param {Record<string, any>} head what the views of a head share */
export function lines(view, { COLUMN, ROW, hold, look }) {
  const { header, n } = view;
  const rows = header.queries.length;
  const [down, right] = view.sides;
  const canvas = make("canvas", {
    role: "img",
    "aria-label": `Attention of ${header.title} as lines from ${down} tokens, left, to ${right} tokens, right.`,
  });
  const all = [[...Array(rows).keys()], [...Array(n).keys()]];
  const label = (axis, at) =>
    make(
      "span",
      {
        dir: "auto",
        title: [header.queries, header.keys][axis][at],
        data: { at },
        onmouseenter: () => look(view, axis === ROW ? [at, -1] : [-1, at]),
        onmouseleave: () => look(view, null),
        onclick: () => hold(view, axis, at),
      },
      axis === ROW && view.hidden && make("small", "", `${share(view.hidden[at])} hidden `),
      [header.queries, header.keys][axis][at],
    );
  const sides = ["queries", "keys"].map((name) => make("div", `side ${name}`));
  const size = Math.max(rows, n) > LONG ? PARTNERS : Math.max(rows, n);
  const pitch = Math.max(18, Math.min(28, (window.innerHeight * 0.38) / size));
  const names = [`${down} (attends)`, `${right} (attended to)`];
  const scroll = make(
    "div",
    {
      class: "scroll",
      tabindex: 0,
      role: "region",
      "aria-label": "Lines. They scroll where they are longer than the frame.",
      data: { focus: "lines" },
    },
    make(
      "div",
      { class: "lines", vars: { pitch: `${pitch}px` } },
      ...names.map((name) => make("span", "of", name)),
      sides[ROW],
      canvas,
      sides[COLUMN],
    ),
  );
  const sorted = Float32Array.from(view.weight).sort();
  const faintest = Math.max(FAINTEST, sorted[Math.max(0, sorted.length - MOST)]);
  // Two colours: what a selected token attends to, and what attends to it.
  const [out, into] = view.look.categorical;
  let places = all; // of the tokens shown, rows and columns
  let [query, column] = [-1, -1];
  const show = () => {
    places = placesOf(view, query, column, all);
    sides.forEach((side, axis) => {
      const list = places[axis];
      const free = (Math.max(places[ROW].length, places[COLUMN].length) - list.length) / 2;
      side.style.paddingTop = `${free * pitch}px`;
      const here = [...side.children].map(placeOf);
      if (here.join() !== list.join()) side.replaceChildren(...list.map((at) => label(axis, at)));
    });
  };
  const paint = () => {
    const tall = Math.max(...places.map((list) => list.length));
    const [width, height] = [canvas.clientWidth, pitch * tall];
    canvas.style.height = `${height}px`;
    const pen = sharp(canvas, width, height);
    const one = Math.max(query, column) >= 0;
    const middle = (axis, i) => (i + 0.5 + (tall - places[axis].length) / 2) * pitch;
    const line = (i, j, colour) => {
      const weight = view.weight[places[ROW][i] * n + places[COLUMN][j]];
      if (weight < (one ? FAINTEST : faintest)) return;
      const [from, end] = [middle(ROW, i), middle(COLUMN, j)];
      pen.strokeStyle = colour;
      pen.globalAlpha = Math.min(1, one ? 0.35 + weight * 0.65 : 0.12 + weight * 0.88);
      pen.lineWidth = 0.75 + weight * 4;
      pen.beginPath();
      pen.moveTo(0, from);
      pen.bezierCurveTo(width * 0.4, from, width * 0.6, end, width, end);
      pen.stroke();
    };
    places[ROW].forEach((q, i) =>
      places[COLUMN].forEach((k, j) => {
        if (!one || q === query) line(i, j, out);
        else if (k === column) line(i, j, into);
      }),
    );
  };
  const key = make("p", "note key");
  const swatch = (colour) => make("i", { class: "swatch", style: { background: colour } });
  view.draw = (q, k, ...chosen) => {
    [query, column] = q >= 0 ? [q, -1] : chosen;
    if (query >= 0 && !view.across && !header.incoming && k < 0) column = -1;
    show();
    const on = [query, column >= 0 ? column : k];
    sides.forEach((side, axis) =>
      [...side.children].forEach((one) => one.classList.toggle("on", placeOf(one) === on[axis])),
    );
    key.replaceChildren(
      ...(column < 0
        ? []
        : [
            ...(query >= 0 ? [swatch(out), "of ", named(header.queries[query])] : []),
            swatch(into),
            "to ",
            named(header.keys[column]),
          ]),
    );
    note.textContent = noteOf();
    paint();
  };
  const note = make("p", "note");
  const noteOf = () => {
    const shown = Math.max(query, column) >= 0 ? FAINTEST : faintest;
    const few = places.some((list, axis) => list.length < all[axis].length);
    return [
      few && `The ${PARTNERS} strongest of ${query >= 0 ? n : rows} tokens.`,
      `A wider and darker line is a larger weight. Weights below ${shown.toFixed(2)} have no line.`,
    ]
      .filter(Boolean)
      .join(" ");
  };
  view.fit = [scroll, paint];
  return [scroll, key, note];
}

/** The rows and columns of a picture: of a long text the selected word and its strongest partners, in
 * the order of the text. @param {View} view @param {number[][]} all */
function placesOf({ weight, n, header }, query, column, all) {
  if (Math.max(header.queries.length, n) <= LONG || Math.max(query, column) < 0) return all;
  const up = (/** @type {number} */ a, /** @type {number} */ b) => a - b;
  if (query >= 0) {
    const row = weight.subarray(query * n, (query + 1) * n);
    return [[query], strongest(row, PARTNERS).sort(up)];
  }
  const into = header.queries.map((_, q) => weight[q * n + column]);
  return [strongest(into, PARTNERS).sort(up), [column]];
}
