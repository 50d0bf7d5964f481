// @ts-check
// The page of the frame in which a class's picture is drawn. What it draws was sent by a stranger's
// window; it has no origin and asks for nothing, so that no script of a stranger's would reach anything.
// It hears of the window around it, and tells it, on one channel.

import { bus } from "./bus.js";
import style from "./class_frame.css.js";
import { decode } from "./codec.js";
import { called, make, put } from "./mount.js";
import panel from "./panel.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./class_snapshot.js").Part} Part */
/** @typedef {{ token: any, draw: () => () => void }} Shown */
/** @typedef {{ name: string, board: HTMLElement, views: Shown[], ends: (() => void)[] }} Picture */

const say = sentences("class");

const KINDS = ["h1", "h2", "h3", "p", "small"];
const MOST_UNPACKED = 12_000_000; // bytes
const MOST_PARTS = 60;
const MODIFIERS = ["Shift", "Control", "Alt", "Meta"]; // keys that do nothing by themselves
const PAINTED = 200; // ms after which what was drawn is taken to be painted

/** @type {{ port?: MessagePort, next?: Picture, shown?: Picture, isWaiting?: boolean }} */
const own = {};

/** @param {Record<string, any>} what */
const tell = (what) => own.port?.postMessage(what);

// What the window around it says, with what belongs to it.
const HEARD = { look, picture, show, clear, wait, news: bus.tell, put: variables };

addEventListener("message", ({ source, ports }) => {
  if (own.port || source !== parent || !ports[0]) return;
  own.port = ports[0];
  own.port.onmessage = ({ data: [what, ...how] }) => /** @type {any} */ (HEARD)[what](...how);
});
document.head.append(make("style", "", style));
for (const act of ["pointerdown", "keydown"])
  addEventListener(
    act,
    (event) =>
      MODIFIERS.includes(/** @type {KeyboardEvent} */ (event).key) || tell({ act: "acted" }),
    true,
  );

/** The colours and the type of the window around it. @param {Record<string, string>} vars @param {string} scheme @param {number} letter */
function look(vars, scheme, letter) {
  variables(vars);
  const { style } = document.documentElement;
  Object.assign(style, { colorScheme: scheme, fontSize: `${letter}px` });
  own.shown?.views.forEach(({ draw }) => draw());
}

/** @param {Record<string, string>} vars */
function variables(vars) {
  put(document.documentElement, { vars });
}

/** A picture that was packed is made, to be shown. @param {string} name @param {Uint8Array} packed */
async function picture(name, packed) {
  try {
    const { header, blocks } = decode(await unpacked(packed));
    await document.fonts.load("1em Inter"); // by whose letters all is laid out
    const made = laidOut(name, header.parts, blocks);
    own.next = made;
    const tokens = made.views.filter(({ token }) => token !== undefined);
    tell({ name, made: tokens.map(({ token }) => `${token}`) });
  } catch {
    tell({ name, failed: true });
  }
}

/** @param {string} name @param {Part[]} parts @param {Record<string, any>} blocks @returns {Picture} */
function laidOut(name, parts, blocks) {
  const board = make("div", "shown", make("p", "says"));
  const views = [];
  /** @type {HTMLElement[]} */
  let halves = [];
  for (const { kind, side, text = "", at = "" } of parts.slice(0, MOST_PARTS)) {
    const box = kind === "view" ? make("div", "part") : words(kind, text);
    if (kind === "view") views.push(view(box, blocks[at]));
    if (side && !halves.length) {
      halves = [make("div", "half"), make("div", "half")];
      board.append(make("div", "halves", ...halves));
    } else if (!side) halves = [];
    (halves[side - 1] || board).append(box);
  }
  return { name, board, views, ends: [] };
}

/** @param {string} kind @param {string} text */
function words(kind, text) {
  if (!KINDS.includes(kind)) throw new TypeError("a part of a picture that is none");
  return make(/** @type {"p"} */ (kind), { dir: "auto" }, text);
}

/** A view of its own, as Streamlit would mount it. @param {HTMLElement} box @param {Uint8Array} data @returns {Shown} */
function view(box, data) {
  const inside = box.attachShadow({ mode: "open" });
  inside.append(make("div", "panel"));
  const { token } = decode(data).header;
  return { token, draw: () => panel(called(data, inside, () => {})) };
}

/** Show the picture that was made, in the place of the one before. @param {string} name @param {boolean} isSame scrolled as that one */
function show(name, isSame) {
  const { next, shown } = own;
  try {
    if (next?.name !== name) throw new Error("another one came");
    caption(next.board);
    document.body.append(next.board);
    for (const { draw } of next.views) next.ends.push(draw());
    if (isSame && shown) next.board.scrollTop = shown.board.scrollTop;
  } catch {
    if (next !== shown) remove(next);
    tell({ name, failed: true });
    return;
  }
  remove(shown);
  own.shown = next;
  const painted = () => tell({ name, shown: true });
  const timer = setTimeout(painted, PAINTED);
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      clearTimeout(timer);
      painted();
    }),
  );
}

/** @param {Picture | undefined} picture */
function remove(picture) {
  picture?.board.remove();
  picture?.ends.forEach((end) => end());
}

function clear() {
  remove(own.shown);
  own.shown = own.next = undefined;
}

/** The page that the picture stands in for waits for a press, or is on its way. @param {boolean} isWaiting */
function wait(isWaiting) {
  own.isWaiting = isWaiting;
  if (own.shown) caption(own.shown.board);
}

/** Say what the picture is, with the press that requests the page, where it waits. @param {HTMLElement} board */
function caption(board) {
  const press = { type: "button", onclick: () => tell({ act: "reach" }) };
  board
    .querySelector(".says")
    ?.replaceChildren(
      say(own.isWaiting ? "stands_in" : "preview"),
      ...(own.isWaiting ? [make("button", press, say("work_on_it"))] : []),
    );
}

/** What was packed. Raises Error for what is too large or is no such thing. @param {Uint8Array} packed */
async function unpacked(packed) {
  const stream = new Blob([/** @type {any} */ (packed)]).stream();
  const reader = stream.pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MOST_UNPACKED) throw new Error("too large");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
