// @ts-check
// What the teacher's window shows, in a student's window, until the student's own page is there. Of many
// students the page is requested when its student presses the picture.

import {
  acted,
  fetched,
  isAt,
  isWithin,
  lead,
  reach,
  reachLater,
  pictureOf,
  waits,
  wander,
} from "./class_client.js";
import { bus } from "./bus.js";
import { PictureFrame } from "./class_picture.js";
import { arrived } from "./class_snapshot.js";
import { isCovering } from "./cover.js";
import { until } from "./mount.js";
import { isRunning } from "./optimistic_updates.js";

/** @typedef {import("./mount.js").View} View */

const TICK = 50; // ms between two looks at this window's own page, and
const REST = 250; // while it waits
const OWN = 5; // ticks that a page which is coming already may take before the picture stands in for it
const CALM = 3; // ticks without a run after which a page is there
const LONG = 80; // ticks after which a page of which no run was seen is taken to be there

const now = () => /** @type {any} */ (globalThis).headlight;

/** @param {View} view @param {any} lesson */
export function board(view, lesson) {
  const name = pictureOf(lesson);
  if (view.picture !== name) {
    view.picture = name;
    if (!name) stay(view);
    else bring(view, name).catch(() => view.picture === name && miss(view));
  } else if (name && view.board) goOn(view);
  if (view.frame) told(view);
}

/** What is shown goes to where the class is. @param {View} view */
function goOn(view) {
  const { at } = now().lesson;
  if (view.shownAt === at) return;
  view.shownAt = at;
  lead(at);
}

/** The frame hears where the class is and goes, and whether predictions are covered. What is asked in it is answered below it. @param {View} view */
function told({ frame }) {
  const { ahead, lesson } = now();
  const question = isCovering(lesson) ? { covers: true } : undefined;
  frame.place(); // beside a question
  frame.tell("news", {
    ahead,
    lesson: { question, isBelow: true },
    steps: { address: lesson?.at },
  });
}

/** The frame of this window, which stays as long as its view. @param {View} view @returns {PictureFrame} */
function frameOf(view) {
  if (view.frame) return view.frame;
  const lost = () => {
    until(view, "frame", () => {});
    bus.now.standsIn = false; // told with the next news: at once it would bring the picture again
    takeAway(view);
    reach();
  };
  // A picture that stays is of no page of this window.
  const work = () => (now().lesson.stays && !waits() ? wander(true) : reach());
  const frame = new PictureFrame(view.root, { acted, reach: work, lost });
  view.frame = frame;
  until(view, "frame", () => {
    frame.end();
    view.frame = view.picture = undefined;
  });
  return frame;
}

/** @param {View} view @param {string} name */
async function bring(view, name) {
  const wanted = () => view.picture === name;
  const stands = () => waits() || now().lesson.stays;
  const at = () => now().lesson.at;
  const { of } = now().lesson;
  const frame = frameOf(view);
  const there = coming(at, await frame.make(name, await fetched(name)));
  for (let tick = 0; wanted(); tick++) {
    if (!stands() && there()) break;
    frame.dress();
    frame.tell("wait", stands());
    // A picture that stands there already is what this one goes on from.
    if (view.board !== name && (view.board || tick >= OWN || !isAt(at()))) {
      await frame.show(name, view.board && isWithin(view.of, of));
      if (!wanted()) return;
      view.uncover ||= cover(view);
      Object.assign(view, { board: name, of, shownAt: undefined });
      if (!bus.now.standsIn) bus.tell({ standsIn: true });
      goOn(view);
    }
    await new Promise((done) => setTimeout(done, stands() ? REST : TICK));
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
  view.frame?.hide();
  view.uncover?.();
  view.board = view.uncover = undefined;
  if (bus.now.standsIn) bus.tell({ standsIn: false });
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
