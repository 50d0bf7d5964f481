// @ts-check
// The rest of the views in type for the back row: how beams grew and what came of them, and heads
// that moved.

import { fixed, odds } from "./number_format.js";
import { heirs } from "./translation_tree.js";

/** @typedef {import("./mount.js").View} View */

const LONGEST = 60; // letters of a hypothesis in a headline
const SHARED = 12; // letters of a common beginning that are worth a cut
const PLACES = ["first", "second", "third", "fourth", "fifth"];

/** @param {string} text */
const quoted = (text) => `“${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}”`;

/** Texts from where they part. @param {string[]} texts */
function parted(texts) {
  const [one, ...others] = texts;
  let same = 0;
  while (one[same] && others.every((text) => text[same] === one[same])) same++;
  const cut = one.lastIndexOf(" ", same) + 1;
  return others.length && cut > SHARED ? texts.map((text) => `… ${text.slice(cut)}`) : texts;
}

/** @param {View} view */
export function hypotheses({ header, send }) {
  const { beams, chosen } = header;
  const labels = parted(beams.map((beam) => beam.text || "(no text)"));
  const rows = beams.map((beam, at) => ({
    label: labels[at],
    values: [Math.exp(beam.score)],
    texts: [fixed(beam.score, 3)],
    on: at === chosen,
  }));
  const place = `${PLACES[chosen]} of ${rows.length}`;
  return {
    says: `${quoted(beams[chosen].text)} is ${place} (${rows[chosen].texts[0]})`,
    caption: "A bar is e to the power of the score, the log-probability for the length.",
    panels: [{ kind: "bars", columns: ["score"], rows, what: "hypotheses" }],
    walk: (by) => send("beam", Math.max(0, Math.min(rows.length - 1, chosen + by))),
  };
}

/** @param {View} view */
export function grown({ header }) {
  const { steps, chosen } = header;
  const { way } = heirs(steps, chosen);
  const rungs = steps.map((held, step) => ({
    label: `${step + 1}`,
    words: held.map(({ carried, label, p, score }) =>
      carried ? ["ended", 0, fixed(score, 2)] : [label, p, odds(p)],
    ),
    on: false,
  }));
  const behind = way.findIndex((place) => place > 0);
  const held = steps[Math.max(0, behind)][way[Math.max(0, behind)]];
  const says =
    behind < 0
      ? `In all ${steps.length} steps the one chosen in the end stood first`
      : `At step ${behind + 1} the one chosen in the end stood only ${PLACES[way[behind]]}, at ${quoted(held.label)}`;
  if (behind >= 0) rungs[behind].on = true;
  return {
    says,
    caption:
      "A row is a step, best first: what each hypothesis went on with, and its probability; ended, its score.",
    panels: [{ kind: "ladder", rungs }],
  };
}
