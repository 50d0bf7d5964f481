// @ts-check
// Colours: the theme's own, and the two scales made of them. A colour of a scale is a word, its
// four bytes as they stand in a picture's memory.

import LIGHT from "./light.toml.js";

/**
 * How a picture looks.
 * @typedef {{ ink: string, paper: string, primary: string, border: string, font: string,
 *   categorical: string[], one: Uint32Array, two: Uint32Array, key: string }} Look
 */

/** @param {string} colour as #rrggbb */
export function channels(colour) {
  const pairs = colour.trim().match(/[0-9a-f]{2}/gi) || [];
  return pairs.map((pair) => parseInt(pair, 16));
}

/**
 * 256 colours evenly between the stops.
 * @param {string[]} stops
 */
export function ramp(stops) {
  const list = stops.map(channels);
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (list.length - 1);
    const low = Math.min(Math.floor(at), list.length - 2);
    const [r, g, b] = list[low].map((c, k) => Math.round(c + (list[low + 1][k] - c) * (at - low)));
    return (255 << 24) | (b << 16) | (g << 8) | r;
  });
}

/**
 * A look from its colours. `one`: from nothing up, in the sequential colours. `two`: the second
 * categorical colour below 0, the page's own at 0, the first above.
 * @param {{ ink: string, paper: string, primary: string, border: string, font: string,
 *   sequential: string[], categorical: string[] }} colours
 * @returns {Look}
 */
export function lookOf({ sequential, categorical, ...rest }) {
  const [above, below] = categorical;
  return {
    ...rest,
    categorical,
    one: ramp(sequential),
    two: ramp([below, rest.paper, above]),
    key: [rest.ink, rest.paper, rest.primary, ...sequential, ...categorical].join(),
  };
}

// What a theme says to views, which a page without Streamlit is told.
const VARIABLES =
  "primary-color background-color secondary-background-color text-color border-color blue-text-color " +
  "chart-sequential-colors chart-categorical-colors font base-radius";

/** The theme around an element, to be set as variables elsewhere. @param {Element} element @returns {Record<string, string>} */
export function variables(element) {
  const style = getComputedStyle(element);
  const names = VARIABLES.split(" ").map((name) => `st-${name}`);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`)]));
}

// Of a system with colours of its own, where pictures have as much contrast as the words around them.
const CONTRAST = {
  dark: {
    ...{ ink: "#ffffff", paper: "#000000", primary: "#ffff00", border: "#ffffff" },
    sequential: ["#000000", "#5c4a00", "#ffff00", "#ffffff"],
    categorical: ["#ffff00", "#00ffff", "#00ff00", "#ff80ff", "#ff9090", "#c0c0c0"],
  },
  light: {
    ...{ ink: "#000000", paper: "#ffffff", primary: "#7a1f00", border: "#000000" },
    sequential: ["#ffffff", "#d9a58c", "#7a1f00", "#000000"],
    categorical: ["#7a1f00", "#00007a", "#005a00", "#5a005a", "#7a0040", "#404040"],
  },
};

/** Whether the system forces its colours, and whether these are dark. */
function contrast() {
  const is = (/** @type {string} */ query) =>
    typeof matchMedia !== "undefined" && matchMedia(query).matches;
  return { active: is("(forced-colors: active)"), dark: is("(prefers-color-scheme: dark)") };
}

/** @type {{ colours: string, look: Look } | undefined} */
let latest; // look, which all views of a page share

/** The look of the page around an element. @param {Element} element */
export function onScreen(element) {
  const style = getComputedStyle(element);
  const value = (/** @type {string} */ name) => style.getPropertyValue(`--st-${name}`).trim();
  const list = (/** @type {string} */ name) =>
    value(name)
      .split(",")
      .map((each) => each.trim());
  const colours = {
    ink: value("text-color"),
    paper: value("background-color"),
    primary: value("primary-color"),
    border: value("border-color"),
    font: value("font") || style.fontFamily,
    sequential: list("chart-sequential-colors"),
    categorical: list("chart-categorical-colors"),
  };
  const { active, dark } = contrast();
  if (active) Object.assign(colours, CONTRAST[dark ? "dark" : "light"]);
  const key = JSON.stringify(colours);
  if (latest?.colours !== key) latest = { colours: key, look: lookOf(colours) };
  return latest.look;
}

/** The light theme's colours on white, for print, whatever the screen shows. */
export const onWhite = () => lookOf({ ...LIGHT, paper: "#ffffff" });

/** The light theme's colours on its own paper. */
export const onPaper = () => lookOf(LIGHT);

/** @param {number} word */
export const css = (word) => `rgb(${word & 255},${(word >> 8) & 255},${(word >> 16) & 255})`;

/**
 * The ink, dark or white, that stands out more on a colour (WCAG 2.2, relative luminance); one of
 * the two always reaches 4.5 : 1.
 * @param {number} word
 */
export function inkOn(word) {
  const [r, g, b] = [0, 8, 16].map((shift) => {
    const c = ((word >> shift) & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

/** @param {number} value @param {number} low @param {number} high */
export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

/**
 * The word of a scale at a share from 0 to 1; what lies outside takes the nearer end.
 * @param {Uint32Array} words
 * @param {number} share
 */
export const wordAt = (words, share) => words[Math.round(255 * clamp(share, 0, 1))];

/**
 * A weight's place on a scale, 0 to 1. `full` is the weight at the top; log shows three decades
 * below it.
 * @param {number} weight
 * @param {number} full
 * @param {boolean} [log]
 */
export function shade(weight, full, log = false) {
  if (weight <= 0 || full <= 0) return 0;
  const share = weight / full;
  return clamp(log ? 1 + Math.log10(share) / 3 : share, 0, 1);
}
