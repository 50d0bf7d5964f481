// @ts-check
// Numbers in words and figures, the same everywhere, and lines that are spoken when they change.

import { make } from "./mount.js";
import { sentences } from "./sentences.js";

const say = sentences("figures");

const UP = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const signs = (/** @type {string} */ text) => text.replace("-", "−");
const raised = (/** @type {string} */ digits) =>
  [...digits].map((c) => (c === "-" ? "⁻" : UP[+c])).join("");

/** A count with its thousands. @param {number} value */
export const counted = (value) => value.toLocaleString("en-US");

/** A place in words: "1st", "2,155th". @param {number} value */
export function ordinal(value) {
  const isTeen = value % 100 > 10 && value % 100 < 14;
  return `${counted(value)}${(!isTeen && ["th", "st", "nd", "rd"][value % 10]) || "th"}`;
}

/** In so many decimals; what rounds to 0 has no sign. @param {number} value @param {number} digits */
export const fixed = (value, digits) => signs(value.toFixed(digits).replace(/^-(?=[0.]*$)/, ""));

/** Decimals, or a power of ten where they would all be 0. @param {number} value @param {number} digits */
export function exact(value, digits = 4) {
  const tiny = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  return tiny ? num(value, 2) : signs(value.toFixed(digits));
}

/** A weight in two decimals, and neither 0 nor 1 for what is not. @param {number} value */
export const hundredths = (value) =>
  value > 0 && value < 0.005 ? "< 0.01" : value < 1 && value >= 0.995 ? "> 0.99" : fixed(value, 2);

/** The same where there is little room: "<.01". @param {number} value */
export const share = (value) => hundredths(value).replace(/([<>]) 0/, "$1");

/** A value in per cent with one decimal, neither 0 nor 100 for what is not. @param {number} value from 0 to 100 */
export const tenths = (value) =>
  value > 0 && value < 0.05
    ? "< 0.1%"
    : value >= 99.95 && value < 100
      ? "> 99.9%"
      : `${value.toFixed(1)}%`;

/**
 * So many figures, very large and very small ones as a power of ten.
 * @param {number | null | undefined} value
 * @param {number} [figures]
 */
export function num(value, figures = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  const size = Math.abs(value);
  let text;
  if (size === 0 || (size >= 0.001 && size < 100000)) text = `${Number(size.toPrecision(figures))}`;
  else {
    const [digits, power] = size.toExponential(figures - 1).split("e");
    text = `${Number(digits)} × 10${raised(`${Number(power)}`)}`;
  }
  return value < 0 ? `−${text}` : text;
}

/**
 * A weight as far as it is known.
 * @param {number} weight
 * @param {number} [unknown] the half-width of what is not known of it
 */
export function weightText(weight, unknown = 0) {
  if (unknown > 0) return weight + unknown < 0.0001 ? "< 0.0001" : within(weight, unknown);
  return exact(weight);
}

/**
 * A number that is not known exactly. The width holds what is printed, rounded as it is.
 * @param {number} value
 * @param {number} unknown the half-width of what is not known of it
 * @param {number} [digits]
 */
export function within(value, unknown, digits = 4) {
  const shown = Number(value.toFixed(digits));
  const steps = (unknown + Math.abs(value - shown)) * 10 ** digits;
  return `≈ ${fixed(value, digits)} ± ${(Math.ceil(steps - 1e-6) / 10 ** digits).toFixed(digits)}`;
}

/**
 * Why a cell has no weight.
 * @param {number} query
 * @param {number} key
 * @param {boolean} ahead whether some later token may be looked at
 */
export const notAllowed = (query, key, ahead) =>
  say(key > query && !ahead ? "later_token" : "not_allowed");

/**
 * A line that is spoken when it changes.
 * @param {string} className
 * @param {"p" | "div"} [tag]
 */
export const spokenLine = (className, tag = "p") => make(tag, { class: className, role: "status" });

const FORMULA =
  /(?<![A-Za-z])([A-Za-zΣ])_([A-Za-z]{1,2})(?![A-Za-z_])|(?<=[\w)])\^(?:\(([^()]*)\)|(\d+(?:\.\d+)?|[A-Za-z]+))/g;

/** A line in parts, each with the tag it stands in: W_O with an index, x^(2i/d) with a power. @param {string} line @returns {["" | "sub" | "sup", string][]} */
export function formulas(line) {
  /** @type {["" | "sub" | "sup", string][]} */
  const parts = [];
  let at = 0;
  for (const { index, 0: all, 1: letter, 2: below, 3: power, 4: short } of line.matchAll(FORMULA)) {
    parts.push(["", line.slice(at, index) + (letter ?? "")]);
    parts.push(below ? ["sub", below] : ["sup", power ?? short]);
    at = index + all.length;
  }
  return [...parts, ["", line.slice(at)]];
}
