// @ts-check
// Tokens on the page: what a person typed stands in its own direction and as it is.

import { make } from "./mount.js";

/** A token as a word of a sentence: a punctuation mark in quotes, which would else be read as one of the sentence. @param {string} label */
export const inSentence = (label) => label.replace(/^(→ )?(\p{P}+)$/u, "$1“$2”");

/**
 * A token in a sentence of ours.
 * @param {string} label
 * @param {string} [className]
 */
export const named = (label, className = "") =>
  make("b", { class: className, dir: "auto" }, inSentence(label));

/** Without the signs that would turn or break what stands beside them. @param {string} text */
export const calm = (text) =>
  text.replace(
    // eslint-disable-next-line no-control-regex
    /[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\uffff]/g,
    "\ufffd",
  );

/**
 * Places of the largest weights, largest first.
 * @param {ArrayLike<number>} weights
 * @param {number} most
 */
export function strongest(weights, most) {
  /** @type {number[]} */
  const best = [];
  for (let k = 0; k < weights.length; k++) {
    if (best.length === most && !(weights[k] > weights[best[most - 1]])) continue;
    if (Number.isNaN(weights[k])) continue;
    best.push(k);
    best.sort((a, b) => weights[b] - weights[a]);
    best.length = Math.min(best.length, most);
  }
  return best;
}
