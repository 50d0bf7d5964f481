// @ts-check
// Tokens on the page: what a person typed stands in its own direction and as it is.

import { rove } from "./keys.js";
import { AT_ONCE, gradually, make, put } from "./mount.js";
import { css, inkOn } from "./theme.js";

/**
 * A token in a sentence of ours.
 * @param {string} label
 * @param {string} [className]
 */
export const named = (label, className = "") => make("b", { class: className, dir: "auto" }, label);

/** @param {string} text @param {number} most characters */
export const cut = (text, most) =>
  [...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text;

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

/**
 * Tokens with a number each, for a sentence.
 * @param {number[]} places
 * @param {(at: number) => string} label
 * @param {(at: number) => string} figure
 */
export const listed = (places, label, figure) =>
  places.flatMap((at, i) => [i ? ",  " : "", named(label(at)), ` ${figure(at)}`]);

/**
 * Tokens as a row of buttons, one of which can be reached with Tab.
 * @param {string[]} labels
 * @param {{ about: string, className?: string, focus?: string, held?: number,
 *   special?: boolean[], late?: boolean, dressed?: (at: number) => Record<string, any>,
 *   choose: (at: number) => void, look: (at: number) => void }} how
 *   look: told where pointer or focus are, -1 for nowhere. dressed: more attributes.
 *   late: of many, those out of sight come later.
 */
export function chips(labels, { about, className = "tokens", focus, held = 0, late, ...how }) {
  const list = labels.map((label, at) => {
    const chip = make(
      "button",
      {
        class: how.special?.[at] ? "token special" : "token",
        dir: "auto",
        data: { at, focus: `${focus ?? "token"} ${at}` },
        onclick: () => how.choose(at),
        onmouseenter: () => how.look(at),
        onmouseleave: () => how.look(-1),
        onfocus: () => how.look(at),
        onblur: () => how.look(-1),
      },
      label,
    );
    return how.dressed ? put(chip, how.dressed(at)) : chip;
  });
  rove(list, { held: Math.max(0, held) });
  const box = make("div", { class: className, role: "group", "aria-label": about });
  return { box: gradually(box, list, late ? undefined : list), list };
}

/**
 * The names of a matrix's rows (axis 0, down) or columns (1, across).
 * @param {string[]} list
 * @param {number} axis
 * @param {string} className
 * @param {{ choose?: (axis: number, at: number) => void, late?: boolean }} how
 *   late: names out of sight come later.
 * @returns {[HTMLElement, HTMLElement[]]} their place, and one for each
 */
export function side(list, axis, className, { choose, late }) {
  const spans = list.map((text, at) =>
    make("span", { dir: "auto", title: text, onclick: () => choose?.(axis, at) }, text),
  );
  const first = late ? spans.slice(0, AT_ONCE) : spans;
  // The longest is there from the start, in its place, so that the others move nothing.
  const sizes = list.map((text) => text.length);
  const most = sizes.indexOf(Math.max(...sizes));
  if (most >= first.length) {
    spans[most].style[axis ? "gridColumn" : "gridRow"] = `${most + 1}`;
    first.push(spans[most]);
  }
  const place = { class: `${className} ${axis ? "across" : "down"}`, "aria-hidden": "true" };
  return [gradually(make("div", place), spans, first), spans];
}

/**
 * A token in a colour of a scale and the ink that can be read on it; in none without a colour.
 * @param {HTMLElement} token
 * @param {number | undefined} word
 */
export function tint(token, word) {
  token.style.background = word === undefined ? "" : css(word);
  token.style.color = word === undefined ? "" : inkOn(word);
}
