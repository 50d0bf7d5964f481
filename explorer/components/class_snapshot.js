// @ts-check
// What a teacher's window shows, for students whose own pages are on their way: the page's headings,
// sentences and panels, packed and sent once, and drawn in a frame of a student's window (class_frame.js).

import { bus } from "./bus.js";
import { viewOf } from "./mount.js";
import { isRunning } from "./optimistic_updates.js";
import { is, rootOf } from "./presenter_pictures.js";
import { encode } from "./codec.js";
import { sentences } from "./sentences.js";

const say = sentences("class");

/**
 * A part of a page. `side`: 0 across it, 1 in its left half, 2 in its right half.
 * @typedef {{ kind: string, side: number, text?: string, at?: string }} Part
 */

const MAIN = "[data-testid=stMain]";
const VIEW = "[data-testid=stBidiComponentIsolated]";
const TRAINING = ".st-key-live-panel";
const CHART = ".stPlotlyChart, .stDataFrame";
const CAPTION = "[data-testid=stCaptionContainer]";
const WORDS = `h1, h2, h3, [data-testid=stMarkdownContainer] p`;
// What is there to be pressed: words of these are no part of the picture.
const PRESSED = "button, label, summary, a, [role=tab], .st-key-selection-bar";
const MOST_PACKED = 500_000; // bytes: what is larger is not sent, and students wait for their own page
const MOST_PARTS = 60;
const LONGEST = 300; // characters of the text of a page
const TRIES = 400;
const NARROW = 120; // pixels: a smaller view is no picture

/** The page of this window, from top to bottom, packed; null where there is nothing to send. */
export async function taken() {
  /** @type {Part[]} */
  const parts = [];
  /** @type {Record<string, Uint8Array>} */
  const blocks = {};
  const main = /** @type {HTMLElement} */ (document.querySelector(MAIN));
  const { steps } = bus.now; // of a lesson: what students have of it, and not what its speaker has
  if (steps)
    parts.push(
      { kind: "h2", side: 0, text: steps.heading },
      { kind: "p", side: 0, text: steps.says },
    );
  for (const each of main.querySelectorAll(`${WORDS}, ${VIEW}, ${CHART}`)) {
    const { width, height } = each.getBoundingClientRect();
    const side = sideOf(each, main);
    const view = each.matches(VIEW) && viewOf(rootOf(/** @type {HTMLElement} */ (each)));
    if (!width || !height || parts.length === MOST_PARTS) continue;
    if (view && is(/** @type {HTMLElement} */ (each), ".sentence")) {
      const text = view.root.querySelector("textarea")?.value || "";
      parts.push({
        kind: "p",
        side,
        text: text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text,
      });
    } else if (view && view.name === "panel" && width > NARROW) {
      const at = `v${parts.length}`;
      blocks[at] = new Uint8Array(view.data);
      parts.push({ kind: "view", side, at });
    } else if (each.matches(CHART)) {
      parts.push({ kind: "small", side, text: say("chart") });
    } else if (each.matches(WORDS) && !each.closest(PRESSED)) {
      const kind = each.closest(CAPTION) ? "small" : each.localName;
      parts.push({ kind, side, text: each.textContent?.trim() || "" });
    }
  }
  if (!Object.keys(blocks).length) return null;
  const whole = new Blob([/** @type {any} */ (encode({ parts }, blocks))]).stream();
  const zipped = new Response(whole.pipeThrough(new CompressionStream("gzip")));
  const packed = new Uint8Array(await zipped.arrayBuffer());
  return packed.length > MOST_PACKED ? null : packed;
}

/** @param {Element} each @param {Element} main */
function sideOf(each, main) {
  const column = (each.closest("[data-testid=stColumn]") || each).getBoundingClientRect();
  const whole = main.getBoundingClientRect();
  if (column.width > 0.65 * whole.width) return 0;
  return column.left + column.width / 2 < whole.left + whole.width / 2 ? 1 : 2;
}

/** True where a view has its place on the page and its code is still on its way. */
const isUndrawn = () =>
  [...document.querySelectorAll(`${MAIN} ${VIEW}`)].some(
    (each) => !viewOf(rootOf(/** @type {HTMLElement} */ (each))),
  );

/**
 * True when the page has been at rest for a moment, false where it is not `still` wanted, or takes
 * too long.
 * @param {() => boolean} still
 * @param {number} looks at which nothing happens, 40 ms apart
 */
export async function atRest(still, looks) {
  let calm = 0;
  for (let tries = 0; tries < TRIES && still(); tries++) {
    calm = isRunning() || isUndrawn() ? 0 : calm + 1;
    if (calm === looks) return true;
    await new Promise((done) => setTimeout(done, 40));
  }
  return false;
}

/** True where the page shows what another window's page of that address does not: a training that runs. */
export const isOfWindow = () => Boolean(document.querySelector(`${MAIN} ${TRAINING}`));

/** True where this window's own page shows all that. @param {string[]} tokens */
export function arrived(tokens) {
  const views = [...document.querySelectorAll(`${MAIN} ${VIEW}`)];
  const own = views.map((each) => rootOf(/** @type {HTMLElement} */ (each))?.dataset.token);
  return tokens.length > 0 && tokens.every((token) => own.includes(token));
}
