// @ts-check
// A head as lines between two columns of tokens: from the one that looks to what it looks at.

import { sharp } from "./matrix_canvas.js";
import { make } from "./mount.js";
import { share } from "./number_format.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const FAINTEST = 0.02;
// More lines than this are one block of ink: of all of them only the strongest are drawn. Those of one
// token are always all drawn.
const MOST = 400;

/** @param {View} view @param {Record<string, any>} head what the views of a head share */
export function lines(view, { COLUMN, ROW, hold, look }) {
  const { header, n } = view;
  const rows = header.queries.length;
  const [down, right] = view.sides;
  const canvas = make("canvas", {
    role: "img",
    "aria-label": `Attention of ${header.title} as lines from ${down} tokens, left, to ${right} tokens, right.`,
  });
  const side = (name, list, axis) =>
    make(
      "div",
      `side ${name}`,
      ...list.map((label, at) =>
        make(
          "span",
          {
            dir: "auto",
            title: label,
            onmouseenter: () => look(view, axis === ROW ? [at, -1] : [-1, at]),
            onmouseleave: () => look(view, null),
            onclick: () => hold(view, axis, at),
          },
          axis === ROW && view.hidden && make("small", "", `${share(view.hidden[at])} hidden `),
          label,
        ),
      ),
    );
  const [left, to] = [side("queries", header.queries, ROW), side("keys", header.keys, COLUMN)];
  const pitch = Math.max(18, Math.min(36, (window.innerHeight * 0.45) / Math.max(rows, n)));
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
      ...(view.across ? ["target", "source"] : ["looks", "is looked at"]).map((said) =>
        make("span", "of", said),
      ),
      left,
      canvas,
      to,
    ),
  );
  const sorted = Float32Array.from(view.weight).sort();
  const faintest = Math.max(FAINTEST, sorted[Math.max(0, sorted.length - MOST)]);
  // Two colours: what a chosen token looks at, and what looks at it.
  const [out, into] = view.look.categorical;
  const paint = (query, key) => {
    const [width, height] = [canvas.clientWidth, pitch * Math.max(rows, n)];
    canvas.style.height = `${height}px`;
    const pen = sharp(canvas, width, height);
    const one = Math.max(query, key) >= 0;
    const line = (q, k, colour) => {
      const weight = view.weight[q * n + k];
      if (weight < (one ? FAINTEST : faintest)) return;
      const [from, end] = [(q + 0.5) * pitch, (k + 0.5) * pitch];
      pen.strokeStyle = colour;
      pen.globalAlpha = Math.min(1, 0.12 + weight * 0.88);
      pen.lineWidth = 0.75 + weight * 4;
      pen.beginPath();
      pen.moveTo(0, from);
      pen.bezierCurveTo(width * 0.4, from, width * 0.6, end, width, end);
      pen.stroke();
    };
    for (let q = 0; q < rows; q++)
      for (let k = 0; k < n; k++)
        if (!one || q === query) line(q, k, out);
        else if (k === key) line(q, k, into);
  };
  const key = make("p", "note key");
  const swatch = (colour) => make("i", { class: "swatch", style: { background: colour } });
  let [query, column] = [-1, -1];
  view.draw = (q, k, ...chosen) => {
    [query, column] = q >= 0 ? [q, -1] : chosen;
    [...left.children].forEach((e, at) => e.classList.toggle("on", at === query));
    [...to.children].forEach((e, at) => e.classList.toggle("on", at === column || at === k));
    const who = header.queries[query] ?? header.keys[column];
    key.replaceChildren(
      ...(who === undefined
        ? [swatch(out), "from each token to what it looks at"]
        : [
            ...(query >= 0 ? [swatch(out), "what ", named(who), " looks at"] : []),
            ...(column >= 0 ? [swatch(into), "what looks at ", named(header.keys[column])] : []),
          ]),
    );
    paint(query, column);
  };
  view.fit = [scroll, () => paint(query, column)];
  const less = faintest > FAINTEST ? `, of a chosen token’s those under ${FAINTEST}` : "";
  const note = `Width and darkness: the weight. Weights under ${faintest.toFixed(2)} are not drawn${less}.`;
  const long =
    pitch * Math.max(rows, n) > 560
      ? " The picture is longer than its frame: scroll for the other tokens."
      : "";
  return [scroll, key, make("p", "note", note + long)];
}
