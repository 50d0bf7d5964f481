// @ts-check
// Pictures to take along: an SVG that stands by itself, with title and caption, and the same as PNG,
// in the screen's colours or on white.

import { SVG, attribute, known } from "./allowed.js";
import { bus, listen } from "./bus.js";
import { context } from "./matrix_canvas.js";
import { make, until } from "./mount.js";
import { onWhite } from "./theme.js";

/** @typedef {import("./theme.js").Look} Look */

// The screen's own font, and what stands in for it where a program does not have it.
export const FONT = "Inter, 'Helvetica Neue', Arial, 'Noto Sans', 'Liberation Sans', sans-serif";
const SPACE = "http://www.w3.org/2000/svg";
const MARKS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** What XML can hold; the rest becomes the replacement character. @param {string} text */
const legible = (text) =>
  text.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");

const PLAIN = /^[ !#-%'-;=?-~]*$/; // what stands as it is

/** Text as XML. @param {any} text */
export const escaped = (text) =>
  PLAIN.test(text)
    ? `${text}`
    : legible(`${text}`).replace(/[&<>"]/g, (c) => MARKS[/** @type {keyof typeof MARKS} */ (c)]);

/**
 * An element of a file. What is `inside` is SVG already; undefined attributes are left out. Raises
 * TypeError for a name that no picture has and for an object where a word is meant.
 * @param {string} name
 * @param {import("./allowed.js").PictureAttributes} attributes
 * @param {...string} inside
 */
export function tag(name, attributes, ...inside) {
  let written = "";
  for (const key in attributes)
    if (attributes[key] !== undefined)
      written += ` ${key}="${escaped(attribute(key, attributes[key], SVG))}"`;
  return `<${known(name, SVG.elements)}${written}>${inside.join("")}</${name}>`;
}

/** What is inside a picture as a picture of its own. @param {string} svg @param {import("./allowed.js").PictureAttributes} attributes */
export const whole = (svg, attributes) =>
  tag("svg", { xmlns: SPACE, translate: "no", ...attributes }, svg); // widths are measured

/** A picture of a file on the page. @param {string} svg @param {import("./allowed.js").PictureAttributes} attributes */
export function shown(svg, attributes) {
  const text = whole(svg, attributes);
  const made = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return /** @type {SVGElement} */ (/** @type {unknown} */ (document.adoptNode(made))); // not a copy of it
}

/** @typedef {{ view: import("./mount.js").View, what: string, draw: (look: Look) => string }} Offer */
/** @type {Offer[]} */
let offers = [];

/** The pictures that can be taken from the page as it is now. */
export function offered() {
  offers = offers.filter(({ view }) => view.root.isConnected);
  return offers;
}

/**
 * Put a picture among those that the reader can take along, in place of the one that this view
 * offered before under this name.
 * @param {import("./mount.js").View} view its header names the file
 * @param {string} what the picture is called
 * @param {(look: Look) => string} draw
 */
export function offer(view, what, draw) {
  const others = offered().filter((one) => one.view !== view || one.what !== what);
  offers = [...others, { view, what, draw }];
}

/** The choice of white paper, for all pictures alike. @param {import("./mount.js").View} list */
export function papers(list) {
  const white = make("input", { type: "checkbox" });
  white.onchange = () => bus.tell({ white: white.checked });
  const know = () => (white.checked = Boolean(bus.now.white));
  until(list, "paper", listen(know));
  know();
  return make("label", "paper", white, " white background");
}

/** Buttons that hand a picture to the reader as a file. @param {Offer} one */
export function files({ view, what, draw }) {
  const drawn = () => draw(bus.now.white ? onWhite() : view.look);
  const each = (/** @type {string} */ kind, /** @type {() => Promise<Blob>} */ made) =>
    make(
      "button",
      {
        class: "small",
        data: { focus: `${what} ${kind}` },
        onclick: async () => save(await made(), `${view.header.file}.${kind.toLowerCase()}`),
      },
      `${what} as ${kind}`,
    );
  return [each("PNG", () => pixels(drawn())), each("SVG", async () => file(drawn()))];
}

/** @param {string} svg */
export const file = (svg) => new Blob([svg], { type: "image/svg+xml" });

/** Hand a file to the reader. @param {Blob} content @param {string} name */
export function save(content, name) {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** An SVG as the address of a picture. @param {string} svg */
export const address = (svg) => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;

/** An SVG as a PNG of so many times its size. @param {string} svg @param {number} [times] @returns {Promise<Blob>} */
export async function pixels(svg, times = 2) {
  const image = new Image();
  image.src = await dressed(svg);
  await image.decode();
  const canvas = make("canvas", { width: image.width * times, height: image.height * times });
  context(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  return encoded(canvas, "image/png");
}

/** A canvas as a picture of a kind. @param {HTMLCanvasElement} canvas @param {string} kind @param {number} [quality] from 0 to 1 @returns {Promise<Blob>} */
export const encoded = (canvas, kind, quality) =>
  new Promise((done, fail) =>
    canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), kind, quality),
  );

/** An SVG with the screen's font in it as the address of a picture. @param {string} svg */
export const dressed = async (svg) => address(svg.replace(">", `>${await embedded()}`));

// A picture that is drawn from a file knows no font of the page: the screen's own goes into it.
async function embedded() {
  const own = FONT.split(",")[0];
  for (const sheet of document.styleSheets)
    for (const rule of rulesOf(sheet)) {
      if (!(rule instanceof CSSFontFaceRule)) continue;
      const family = rule.style.getPropertyValue("font-family").replace(/["']/g, "");
      const [, url] = rule.style.getPropertyValue("src").match(/url\(["']?([^"')]+)/) || [];
      if (family === own && url) return tag("style", {}, await face(own, url));
    }
  return "";
}

/** What is fetched once, by its address. @type {Map<string, Promise<string>>} */
const faces = new Map();

/** @param {string} family @param {string} url @returns {Promise<string>} */
function face(family, url) {
  const there = faces.get(url) || fetched(family, url);
  faces.set(url, there);
  there.then((text) => text || faces.delete(url)).catch(() => faces.delete(url));
  return there;
}

/** @param {string} family @param {string} url */
async function fetched(family, url) {
  const answer = await fetch(new URL(url, document.baseURI));
  if (!answer.ok) return "";
  const reader = new FileReader();
  const read = new Promise((done) => (reader.onload = done));
  reader.readAsDataURL(await answer.blob());
  await read;
  return `@font-face{font-family:${family};font-weight:100 900;src:url(${reader.result})}`;
}

/** @param {CSSStyleSheet} sheet @returns {CSSRule[]} those of another origin are none of ours */
function rulesOf(sheet) {
  try {
    return [...sheet.cssRules];
  } catch (error) {
    if (error instanceof DOMException) return [];
    throw error;
  }
}
