// @ts-check
// The logit lens: a table of words, sites down and tokens across, coloured by a measure; and one cell of
// it opened.

import { bus } from "./bus.js";
import { legend } from "./matrix_canvas.js";
import style from "./logit_lens.css.js";
import { rove } from "./keys.js";
import { grid } from "./logit_lens_table.js";
import { focused, make, mount, put } from "./mount.js";
import { chance, count, signed } from "./number_format.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

export default mount("lens", style, (view) => ({ grid, way, sum })[view.header.role](view, table));

const nats = (kl) => `${kl > 0 && kl < 0.005 ? "< 0.01" : kl.toFixed(2)} nats`;
const place = (rank) => count(rank + 1);

// ---- what the table's cells say and how they are coloured ----------------------------------------

// How near to the top of the scale a cell is, 0 to 1. Darker (on a dark page: lighter) is always nearer
// to the final answer.
/** @param {View} view */
function share({ blocks, header, farthest }, at) {
  switch (header.measure) {
    case "Answer":
      return Math.exp(blocks.answer[at]);
    case "Rank":
      return 1 - Math.log(blocks.rank[at] + 1) / Math.log(header.nVocab);
    case "KL":
      return farthest > 0 ? 1 - Math.log1p(blocks.kl[at]) / Math.log1p(farthest) : 1;
    default:
      return Math.exp(blocks.logp[at * header.top]);
  }
}

/** One line on a cell. @param {View} view */
function told({ header, blocks }, [site, token]) {
  const at = site * header.tokens.length + token;
  const words = Array.from({ length: header.top }, (_, r) => {
    const id = blocks.words[at * header.top + r];
    const p = chance(Math.exp(blocks.logp[at * header.top + r]));
    const end = r < header.top - 1 ? ", " : ". ";
    return [
      named(header.labels[id], r ? "" : "first"),
      `${id === header.right[token] ? " ✓" : ""} ${p}${end}`,
    ];
  });
  return [
    `${header.spoken[site]}, at `,
    named(header.tokens[token]),
    ` (token ${token}): `,
    ...words.flat(),
    "Final answer ",
    named(header.labels[header.final[token]]),
    `: rank ${place(blocks.rank[at])}, probability ${chance(Math.exp(blocks.answer[at]))}. KL to the final ${nats(blocks.kl[at])}.`,
  ];
}

/** What the colours and signs mean. @param {View} view */
function foot({ header, look, farthest }) {
  const { measure, nVocab } = header;
  const right = header.right.some((one) => one >= 0);
  const tick = header.asksNext
    ? " · ✓ the word that really comes next"
    : " · ✓ the word that is hidden";
  const [low, high] =
    measure === "Rank"
      ? [`rank ${count(nVocab)}`, "rank 1"]
      : measure === "KL"
        ? [nats(farthest), "0"]
        : ["0", "1"];
  return make(
    "div",
    "foot",
    make(
      "p",
      "key",
      named("word", "same"),
      " the model’s final answer for this token",
      right && make("span", "", tick),
    ),
    legend(look.one, low, high),
  );
}

const table = { share, told, foot };

// ---- one token through all sites -----------------------------------------------------------------

/** @param {View} view */
function way(view) {
  const { header, root } = view;
  const held = focused(root)?.dataset.at;
  const heads = ["site", "says", "p of the answer", "its rank", "KL"];
  const buttons = header.way.map((one, site) =>
    make(
      "button",
      {
        data: { at: site },
        "aria-label": `${header.spoken[site]}: ${one.word}. The answer ${chance(one.p)}, rank ${place(one.rank)}`,
        "aria-pressed": site === header.site,
        onclick: () => view.send("cell", `${site}.${header.at}`),
      },
      header.sites[site],
    ),
  );
  const rows = header.way.map((one, site) =>
    make(
      "tr",
      {
        class: site === header.site ? "on" : "",
        onclick: (event) => event.target !== buttons[site] && buttons[site].click(),
      },
      make("td", "", buttons[site]),
      make("td", "", named(one.word, one.same ? "same" : "")),
      make(
        "td",
        "",
        make("span", "track", make("span", { class: "ink", style: { width: `${100 * one.p}%` } })),
        make("span", "figure", chance(one.p)),
      ),
      make("td", "", place(one.rank)),
      make("td", "", nats(one.kl).replace(" nats", "")),
    ),
  );
  const top = make("tr", "", ...heads.map((text) => make("th", { scope: "col" }, text)));
  root.replaceChildren(
    make(
      "h4",
      "",
      "The answer ",
      named(header.answer),
      " on its way, at ",
      named(header.where),
      ` (token ${header.at})`,
    ),
    make("table", "", make("thead", "", top), make("tbody", "", ...rows)),
  );
  rove(buttons, { held: Number(held ?? header.site), upright: true });
  if (held !== undefined) buttons[held]?.focus({ preventScroll: true });
  const { length } = header.sites;
  bus.tell({ lens: { held: [header.site, header.at], sites: length, tokens: header.nTokens } });
}

// ---- the sum of a logit --------------------------------------------------------------------------

// Each group's bar begins where the one before it ended, so that the last one ends at the logit.
/** @param {View} view */
function sum({ header, root }) {
  let at = 0;
  const ends = header.groups.map((group) => (at += group.value));
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const part = (value) => `${(100 * value) / (high - low || 1)}%`;
  const line = (name, from, to, value) =>
    make(
      "li",
      "",
      make("span", "", name),
      make(
        "span",
        "track",
        make("span", {
          class: `ink ${value < 0 ? "down" : "up"}`,
          style: { left: part(Math.min(from, to) - low), width: part(Math.abs(to - from)) },
        }),
        make("span", { class: "zero", style: { left: part(-low) } }),
      ),
      make("span", "figure", signed(value, 3)),
    );
  const lines = header.groups.map(({ name, value }, g) =>
    line(name, ends[g] - value, ends[g], value),
  );
  const total = put(line("sum", 0, header.total, header.total), { class: "total" });
  root.replaceChildren(make("ol", "sum", ...lines, total));
}
