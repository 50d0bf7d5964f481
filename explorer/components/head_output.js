// @ts-check
// The end of a weight's story: what the head wrote, and its part of what all heads wrote.

import { make } from "./mount.js";
import { fixed, num } from "./number_format.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

export const largest = (values) =>
  values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
export const quiet = (text) => make("p", "quiet", text);

/** A row around 0, in its own colours. @returns {import("./anatomy_strips.js").Row} */
export const two = (name, values, more = {}) => ({
  name,
  values,
  sides: "two",
  top: largest(values),
  ...more,
});

/** @param {View} view */
export function through({ header, blocks }) {
  const { wrote, total, w_o } = blocks;
  const [d, n] = [header.d_v, wrote.length];
  const top = Math.max(largest(wrote), largest(total));
  const apart = header.own.wrote;
  return {
    title: "Output projection W_O",
    words: [
      `The head’s slice of W_O maps its ${d} numbers to ${n}. The result is added to the residual stream of `,
      named(header.query.label),
      ".",
    ],
    plan: {
      group: "model",
      id: "wrote",
      n,
      about:
        "The head's slice of W_O, the head's output and the output of all heads, by dimension of the stream",
      rows: [
        two([`W_O of head ${header.head}, ${d} × ${n}`], wrote, { image: [d, n, w_o] }),
        two(["this head’s output"], wrote, { top, strong: true }),
        two(["all heads and bias"], total, { top }),
      ],
      say: (m) => [
        `dimension ${m} of the stream:  z · column ${m} of W_O = ${num(wrote[m])};  all heads and bias ${num(total[m])}`,
      ],
      rest: ["Above: the slice, with one row per number of z. Below: z · W_O."],
    },
    more: [
      apart !== null &&
        quiet(`The maximum difference from the model’s own attention output is ${num(apart, 2)}.`),
    ],
  };
}

/** A column of numbers with as many decimals as give its largest three figures. */
function column(values) {
  const most = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  const digits = most > 0 ? Math.max(0, Math.min(8, 2 - Math.floor(Math.log10(most)))) : 0;
  return (value) => (value === null ? "–" : fixed(value, digits));
}

/** @param {View} view */
export function among({ header }) {
  const { parts, share } = header.wrote;
  const most = Math.max(...parts.map((part) => Math.abs(part.share ?? 0)), 1e-9);
  const below = parts.some((part) => part.share < 0);
  const shares = column(parts.map((part) => part.share));
  const lengths = column(parts.map((part) => part.length));
  const rows = parts.map((part) => {
    const width = (100 * Math.abs(part.share ?? 0)) / most / (below ? 2 : 1);
    const left = below ? 50 - (part.share < 0 ? width : 0) : 0;
    const style = { width: `${width}%`, left: `${left}%` };
    return make(
      "div",
      { class: part.chosen ? "part chosen" : "part", role: "listitem" },
      make("span", "", part.name),
      make("span", "track", make("i", { class: part.share < 0 ? "below" : "", style })),
      make("span", "figure", shares(part.share)),
      make("span", "figure", lengths(part.length)),
    );
  });
  const heads = ["", "", "share", "norm"].map((name) => make("span", name && "figure", name));
  const list = make(
    "div",
    { class: "parts", role: "list" },
    make("div", { class: "part heads", "aria-hidden": "true" }, ...heads),
    ...rows,
  );
  return {
    title: "Contribution of each head",
    words: [
      share === null
        ? "The sum of heads and bias is 0 here, so shares are not defined."
        : "The projection of each part on the sum: part · sum / |sum|². The shares sum to 1. A negative share opposes the sum.",
    ],
    more: [list, quiet("Norms do not sum, because parts with different directions partly cancel.")],
  };
}
