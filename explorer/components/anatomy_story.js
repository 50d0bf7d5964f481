// @ts-check
// How a weight comes about, step by step: the query meets the key, and what comes of it is written.

import { drawing } from "./anatomy_sheet.js";
import { strips } from "./anatomy_strips.js";
import { among, full, largest, quiet, through, two } from "./anatomy_wrote.js";
import { bus } from "./bus.js";
import { make } from "./mount.js";
import { num, ofRow } from "./say.js";
import { exports } from "./sheet.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./anatomy_strips.js").Plan} Plan */

const inBrackets = (value, figures = 4) =>
  value < 0 ? `(${num(value, figures)})` : num(value, figures);

/** @param {View} view */
export function story(view) {
  const { header } = view;
  view.steps = [];
  /** @type {((view: View) => any)[]} */
  const steps = [meet, scaled, masked, softmax, valued, summed];
  if (header.wrote) steps.push(through, among);
  const parts = steps.map((each, at) => step(view, at + 1, each(view)));
  if (!header.wrote) parts.push(make("p", "missing", header.missing));
  const files = exports(view, "The story", (look) => drawing(view, look));
  view.root.replaceChildren(
    ...parts,
    quiet("Figures are rounded on screen. The tables and the CSV file below have them in full."),
    make("div", "exports", ...files),
  );
  bus.tell({ anatomy: { matrix: header.matrix, cell: [header.query.at, header.key.at] } });
}

/**
 * A step: its name, a sentence, its formula with the result, and its picture.
 * @param {View} view
 * @param {number} at
 * @param {{ title: string, words: any[], formula: string[], result: string, plan?: Plan, more?: any[] }} told
 */
function step(view, at, { title, words, formula, result, plan, more = [] }) {
  view.steps.push({ title: `${at}. ${title}`, lines: [...formula, result].filter(Boolean), plan });
  const lines = formula.map((each) => make("p", "formula", each));
  const text = make(
    "div",
    "text",
    make("h4", "", make("span", "number", `${at}`), title),
    make("p", "words", ...words),
    ...lines,
    result && make("p", "result", result),
  );
  return make("section", "step", text, make("div", "picture", plan && strips(view, plan), ...more));
}

const own = ([value, apart]) =>
  quiet(
    `The model’s own number: ${num(value, 7)}; over the row the two are at most ${num(apart, 2)} apart.`,
  );

/** @param {View} view */
function meet({ header, blocks }) {
  const { q, k, products } = blocks;
  const [query, key] = [header.query.label, header.key.label];
  const one = (d) => `${inBrackets(q[d], 3)} × ${inBrackets(k[d], 3)}`;
  const best = header.best.map((d) => `dimension ${d}, ${one(d)} = ${num(products[d], 3)}`);
  const more = q.length > header.best.length ? " + …" : "";
  return {
    title: "The query meets the key",
    words: [
      "What ",
      named(query),
      " looks for, q, and what ",
      named(key),
      " offers, k: multiplied number by number, and added up.",
    ],
    formula: [`q · k = ${header.best.map(one).join(" + ")}${more}`],
    result: `q · k = ${full(header.dot)}`,
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
      say: (d) => [`dimension ${d}:  q ${num(q[d])}  ×  k ${num(k[d])}  =  ${num(products[d])}`],
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
  "The frame is ",
  named(header.key.label),
  "; choose another key with a click, or with the arrow keys and Enter.",
];

/** @param {View} view */
function scaled(view) {
  const { header, blocks } = view;
  const { dots, scores } = blocks;
  const { added } = header;
  const sum = added === null ? "" : ` ${added < 0 ? "−" : "+"} ${full(Math.abs(added))}`;
  return {
    title: "Scaled: the score",
    words: added === null ? [header.scaleWhy] : [header.scaleWhy, " ", header.addedWhy],
    formula: [
      `score = q · k / ${header.dividing}`,
      `= ${full(header.dot)} / ${full(header.divisor)}${sum}`,
    ],
    result: `score = ${full(header.score)}`,
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
    title: header.masks ? "Masked" : "No mask",
    words: [header.maskWhy],
    formula: [
      header.allowed ? "allowed: the score stays" : "not allowed: −∞ takes the score’s place",
    ],
    result: header.allowed ? full(header.score) : "−∞",
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
  const n = header.nAllowed;
  const row = (name, values, strong = false) => ({
    name: [name],
    values,
    sides: "one",
    top: largest(values),
    free: allowed,
    barred: "0",
    strong,
  });
  const apart = `exp(${full(header.score - header.largest)}) / Σ exp = ${full(header.exponential)} / ${full(header.total)}`;
  const formula = !header.allowed
    ? ["exp(−∞) / Σ exp = 0"]
    : [
        header.plain
          ? `exp(${full(header.score)}) / Σ exp = ${header.plain.map(full).join(" / ")}`
          : `exp(${full(header.score)}) / Σ exp: some exp here is too large for a number`,
        `${full(header.largest)}, the largest, subtracted: ${apart}`,
      ];
  if (header.evened)
    formula.push(
      `softmax = ${full(header.softmax)}, but an edit decides: ${header.evened}, 1 / ${n}`,
    );
  return {
    title: "Softmax: the weight",
    words: [
      `Each exp(score), divided by the sum of all ${n} allowed: the row becomes weights that add up to 1. Subtracting the row’s largest score first divides both by the same number, so nothing changes, and nothing grows too large.`,
    ],
    formula,
    result: `weight = ${full(header.weight)}`,
    plan: overKeys(
      view,
      "softmax",
      [row("exp(score − largest)", exponentials), row("weight", weights, true)],
      (k) =>
        allowed[k] > 0
          ? `exp(${num(scores[k])} − ${inBrackets(header.largest)}) = ${num(exponentials[k])},  weight ${num(weights[k])}`
          : "not allowed, weight 0",
    ),
    more: [own(header.own.weight)],
  };
}

/** @param {View} view */
function valued({ header, blocks }) {
  const { v } = blocks;
  const { weight, vLength } = header;
  const share = v.map((each) => each * weight);
  const key = header.key.label;
  return {
    title: "Weight times value",
    words: [
      named(key),
      "’s value v is what it hands over; the weight says how much of it is taken.",
    ],
    formula: [`|weight × v| = weight × |v| = ${full(weight)} × ${full(vLength)}`],
    result: `|weight × v| = ${full(weight * vLength)}`,
    plan: {
      group: "values",
      id: "value",
      n: v.length,
      about: "The value and its share by dimension",
      rows: [
        two(["v of ", named(key)], v),
        two(["weight × v"], share, { top: largest(v), strong: true }),
      ],
      say: (d) => [`dimension ${d}:  ${num(weight)} × ${num(v[d])} = ${num(share[d])}`],
      rest: ["Both strips in the same colours: the weight makes the value fainter."],
    },
  };
}

/** @param {View} view */
function summed({ header, blocks }) {
  const { z, shares, rest, set } = blocks;
  const d = z.length;
  const n = header.labels.length;
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
    title: "The sum over all keys",
    words: [
      "Every key’s share, added up: z is what the head found for ",
      named(header.query.label),
      header.set ? `. An edit then sets it: ${header.set}.` : ".",
    ],
    formula: [`z = Σ weight × v, over ${n} ${n === 1 ? "key" : "keys"}`],
    result: `|z| = ${num(header.zLength)}`,
    plan: {
      group: "values",
      id: "sum",
      n: d,
      about: "Shares of all keys and their sum by dimension",
      rows,
      say: (at) => {
        const each = parts.map(({ values }) => inBrackets(values[at]));
        if (header.rest) each.push(inBrackets(rest[at]));
        const under = header.set ? `;  under the edit ${num(set[at])}` : "";
        return [`dimension ${at}:  ${each.join(" + ")}  =  ${num(z[at])}${under}`];
      },
      rest: [
        "All strips in the same colours. Every key gives its value by its weight; ",
        named(header.key.label),
        "’s share is in bold.",
      ],
    },
  };
}
