// @ts-check
// A step of a translation in words and numbers, what else could have been said, and all heads small.

import { raster, thumbWords } from "./matrix_canvas.js";
import { rove } from "./keys.js";
import { make } from "./mount.js";
import { count, exact, fixed, spokenLine } from "./number_format.js";
import { apart, enough } from "./exact_arithmetic.js";
import { listed, named, strongest } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

/**
 * A step's formula in decimals that make it true: log p = z − sum, and p = e^(log p).
 * @param {Record<string, any>} blocks
 * @param {number} step
 */
export function told(blocks, step) {
  const { logit, log_sum, logprob } = blocks;
  const how = { figures: 3, write: fixed };
  const say = (value) => exact(value);
  const [p, [log]] = enough(Math.exp, Math.exp(logprob[step]), [logprob[step]], { ...how, say });
  const [, [z, sum]] = enough((a, b) => a - b, logprob[step], [logit[step], log_sum[step]], {
    ...how,
    say: () => log,
  });
  return { z, sum: apart(sum), log, p };
}

// What happens in this step, in words and in the numbers of the formula.
/** @param {View} view */
export function reading(view) {
  const { header, blocks, n } = view;
  const [says, looks, formula] = [spokenLine("says"), make("p", "looks"), make("p", "formula")];
  const power = () => ["e", make("sup", "", "z")];
  view.parts.push((step) => {
    const label = header.says[step];
    const so = header.reads.slice(0, step + 1);
    const read = (so.length > 9 ? "… " : "") + so.slice(-9).join(" ");
    const { z, sum, log, p } = told(blocks, step);
    const rank = blocks.rank[step];
    const first = header.forced ? ": its top prediction." : ", its top prediction.";
    const likeliest = exact(Math.exp(blocks.top_logprobs[step * header.tops[step].length]));
    says.replaceChildren(
      header.forced ? "After " : "The decoder reads ",
      make("span", { class: "read", dir: "auto" }, read),
      header.forced ? " the model gives " : " and predicts ",
      named(label),
      header.forced ? " the probability " : " with probability ",
      make("strong", "p", p),
      ...(rank === 0
        ? [first]
        : [
            ` (rank ${count(rank + 1)} of ${count(header.n_vocab)}); `,
            "its top prediction is ",
            named(header.tops[step][0]),
            ` (${likeliest}).`,
          ]),
    );
    const row = view.weight.subarray(step * n, (step + 1) * n);
    const best = strongest(row, 4).filter((key, i) => !i || row[key] >= 0.01);
    looks.replaceChildren(
      "When generating ",
      named(label),
      " it attends to ",
      ...listed(
        best,
        (key) => header.source[key],
        (key) => row[key].toFixed(2),
      ),
      `  (${view.title.toLowerCase()}).`,
    );
    const so_far = blocks.logprob.subarray(0, step + 1).reduce((total, one) => total + one, 0);
    formula.replaceChildren(
      "p(",
      named(label),
      ") = softmax(z) = ",
      ...power(),
      " / Σ ",
      ...power(),
      `.   Here z = ${z} and ln Σ `,
      ...power(),
      ` = ${sum}, so log p = ${z} − ${sum} = ${log} and p = ${p}.   The sum so far: log p = ${fixed(so_far, 3)}.`,
    );
  });
  return make("div", "reading", says, looks, formula);
}

// What the model held likeliest in this step, and the token that stands in the output where it is none
// of these.
/** @param {View} view */
export function candidates(view) {
  const { header, blocks } = view;
  const list = make("div", { class: "bars", role: "list" });
  const bar = (rank, label, logprob, here) =>
    make(
      "div",
      { class: here ? "candidate here" : "candidate", role: "listitem" },
      make("span", "rank", count(rank + 1)),
      make("span", { class: "label", dir: "auto", title: label }, label),
      make("span", "track", make("i", { vars: { p: Math.exp(logprob) } })),
      make("span", "value", exact(Math.exp(logprob))),
    );
  view.parts.push((step) => {
    const rank = blocks.rank[step];
    const tops = header.tops[step];
    const rows = tops.map((label, at) =>
      bar(at, label, blocks.top_logprobs[step * tops.length + at], at === rank),
    );
    if (rank >= tops.length) rows.push(bar(rank, header.pieces[step], blocks.logprob[step], true));
    list.replaceChildren(...rows);
  });
  return make("section", "candidates", make("h4", "", "Top predictions at this step"), list);
}

/** @param {View} view */
export function heads(view) {
  const { header, blocks, look } = view;
  const size = header.rows * header.columns;
  const across = header.n_head + 1;
  const words = thumbWords(look.one, 1, 1); // each to its own largest weight
  const list = header.names.map((name, at) => {
    const [layer, head] = name.split(".");
    const label = head ? name : layer ? `mean ${layer}` : "all";
    const canvas = raster(header.rows, header.columns, (i) => words[blocks.cells[at * size + i]]);
    return make(
      "button",
      {
        class: head === undefined ? "tile mean" : "tile",
        data: { view: name, focus: `view ${at}` },
        title: header.titles[at],
        "aria-label": `${header.titles[at]}, largest weight ${blocks.peak[at].toFixed(2)}`,
        "aria-pressed": name === header.name,
        onclick: () => view.send("view", name),
      },
      canvas,
      make("i", "at"),
      make("span", "", label),
    );
  });
  rove(list, { held: header.names.indexOf(header.name), columns: across });
  const grid = make(
    "div",
    {
      class: "grid",
      role: "group",
      vars: { across },
      "aria-label":
        "Heads of the cross-attention and their means. Arrow keys move, Enter chooses one.",
    },
    ...list,
  );
  view.parts.push((step) => grid.style.setProperty("--at", `${(step + 0.5) / view.rows}`));
  const note =
    "One square per head (layer.head), scaled to its largest weight. Columns: source. Rows: output. The mark is this step. Last in a row: the mean.";
  const title = make("h4", "", "Cross-attention, head by head");
  return make("section", "heads", title, grid, make("p", "note", note));
}
