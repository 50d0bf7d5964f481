// @ts-check
// What the teacher's window shows, in a student's window, until the student's own page is there. Of many
// students the page is requested when its student presses the picture.

import {
  fetched,
  isAt,
  isWithin,
  lead,
  reachLater,
  pictureOf,
  reach,
  waits,
} from "./class_client.js";
import { arrived, drawn } from "./class_snapshot.js";
import { make } from "./mount.js";
import { isRunning } from "./optimistic_updates.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("class");
const TICK = 50; // ms between two looks at this window's own page, and
const REST = 250; // while it waits
const OWN = 5; // ticks that a page which is coming already may take before the picture stands in for it
const CALM = 3; // ticks without a run after which a page is there
const LONG = 80; // ticks after which a page of which no run was seen is taken to be there

/** @param {View} view @param {any} lesson */
export function board(view, lesson) {
  const name = pictureOf(lesson);
  if (view.picture !== name) {
    view.picture = name;
    if (!name) stay(view);
    else bring(view, name).catch(() => view.picture === name && miss(view));
  } else if (name && view.board) lead(lesson.at);
}

/** @param {View} view @param {string} name */
async function bring(view, name) {
  const wanted = () => view.picture === name;
  const lesson = () => /** @type {any} */ (globalThis).headlight.lesson;
  const at = () => lesson().at;
  const { of } = lesson();
  const made = await drawn(await fetched(name));
  const there = coming(at, made.tokens);
  for (let tick = 0; wanted(); tick++) {
    if (!waits() && there()) break;
    // A picture that stands there already is what this one goes on from.
    if (view.board !== made && (view.board || tick >= OWN || !isAt(at()))) {
      put(view, made, view.of && isWithin(view.of, of) ? view.board?.board.scrollTop : 0);
      view.board?.end();
      view.uncover ||= cover(view);
      Object.assign(view, { board: made, of });
      lead(at());
    }
    if (view.board === made) caption(made.board, waits());
    await new Promise((done) => setTimeout(done, waits() ? REST : TICK));
  }
  if (wanted()) takeAway(view);
}

/** Wait for another picture where one is gone. @param {View} view */
function miss(view) {
  if (!waits()) return takeAway(view);
  reachLater();
  view.picture = undefined;
  stay(view);
}

/** Keep a picture until the next one is there, while the page waits. @param {View} view */
async function stay(view) {
  while (waits() && view.board && !view.picture)
    await new Promise((done) => setTimeout(done, TICK));
  if (!view.picture) takeAway(view);
}

/** @param {View} view */
function takeAway(view) {
  view.board?.end();
  view.uncover?.();
  view.board = view.uncover = undefined;
}

/** Says at each look whether this window's own page is there. @param {() => string} at @param {string[]} tokens */
function coming(at, tokens) {
  let [since, calm, ran] = [0, 0, false];
  return () => {
    if (!isAt(at())) return false;
    if (arrived(tokens)) return true;
    const runs = isRunning();
    ran ||= runs;
    calm = runs ? 0 : calm + 1;
    since += 1;
    return calm > CALM && (ran || since > LONG);
  };
}

/** Say what the picture is, with the press that requests the page, where it waits. @param {HTMLElement} board @param {boolean} isWaiting */
function caption(board, isWaiting) {
  const says = /** @type {HTMLElement} */ (board.querySelector(".says"));
  if (says.dataset.waits === `${isWaiting}`) return;
  says.dataset.waits = `${isWaiting}`;
  const press = { type: "button", onclick: reach };
  says.replaceChildren(
    say(isWaiting ? "stands_in" : "preview"),
    ...(isWaiting ? [make("button", press, say("work_on_it"))] : []),
  );
}

/** Keep what lies under the picture from focus, and from being read. @param {View} view @returns {() => void} to let it go */
function cover({ root }) {
  const under = [];
  const main = document.querySelector("[data-testid=stMain]");
  let at = /** @type {Element | null} */ (/** @type {ShadowRoot} */ (root.getRootNode()).host);
  for (; at && at !== main; at = at.parentElement)
    under.push(...[...(at.parentElement?.children || [])].filter((each) => each !== at));
  const all = /** @type {HTMLElement[]} */ (under).filter((each) => !each.inert);
  for (const each of all) each.inert = true;
  return () => all.forEach((each) => (each.inert = false));
}

/** Over the page, and nothing else. @param {View} view @param {{ board: HTMLElement, draw: () => void }} made @param {number} [scrolled] pixels, as the one before it was */
function put(view, { board, draw }, scrolled = 0) {
  const main = /** @type {HTMLElement} */ (document.querySelector("[data-testid=stMain]"));
  const { left, top, width } = main.getBoundingClientRect();
  const bar = document.querySelector("[data-testid=stHeader]")?.getBoundingClientRect().bottom || 0;
  board.prepend(make("p", "says"));
  Object.assign(board.style, {
    left: `${left}px`,
    top: `${Math.max(bar, top)}px`,
    width: `${width}px`,
  });
  view.root.after(board);
  draw();
  if (scrolled) board.scrollTop = scrolled;
}
