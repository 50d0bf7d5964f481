// @ts-check
// Pictures to take along: an SVG that stands by itself, with title and caption, and the same as PNG,
// in the screen's colours or on white.

import { bus, listen } from "./bus.js";
import { context, raster, stops } from "./matrix_canvas.js";
import { make, until } from "./mount.js";
import { css, onWhite } from "./theme.js";
import { cut } from "./tokens.js";

/** @typedef {import("./theme.js").Look} Look */

// The screen's own font, and what stands in for it where a program does not have it.
export const FONT = "Inter, 'Helvetica Neue', Arial, 'Noto Sans', 'Liberation Sans', sans-serif";
const SPACE = "http://www.w3.org/2000/svg";
const MARKS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** What XML can hold; the rest becomes the replacement character. @param {string} text */
export const legible = (text) =>
  text.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");

/** Text as XML. @param {any} text */
export const escaped = (text) =>
  legible(`${text}`).replace(/[&<>"]/g, (c) => MARKS[/** @type {keyof typeof MARKS} */ (c)]);

/**
 * An element of a file. What is `inside` is SVG already; undefined attributes are left out.
 * @param {string} name
 * @param {Record<string, any>} attributes
 * @param {...string} inside
 */
export function tag(name, attributes, ...inside) {
  const list = Object.entries(attributes).filter(([, value]) => value !== undefined);
  const written = list.map(([key, value]) => ` ${key}="${escaped(value)}"`).join("");
  return `<${name}${written}>${inside.join("")}</${name}>`;
}

/**
 * A text of a file.
 * @param {number} x
 * @param {number} y
 * @param {string} content
 * @param {Record<string, any>} [attributes]
 */
export const text = (x, y, content, attributes = {}) =>
  tag("text", { x, y, "font-size": 12, ...attributes }, escaped(content));

/** A text that is read from below. @param {number} x @param {number} y @param {string} content @param {Record<string, any>} [attributes] */
export const upright = (x, y, content, attributes = {}) =>
  text(0, 0, content, { ...attributes, transform: `translate(${x} ${y}) rotate(-90)` });

const BOLD = { "font-weight": 600 };
export const END = { "text-anchor": "end" };

/**
 * An element of a picture on the page.
 * @param {string} name
 * @param {Record<string, any>} attributes
 * @param {...any} inside
 * @returns {SVGElement}
 */
export function node(name, attributes, ...inside) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined) made.setAttribute(key, value);
  made.append(...inside.map((each) => (typeof each === "string" ? legible(each) : each)));
  return /** @type {SVGElement} */ (made);
}

/** A picture of the page as it stands in a file. @param {Iterable<Node>} nodes */
export const written = (nodes) =>
  [...nodes].map((each) => new XMLSerializer().serializeToString(each)).join("");

/** A picture of a file on the page. @param {string} svg @param {Record<string, any>} attributes */
export function shown(svg, attributes) {
  const whole = tag("svg", { xmlns: SPACE, ...attributes }, svg);
  const made = new DOMParser().parseFromString(whole, "image/svg+xml").documentElement;
  return /** @type {SVGElement} */ (/** @type {unknown} */ (document.importNode(made, true)));
}

/**
 * A line in pieces of at most so many characters, broken at spaces where there are any.
 * @param {string} line
 * @param {number} most
 */
export function wrapped(line, most) {
  const lines = [""];
  const words = line
    .split(" ")
    .flatMap((word) => ([...word].length > most ? pieces(word, most) : [word]));
  for (const word of words) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if ([...longer].length > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** @param {string} word @param {number} most */
const pieces = (word, most) => word.match(new RegExp(`.{1,${most}}`, "gsu")) || [];

/**
 * A file: title, caption and what `body` draws below them, given where it may begin.
 * @param {Look} look
 * @param {{ title: string, caption: string[], width: number, longest?: number, most?: number }} head
 *   longest: lines that a line of the caption may take; most: lines of all
 * @param {(top: number) => [string, number]} body returns its SVG and its lower end
 */
export function paper(look, { title, caption, width, longest = 6, most = 14 }, body) {
  const room = Math.floor((width - 32) / 6.6);
  const lines = caption
    .flatMap((line) => {
      const all = wrapped(line, room);
      if (all.length <= longest) return all;
      return [...all.slice(0, longest - 1), `${cut(all[longest - 1], room - 2)} …`];
    })
    .slice(0, most);
  const titles = wrapped(title, Math.floor((width - 32) / 9));
  const top = 8 + titles.length * 20 + lines.length * 17;
  const [inside, height] = body(top + 18);
  return tag(
    "svg",
    {
      xmlns: SPACE,
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      "font-family": FONT,
      fill: look.ink,
    },
    tag("rect", { width: "100%", height: "100%", fill: look.paper }),
    ...titles.map((line, at) => text(16, 26 + at * 20, line, { "font-size": 16, ...BOLD })),
    ...lines.map((line, at) => text(16, 26 + titles.length * 20 + at * 17, line)),
    inside,
  );
}

/**
 * A scale from its low end to its high one; its bar begins at x.
 * @param {Look} look
 * @param {Uint32Array} words
 * @param {number} x
 * @param {number} y
 * @param {[string, string]} ends
 */
export function scaleBar(look, words, x, y, [low, high]) {
  const id = `scale-${Math.round(x)}-${Math.round(y)}`;
  const each = stops(words).map((word, at) =>
    tag("stop", { offset: at / 4, "stop-color": css(word) }),
  );
  return [
    tag("linearGradient", { id }, ...each),
    text(x - 8, y + 11, low, END),
    tag("rect", {
      x,
      y,
      width: 120,
      height: 12,
      fill: `url(#${id})`,
      stroke: look.ink,
      "stroke-opacity": 0.4,
    }),
    text(x + 128, y + 11, high),
  ].join("");
}

/**
 * A matrix with its names.
 * @param {Look} look
 * @param {{ x: number, y: number, wide: number, high?: number, rows: string[], columns: string[],
 *   word: (at: number) => number | undefined, hatch?: boolean, long?: [number, number] }} how
 *   x and y: of the first cell. long: characters of a name down and across.
 */
export function plate(
  look,
  { x, y, wide, high = wide, rows, columns, word, hatch, long = [15, 10] },
) {
  const [width, height] = [columns.length * wide, rows.length * high];
  const [down, across] = [Math.max(8, Math.min(13, high)), Math.max(8, Math.min(13, wide))];
  const frame = { x, y, width, height, stroke: look.ink, "stroke-opacity": 0.4 };
  const named = (
    /** @type {string[]} */ list,
    /** @type {number} */ every,
    /** @type {(label: string, at: number) => string} */ draw,
  ) => list.map((label, at) => (at % every ? "" : draw(label, at))).join("");
  return [
    named(columns, Math.ceil(across / wide - 0.01), (label, at) =>
      upright(x + (at + 0.5) * wide + across / 3, y - 6, cut(label, long[1]), {
        "font-size": across,
      }),
    ),
    named(rows, Math.ceil(down / high - 0.01), (label, at) =>
      text(x - 6, y + (at + 0.5) * high + down / 3, cut(label, long[0]), {
        "font-size": down,
        ...END,
      }),
    ),
    hatch ? HATCH(look) : "",
    tag("rect", { ...frame, fill: hatch ? "url(#hatch)" : "none" }),
    cells(raster(rows.length, columns.length, word), { x, y, width, height }),
  ].join("");
}

/** @param {Look} look */
const HATCH = (look) =>
  tag(
    "pattern",
    {
      id: "hatch",
      width: 6,
      height: 6,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    },
    tag("path", { d: "M0 0V6", stroke: look.ink, "stroke-opacity": 0.3 }),
  );

/**
 * A picture of one pixel a cell, in a file: large enough for programs that smooth what they enlarge.
 * @param {HTMLCanvasElement} canvas
 * @param {Record<string, any>} place
 */
export function cells(canvas, place) {
  const by = Math.max(1, Math.min(8, Math.floor(1200 / Math.max(canvas.width, canvas.height))));
  const large = make("canvas", { width: canvas.width * by, height: canvas.height * by });
  const pen = context(large);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(canvas, 0, 0, large.width, large.height);
  return tag("image", {
    ...place,
    preserveAspectRatio: "none",
    style: "image-rendering:pixelated",
    href: large.toDataURL(),
  });
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
  const each = (/** @type {string} */ kind, /** @type {() => Promise<Blob>} */ file) =>
    make(
      "button",
      {
        class: "small",
        data: { focus: `${what} ${kind}` },
        onclick: async () => save(await file(), `${view.header.file}.${kind.toLowerCase()}`),
      },
      `${what} as ${kind}`,
    );
  return [
    each("PNG", () => pixels(drawn())),
    each("SVG", async () => new Blob([drawn()], { type: "image/svg+xml" })),
  ];
}

/** @param {Blob} content @param {string} name */
function save(content, name) {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** An SVG as a PNG of twice its size. @param {string} svg @returns {Promise<Blob>} */
async function pixels(svg) {
  const image = new Image();
  const dressed = svg.replace(">", `>${await embedded()}`);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(dressed)}`;
  await image.decode();
  const canvas = make("canvas", { width: image.width * 2, height: image.height * 2 });
  context(canvas).drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) =>
    canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png"),
  );
}

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

/** @param {string} family @param {string} url */
async function face(family, url) {
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
