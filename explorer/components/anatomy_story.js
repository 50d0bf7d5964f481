// @ts-check
// How a weight comes about, step by step: the query meets the key, and what comes of it is written.

import { drawing } from "./anatomy_svg.js";
import { strips } from "./anatomy_strips.js";
import { among, largest, quiet, through, two } from "./head_output.js";
import { bus } from "./bus.js";
import { make } from "./mount.js";
import { num, ofRow } from "./number_format.js";
import { offer } from "./svg_export.js";
import { enough, power, product, sum } from "./exact_arithmetic.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./anatomy_strips.js").Plan} Plan */

/** @param {View} view */
export function story(view) {
  const { header } = view;
  view.steps = [];
  /** @type {Record<string, (view: View) => any>} */
  const steps = { meet, scaled, masked, softmax, valued, summed };
  if (header.wrote) Object.assign(steps, { through, among });
  const parts = Object.entries(steps).map(([name, each], at) =>
    step(view, at + 1, header.formulas[name], each(view)),
  );
  if (!header.wrote) parts.push(make("p", "missing", header.missing));
  offer(view, "The story", (look) => drawing(view, look));
  view.root.replaceChildren(
    ...parts,
    header.alone
      ? ""
      : quiet("Numbers are rounded on screen. The tables below and the CSV file have all digits."),
  );
  bus.tell({ anatomy: { matrix: header.matrix, cell: [header.query.at, header.key.at] } });
}

/**
 * A step: its name, a sentence, its formula with the result, which is the last line, and its picture.
 * @param {View} view
 * @param {number} at
 * @param {string[]} lines
 * @param {{ title: string, words: any[], plan?: Plan, more?: any[] }} told
 */
function step(view, at, lines, { title, words, plan, more = [] }) {
  view.steps.push({ title: `${at}. ${title}`, lines: lines.filter(Boolean), plan });
  const result = lines[lines.length - 1];
  const text = make(
    "div",
    "text",
    make("h2", "", make("span", "number", `${at}`), title),
    make("p", "words", ...words),
    ...lines.slice(0, -1).map((each) => make("p", "formula", each)),
    result && make("p", "result", result),
  );
  return make("section", "step", text, make("div", "picture", plan && strips(view, plan), ...more));
}

/** What a picture says of one of its places. @type {Record<string, (...given: any[]) => string>} */
export const told = {
  dims({ q, k, products }, d) {
    const [result, [one, other]] = enough((a, b) => a * b, products[d], [q[d], k[d]]);
    return `dimension ${d}:  q ${one}  ×  k ${other}  =  ${result}`;
  },
  keys: ({ largest: most }, { scores, exponentials, weights }, k) =>
    `${power(scores[k], most, exponentials[k])},  weight ${num(weights[k])}`,
  values: ({ weight }, { v }, d) => `dimension ${d}:  ${product(weight, v[d], weight * v[d])}`,
  sum({ rows, rest: others }, { shares, rest, z }, d) {
    const each = rows.map((_, row) => shares[row * z.length + d]);
    return `dimension ${d}:  ${sum(others ? [...each, rest[d]] : each, z[d])}`;
  },
};

const own = ([value, apart]) =>
  quiet(
    `The model’s own number is ${num(value, 4)}. The maximum difference over the row is ${num(apart, 2)}.`,
  );

/** @param {View} view */
function meet({ header, blocks }) {
  const { q, k, products } = blocks;
  const [query, key] = [header.query.label, header.key.label];
  const best = header.best.map((d) => `dimension ${d}, ${product(q[d], k[d], products[d], 3)}`);
  return {
    title: "Query times key",
    words: [
      "The dot product of the query q of ",
      named(query),
      " and the key k of ",
      named(key),
      ".",
    ],
    plan: {
      group: "dims",
      id: "dims",
      n: q.length,
      about: "Query, key and their products by dimension",
      rows: [
        two(["q of ", named(query)], q),
        two(["k of ", named(key)], k),
        two(["q × k"], products, { strong: true }),
      ],
      say: (d) => [told.dims(blocks, d)],
      rest: [`Largest: ${best.join(";  ")}`],
    },
  };
}

/** Strips over the keys: all of them choose a cell. @param {View} view @returns {Plan} */
function overKeys(view, id, rows, say, rest = keysHint(view)) {
  const { header } = view;
  return {
    group: "keys",
    id,
    n: header.labels.length,
    rows,
    rest,
    labels: header.labels,
    mark: header.key.at,
    about: `The row of ${header.query.label}, key by key`,
    say: (k) => [named(header.labels[k]), ` ${k}:  `, say(k)],
    pick: (k) => view.send("cell", [header.query.at, k]),
  };
}

const keysHint = ({ header }) => [
  "Selected key: ",
  named(header.key.label),
  ". Select another with a click, or with the arrow keys and Enter.",
];

/** @param {View} view */
function scaled(view) {
  const { header, blocks } = view;
  const { dots, scores } = blocks;
  return {
    title: "Scaled score",
    words: header.adds ? [header.scaleWhy, " ", header.addedWhy] : [header.scaleWhy],
    plan: overKeys(
      view,
      "scores",
      [two(["q · k"], dots), two(["score"], scores, { strong: true })],
      (k) => `q · k ${num(dots[k])},  score ${num(scores[k])}`,
    ),
    more: [own(header.own.score)],
  };
}

/** @param {View} view */
function masked(view) {
  const { header, blocks } = view;
  const { scores, allowed } = blocks;
  const may = (k) => allowed[k] > 0;
  const row = {
    name: [header.masks ? "after the mask" : "the row"],
    top: largest(scores.filter((_, k) => may(k))),
    free: allowed,
    barred: "−∞",
    strong: true,
  };
  const most = [
    named(header.labels[header.largestAt]),
    ` ${header.largestAt}, score ${num(header.largest)}`,
  ];
  return {
    title: header.masks ? "Mask" : "No mask",
    words: [header.maskWhy],
    plan: overKeys(
      view,
      "masked",
      [two(row.name, scores, row)],
      (k) => (may(k) ? `allowed, score ${num(scores[k])}` : "not allowed: −∞, so its weight is 0"),
      ["The largest of the row: ", ...most],
    ),
  };
}

/** @param {View} view */
function softmax(view) {
  const { header, blocks } = view;
  const { exponentials, weights, scores, allowed } = blocks;
  const row = (name, values, strong = false) => ({
    name: [name],
    values,
    sides: "one",
    top: largest(values),
    free: allowed,
    barred: "0",
    strong,
  });
  return {
    title: "Softmax",
    words: [
      `Each exp(score) is divided by the sum over all ${header.nAllowed} allowed keys, so the weights sum to 1. Subtracting the largest score first does not change the result and prevents overflow.`,
    ],
    plan: overKeys(
      view,
      "softmax",
      [row("exp(score − largest)", exponentials), row("weight", weights, true)],
      (k) => (allowed[k] > 0 ? told.keys(header, blocks, k) : "not allowed, weight 0"),
    ),
    more: [own(header.own.weight)],
  };
}

/** @param {View} view */
function valued({ header, blocks }) {
  const { v } = blocks;
  const { weight } = header;
  const share = v.map((each) => each * weight);
  const key = header.key.label;
  return {
    title: "Weight times value",
    words: ["The weight scales the value vector v of ", named(key), "."],
    plan: {
      group: "values",
      id: "value",
      n: v.length,
      about: "The value and its share by dimension",
      rows: [
        two(["v of ", named(key)], v),
        two(["weight × v"], share, { top: largest(v), strong: true }),
      ],
      say: (d) => [told.values(header, blocks, d)],
      rest: ["Both strips have the same colour scale."],
    },
  };
}

/** @param {View} view */
function summed({ header, blocks }) {
  const { z, shares, rest, set } = blocks;
  const d = z.length;
  const parts = header.rows.map((key, r) => ({ key, values: shares.subarray(r * d, (r + 1) * d) }));
  const top = Math.max(largest(z), ...parts.map(({ values }) => largest(values)));
  const rows = parts.map(({ key, values }, r) =>
    two([`${ofRow(header.rowWeights[r], 2)} × v of `, named(header.labels[key])], values, {
      top,
      strong: key === header.key.at,
    }),
  );
  const others = header.rest === 1 ? "the other key" : `the other ${header.rest} keys`;
  if (header.rest) rows.push(two([others], rest, { top }));
  rows.push(two(["z, their sum"], z, { top, strong: true }));
  const edited = Math.max(top, header.set ? largest(set) : 0);
  if (header.set) rows.push(two(["z under the edit"], set, { top: edited, strong: true }));
  return {
    title: "Sum over all keys",
    words: [
      "The sum of all weighted values is z, the head’s result for ",
      named(header.query.label),
      header.set ? `. An edit then sets it: ${header.set}.` : ".",
    ],
    plan: {
      group: "values",
      id: "sum",
      n: d,
      about: "Shares of all keys and their sum by dimension",
      rows,
      say: (at) => {
        const under = header.set ? `;  under the edit ${num(set[at])}` : "";
        return [`${told.sum(header, blocks, at)}${under}`];
      },
      rest: [
        "All strips have the same colour scale. The part of ",
        named(header.key.label),
        " is in bold.",
      ],
    },
  };
}
