// @ts-check
// What the teacher's window shows, in a student's window, until the student's own page is there.

import { fetched, isAt, lead, pictureOf } from "./class_client.js";
import { arrived, drawn } from "./class_snapshot.js";
import { make } from "./mount.js";
import { isRunning } from "./optimistic_updates.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const SAYS = sentences("class")("preview");
const TICK = 50; // ms between two looks at this window's own page
const OWN = 5; // ticks that a page which is coming already may take before the picture stands in for it
const CALM = 3; // ticks without a run after which a page is there
const LONG = 80; // ticks after which a page of which no run was seen is taken to be there

/** @param {View} view @param {any} lesson */
export function board(view, lesson) {
  const name = pictureOf(lesson);
  if (view.picture !== name) {
    view.picture = name;
    if (!name) takeAway(view);
    else bring(view, name).catch(() => view.picture === name && takeAway(view));
  } else if (name && view.board) lead(lesson.at);
}

/** @param {View} view @param {string} name */
async function bring(view, name) {
  const wanted = () => view.picture === name;
  const at = () => /** @type {any} */ (globalThis).headlight.lesson.at;
  const made = await drawn(await fetched(name));
  const there = coming(at, made.tokens);
  for (let tick = 0; wanted(); tick++) {
    if (there()) break;
    // A picture that stands there already is what this one goes on from.
    if (view.board !== made && (view.board || tick >= OWN || !isAt(at()))) {
      put(view, made);
      takeAway(view);
      view.board = made;
      lead(at());
    }
    await new Promise((done) => setTimeout(done, TICK));
  }
  if (wanted()) takeAway(view);
}

/** @param {View} view */
function takeAway(view) {
  view.board?.end();
  view.board = undefined;
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

/** Over the page, and nothing else. @param {View} view @param {{ board: HTMLElement, draw: () => void }} made */
function put(view, { board, draw }) {
  const main = /** @type {HTMLElement} */ (document.querySelector("[data-testid=stMain]"));
  const { left, top, width } = main.getBoundingClientRect();
  const bar = document.querySelector("[data-testid=stHeader]")?.getBoundingClientRect().bottom || 0;
  board.prepend(make("p", "says", SAYS));
  Object.assign(board.style, {
    left: `${left}px`,
    top: `${Math.max(bar, top)}px`,
    width: `${width}px`,
  });
  view.root.after(board);
  draw();
}
