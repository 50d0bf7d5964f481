// @ts-check
// Source above, output below, and lines from the chosen output token up to the source.

import { rove } from "./keys.js";
import { make } from "./mount.js";
import { odds } from "./number_format.js";
import { node } from "./svg_export.js";
import { shade, wordAt } from "./theme.js";
import { tint } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const FAINTEST = 0.02;
const MANY = 60; // tokens in a line from which on it scrolls in a box of its own

/** @param {View} view */
export function lineup(view) {
  const { header, blocks, rows, n, weight } = view;
  const links = node("svg", { "aria-hidden": "true" });
  const go = (step) => view.stepper.go(step);
  // A source token leads to the step that looks at it most.
  const most = header.source.map((_, key) =>
    header.says.reduce(
      (best, _, row) => (weight[row * n + key] > weight[best * n + key] ? row : best),
      0,
    ),
  );
  const source = header.source.map((label, key) =>
    chip(label, {
      data: { focus: `source ${key}` },
      title: `Largest weight when generating “${header.says[most[key]]}”, step ${most[key] + 1}`,
      onclick: () => go(most[key]),
    }),
  );
  rove(source, { flat: true });
  const output = header.says.map((label, at) => {
    const p = Math.exp(blocks.logprob[at]);
    const rank = blocks.rank[at] + 1;
    const off = header.forced && rank > 1;
    const one = chip(label, {
      class: off ? "chip off" : "chip",
      "aria-label": `${label} ${odds(p)}${off ? ` #${rank}` : ""}, the probability${off ? " and rank" : ""} at step ${at + 1}`,
      data: { at, focus: `output ${at}` },
      onclick: () => go(at),
    });
    one.append(make("i", { class: "bar", vars: { p } }));
    one.children[1].textContent = odds(p) + (off ? ` #${rank}` : "");
    one.children[1].ariaHidden = "true";
    return one;
  });
  const stop = rove(output, { held: view.step, flat: true, go });
  const line = (title, hint, list, words, name, label) => {
    const tokens = make(
      "div",
      {
        class: list.length > MANY ? "tokens many" : "tokens",
        role: "group",
        "aria-label": label,
        onscroll: () => connect(),
      },
      ...joined(list, words),
    );
    const head = make("div", "title", make("strong", "", title), " ", make("span", "", hint));
    return { tokens, box: make("div", `line ${name}`, head, tokens) };
  };
  const above = line(
    "Source",
    "with attention weights of the selected word; select a token to see the word that attends to it most",
    source,
    header.source_words,
    "source",
    "Source tokens with the weights of the selected word. Arrow keys move, Enter goes to the word that attends to one most.",
  );
  const below = line(
    "Output",
    header.forced
      ? "your output, with probability, and rank where the model predicts another token"
      : "with probability",
    output,
    header.says_words,
    "output",
    "Output tokens. Arrow keys step through them, PageUp and PageDown from anywhere here.",
  );
  const longer = Math.max(rows, n);
  const size = `${longer <= 16 ? 1.5 : longer <= 40 ? 1.25 : 1}rem`;
  const box = make("div", { class: "lineup", vars: { size } }, links, above.box, below.box);
  const connect = () => {
    const frame = box.getBoundingClientRect();
    const from = output[view.step].getBoundingClientRect();
    const [up, down] = [above, below].map(({ tokens }) => tokens.getBoundingClientRect());
    const x = from.left + from.width / 2 - frame.left;
    const y = Math.max(down.top, from.top) - frame.top;
    links.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    const lines = source.flatMap((one, key) => {
      const part = weight[view.step * n + key];
      const to = one.getBoundingClientRect();
      // Too faint, or scrolled out of its box.
      if (part < FAINTEST || to.bottom < up.top || to.top > up.bottom) return [];
      const [x2, y2] = [
        to.left + to.width / 2 - frame.left,
        Math.min(to.bottom, up.bottom) - frame.top,
      ];
      const middle = (y + y2) / 2;
      return node("path", {
        d: `M ${x} ${y} C ${x} ${middle}, ${x2} ${middle}, ${x2} ${y2}`,
        "stroke-width": 1 + part * 6,
        "stroke-opacity": Math.min(1, 0.15 + part),
      });
    });
    links.replaceChildren(...lines);
  };
  view.sized.push(connect);
  view.parts.push((step) => {
    const row = weight.subarray(step * n, (step + 1) * n);
    source.forEach((one, key) => {
      tint(one, wordAt(view.look.one, shade(row[key], view.peak)));
      one.dataset.weight = row[key];
      one.children[1].textContent = odds(row[key]);
      one.children[1].ariaHidden = "true";
      one.setAttribute("aria-label", `${header.source[key]} ${odds(row[key])}, its weight`);
    });
    output.forEach((one, at) => {
      one.classList.toggle("later", at > step);
      one.classList.toggle("now", at === step);
      one.setAttribute("aria-pressed", `${at === step}`);
    });
    stop(step);
    sight(source[row.indexOf(Math.max(...row))]);
    sight(output[step]);
    connect();
  });
  return box;
}

function chip(label, attributes) {
  const name = make("span", { class: "label", dir: "auto" }, label);
  return make("button", { class: "chip", ...attributes }, name, " ", make("span", "figure"));
}

/** Chips, those of one word close together. */
function joined(list, words) {
  const groups = [];
  list.forEach((one, at) => {
    if (!at || words[at] !== words[at - 1]) groups.push(make("span", "word"));
    groups.at(-1).append(one);
  });
  return groups;
}

// Bring a chip into sight inside the box that its line scrolls in, if it does; the page stays where it is.
function sight(one) {
  const box = one.closest(".many");
  if (!box) return;
  const [from, to] = [one.getBoundingClientRect(), box.getBoundingClientRect()];
  if (from.top < to.top) box.scrollTop += from.top - to.top;
  else if (from.bottom > to.bottom) box.scrollTop += from.bottom - to.bottom;
}
