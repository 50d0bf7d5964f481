// @ts-check
// Previous, Play, Next and a slider over steps that the browser goes through by itself.

import { make, until } from "./mount.js";

const AT_REST = 350; // milliseconds after the last step until the address hears of it

/** True where a reader wants nothing to move. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** @param {string} what its name, for the focus @param {string} label @param {() => void} act */
export const button = (what, label, act) =>
  make("button", { class: `small ${what}`, data: { focus: what }, onclick: act }, label);

/**
 * @param {import("./mount.js").View} view whose `step` this moves, from 0
 * @param {{ n: number, label: string, first: number, says: (step: number) => string[],
 *   show: () => void, pause: number, go?: (step: number, done: () => void, byClock: boolean) => void,
 *   told?: (step: number) => void }} how
 *   first: what the first step is called, 0 or 1. says: a step in words, for the eye and for the
 *   ear. show: draws the step. pause: milliseconds between steps that play. go: draws the way to a
 *   step and calls `done` at its end, where that takes time. told: the step that the reader rests at.
 */
export function stepper(view, how) {
  const { n } = how;
  let playing = false;
  /** @type {any} */
  let clock;
  /** @type {any} */
  let resting;
  const back = button("previous", "‹ Previous", () => go(view.step - 1));
  const start = button("play", "Play", () => (playing ? rest() : play()));
  const next = button("next", "Next ›", () => go(view.step + 1));
  const slider = make("input", {
    type: "range",
    min: how.first,
    max: how.first + n - 1,
    step: 1,
    "aria-label": how.label,
    data: { focus: "slider" },
    oninput: () => go(slider.valueAsNumber - how.first),
  });
  const where = make("span", "where");
  const box = make("div", "stepper", back, start, next, slider, where);
  /** @param {number} step */
  const move = (step, byClock = false) => {
    view.step = Math.max(0, Math.min(n - 1, step));
    const done = () => byClock && playing && (view.step < n - 1 ? tick() : rest());
    how.go?.(view.step, done, byClock);
    how.show();
    if (!how.go) done();
  };
  const tick = () => (clock = setTimeout(() => move(view.step + 1, true), how.pause));
  /** By the reader, or by the address, which needs no report. @param {number} step */
  const go = (step, told = false) => {
    halt();
    move(step);
    if (!told) report();
  };
  const report = () => {
    clearTimeout(resting);
    resting = setTimeout(() => playing || how.told?.(view.step), AT_REST);
  };
  const halt = () => {
    clearTimeout(clock);
    playing = false;
    mark();
  };
  const rest = () => {
    halt();
    report();
  };
  const play = () => {
    if (view.step >= n - 1) move(0);
    playing = true;
    tick();
    mark();
  };
  /** What the controls say of the step. */
  const mark = () => {
    const [eye, ear] = how.says(view.step);
    slider.value = `${view.step + how.first}`;
    slider.setAttribute("aria-valuetext", ear);
    where.textContent = eye;
    back.disabled = view.step === 0;
    next.disabled = view.step === n - 1;
    start.textContent = playing ? "Pause" : "Play";
  };
  until(view, "stepper", () => {
    clearTimeout(clock);
    clearTimeout(resting);
  });
  return { box, go, halt, mark };
}
