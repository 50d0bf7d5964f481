// @ts-check
// Equalities that are true at the digits printed: their parts get as many figures as that takes.

import { num } from "./number_format.js";

const PLAIN = Object.fromEntries([..."⁻⁰¹²³⁴⁵⁶⁷⁸⁹−"].map((c, i) => [c, "-0123456789-"[i]]));
const plain = (/** @type {string} */ text) => text.replace(/[⁻⁰¹²³⁴⁵⁶⁷⁸⁹−]/g, (c) => PLAIN[c]);
const MOST = 9; // figures: what 32 bits know

/** The number that `num` wrote. @param {string} text */
export const read = (text) => Number(plain(text).replace(" × 10", "e"));

/** Whether a value is what is written, at the digits that are written. */
function says(/** @type {string} */ text, /** @type {number} */ value) {
  const [digits, power = "0"] = plain(text).split(" × 10");
  const decimals = (digits.split(".")[1] || "").length;
  return Math.abs(value - read(text)) <= 0.500001 * 10 ** (Number(power) - decimals);
}

/**
 * A result as `say` writes it, and the parts in so many figures as `write` writes them, or as many
 * more as it takes to make the result. Where they are not known that well, it is what they make.
 * @param {(...parts: number[]) => number} of
 * @param {number} value
 * @param {number[]} parts
 * @param {{ figures?: number, write?: (value: number, figures: number) => string,
 *   say?: (value: number, figures: number) => string }} [how]
 * @returns {[string, string[]]}
 */
export function enough(of, value, parts, { figures = 4, write = num, say = write } = {}) {
  const result = say(value, figures);
  for (let n = figures; n <= MOST; n++) {
    const told = parts.map((each) => write(each, n));
    if (says(result, of(...told.map(read)))) return [result, told];
  }
  const told = parts.map((each) => write(each, MOST));
  return [say(of(...told.map(read)), figures), told];
}

/** A number that follows a sign. @param {string} text */
export const apart = (text) => (text.startsWith("−") ? `(${text})` : text);
