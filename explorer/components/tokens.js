// @ts-check
// Tokens on the page: what a person typed stands in its own direction and as it is.

import { make, OF_TEXT } from "./mount.js";

/** A token as a word of a sentence: a punctuation mark in quotes, which would else be read as one of the sentence. @param {string} label */
export const inSentence = (label) => label.replace(/^(→ )?(\p{P}+)$/u, "$1“$2”");

/**
 * A token in a sentence of ours.
 * @param {string} label
 * @param {string} [className]
 */
export const named = (label, className = "") =>
  make("b", { ...OF_TEXT, class: `${OF_TEXT.class} ${className}`.trim() }, inSentence(label));

/** An answer to choose: one word is a word of a text or a model, more are a sentence of ours. @param {string} words */
export const answer = (words) =>
  /\s/.test(words.trim())
    ? make("span", { class: "words", dir: "auto" }, words)
    : make("span", { ...OF_TEXT, class: "words notranslate" }, words);

const RIGHT =
  "\\u0590-\\u08ff\\u200f\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}";
// From one letter of a script that runs to the left to the last, with nothing between that runs to the right.
const RUN = new RegExp(`([${RIGHT}](?:[^\\p{L}\\d“”,;:()]*[${RIGHT}])*)`, "u");
const LEFTWARDS = new RegExp(`[${RIGHT}]`, "u");

/** A text in parts, every second of which runs from right to left. @param {string} text */
export const directions = (text) => text.split(RUN);

/** Whether a text runs from right to left, as its first word does. @param {string[]} tokens */
export const isLeftwards = (tokens) =>
  LEFTWARDS.test(
    tokens.find((each) => /\p{L}/u.test(each) && !/^[[‹<]/.test(each)) ?? "", // no special token
  );

/** The words of a line from left to right: in a text that runs to the left, backwards but for what runs to the right. @param {any[]} words @param {boolean} isRight */
export function visual(words, isRight) {
  const against = (/** @type {any} */ { text }) =>
    isRight ? /\p{L}/u.test(text) && !LEFTWARDS.test(text) : LEFTWARDS.test(text);
  /** @type {any[][]} */
  const runs = [];
  words.forEach((word, i) => {
    if (i && against(word) && against(words[i - 1])) runs[runs.length - 1].push(word);
    else runs.push([word]);
  });
  if (isRight) return runs.reverse().flat();
  return runs.flatMap((run) => (against(run[0]) ? run.reverse() : run));
}

/** Set the words of a line beside each other, each `wide`, with gaps between them: their `left`. @param {any[]} words @param {boolean} isRight @param {number[]} room its left and its width @param {number} gap */
export function set(words, isRight, [x, width], gap) {
  const whole = words.reduce((sum, { wide }) => sum + wide + gap, -gap);
  let left = isRight ? x + width - whole : x;
  for (const word of visual(words, isRight)) {
    word.left = left;
    left += word.wide + gap;
  }
}

/** A name without what its end says apart ("= [UNK]"), and that. @param {string} name */
export const partsOfName = (name) => {
  const [, own, end] = /** @type {RegExpMatchArray} */ (
    name.match(/^(.*?)((?: = \[[^\]]*\])?)$/su)
  );
  return [own, end];
};

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
