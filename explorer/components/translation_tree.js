// @ts-check
// How the beams of a translation grew.

import { hear, make, redraw } from "./mount.js";
import { exact, fixed, odds } from "./number_format.js";
import { node } from "./svg_export.js";

/** @typedef {import("./mount.js").View} View */

/** @param {View} view */
export function tree(view) {
  if (!view.same) grown(view);
  hear(view, ({ translation }) => translation !== undefined && mark(view, translation));
}

/** Who still has heirs in the last step, and who is on the way to the chosen hypothesis. */
export function heirs(steps, chosen) {
  const last = steps.length - 1;
  const alive = steps.map(() => new Set());
  const way = steps.map(() => -1);
  steps[last].forEach((_, at) => {
    for (let step = last, place = at; step >= 0; place = steps[step][place].parent, step--) {
      alive[step].add(place);
      if (at === chosen) way[step] = place;
    }
  });
  return { alive, way };
}

/** @param {View} view */
function grown(view) {
  const { steps, chosen } = view.header;
  const across = Math.max(...steps.map((held) => held.length));
  const { alive, way } = heirs(steps, chosen);
  const lines = steps.flatMap((held, step) =>
    held.map((beam, at) =>
      node("path", {
        d: `M ${step ? beam.parent + 0.5 : across / 2} ${step + 0.5} L ${at + 0.5} ${step + 1.5}`,
        class: way[step] === at ? "way" : alive[step].has(at) ? "alive" : "",
      }),
    ),
  );
  view.generations = steps.map((held, step) =>
    make(
      "div",
      "generation",
      make("span", "count", `${step + 1}`),
      ...held.map((beam, at) => {
        const { carried } = beam;
        const kinds = { way: way[step] === at, dead: !alive[step].has(at), carried };
        const names = Object.keys(kinds).filter((kind) => kinds[kind]);
        const score = fixed(beam.score, 3);
        return make(
          "span",
          {
            class: ["node", ...names].join(" "),
            vars: { x: at + 0.5 },
            title: `Step ${step + 1}, rank ${at + 1}: ${beam.label}, p ${exact(beam.p)}, score ${score}${carried ? ", ended before" : ""}`,
          },
          make("span", { class: "label", dir: "auto" }, carried ? "ended" : beam.label),
          make("span", "figure", carried ? fixed(beam.score, 2) : odds(beam.p)),
        );
      }),
    ),
  );
  const start = make(
    "span",
    { class: "node way", vars: { x: across / 2 } },
    make("span", { class: "label", dir: "auto" }, view.header.start),
  );
  const size = `0 0 ${across} ${steps.length + 1}`;
  view.scroll = make(
    "div",
    {
      class: "scroll grown",
      tabindex: 0,
      role: "region",
      data: { focus: "tree" },
      "aria-label": `Search tree of ${across} beams in ${steps.length} steps, from top to bottom. The table below has the same.`,
    },
    make(
      "div",
      { class: "tree", vars: { across, steps: steps.length + 1 } },
      node("svg", { viewBox: size, preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines),
      make("div", "generation", start),
      ...view.generations,
    ),
  );
  const note =
    "Each row is a step, with the best hypothesis at the left. A node is the added token, with its probability. Bold: the path to the hypothesis shown. Faded: dropped later.";
  redraw(view, [view.scroll, make("p", "note", note)], [".scroll"]);
}

// The row of the step that is on screen; it scrolls only inside its own box.
/** @param {View} view */
function mark({ generations, scroll }, step) {
  generations.forEach((row, at) => row.classList.toggle("on", at === step));
  const row = generations[step];
  if (!row) return;
  if (row.offsetTop < scroll.scrollTop) scroll.scrollTop = row.offsetTop;
  else if (row.offsetTop + row.offsetHeight > scroll.scrollTop + scroll.clientHeight)
    scroll.scrollTop = row.offsetTop + row.offsetHeight - scroll.clientHeight;
}
