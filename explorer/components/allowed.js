// @ts-check
// What is drawn: the names of elements and attributes that views make, in HTML, in pictures (SVG) and in
// formulas (MathML). What they draw may come from a stranger's window or file: any other name is refused,
// and so is an object where a word is meant.

/** @typedef {{ elements: Set<string>, attributes: Set<string> }} Names */

/** Names of a line. @template {string} Line @template {string} [Found=never] @typedef {Line extends `${infer Name} ${infer Rest}` ? InLine<Rest, Found | Name> : Found | Line} InLine */
/** @template Set_ @typedef {Set_ extends Set<infer Name> ? Name : never} Of */
/** What may be set, as an object: a name that is in no list fails the check of types where it stands in a literal. @typedef {{ [name in Of<typeof HTML.attributes> | `on${string}` | "data" | "hidden" | "style" | "vars"]?: any }} Attributes */
/** @typedef {{ [name in Of<typeof SVG.attributes>]?: any }} PictureAttributes */

/** @template {string} Line @param {...Line} lines @returns {Set<InLine<Line>>} */
const all = (...lines) => /** @type {any} */ (new Set(lines.join(" ").split(" ")));

const ARIA =
  "aria-current aria-describedby aria-hidden aria-keyshortcuts aria-label aria-pressed aria-valuetext";

export const HTML = {
  elements: all(
    "a b blockquote button canvas caption dd details dfn div dl dt footer form h1 h2 h3 header hr img input label",
    "li nav ol output p section small span strong style sub summary sup table tbody td textarea th thead tr",
  ),
  attributes: all(
    `${ARIA} accept alt autocomplete class dir disabled download height href id max maxlength min`,
    "open placeholder readonly role rows spellcheck src step tabindex title translate type value width",
  ),
};

export const SVG = {
  elements: all(
    "circle defs desc g image linearGradient path pattern rect stop style svg text title tspan",
  ),
  attributes: all(
    `${ARIA} aria-roledescription class cx cy d data-at data-box data-cells data-names data-select`,
    "data-start dy fill fill-opacity font-family font-size font-style font-weight height href id",
    "image-rendering offset opacity overflow paint-order patternTransform patternUnits",
    "preserveAspectRatio r role rx shape-rendering stop-color stop-opacity stroke stroke-dasharray",
    "stroke-linecap stroke-linejoin stroke-opacity stroke-width tabindex text-anchor transform",
    "translate unicode-bidi viewBox width x xml:space xmlns y",
  ),
};

export const MATH = {
  elements: all("math mfrac mi mn mo mover mrow msqrt msub msup mtable mtd mtext mtr munder"),
  attributes: all("class data-symbol display title"),
};

const STYLES = all("columnGap height left maxHeight minHeight opacity top transform width zoom");
/** @type {Set<string>} */
const ADDRESSES = all("href src");
const OWN = /^(\.|blob:|data:image\/|https?:)/; // an address that runs nothing

/** @param {unknown} value @param {string} what */
function refused(value, what) {
  return new TypeError(`${what} that is not drawn: ${String(value).slice(0, 40)}`);
}

/** A name that is one of these. Raises TypeError for any other. @param {any} name @param {Set<string>} names */
export function known(name, names) {
  if (!names.has(name)) throw refused(name, "a name");
  return name;
}

/** What is a word, a number, true or false. Raises TypeError for anything else. @template Value @param {Value} value @returns {Value} */
export function word(value) {
  if (!["string", "number", "boolean"].includes(typeof value)) throw refused(value, "a value");
  return value;
}

/** A value for an attribute of that name. Raises TypeError where it may have none, or not this one. @param {string} name @param {any} value @param {Names} names */
export function attribute(name, value, { attributes }) {
  known(name, attributes);
  if (ADDRESSES.has(name) && !OWN.test(`${word(value)}`)) throw refused(value, "an address");
  return word(value);
}

/** Set properties of a style. @param {any} style @param {Record<string, any>} properties */
export function setStyles(style, properties) {
  for (const [name, value] of Object.entries(properties)) style[known(name, STYLES)] = word(value);
}
