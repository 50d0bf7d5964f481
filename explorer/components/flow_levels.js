// @ts-check
// The levels of the whole machine, as a reader opens and closes them: by one motion, which begins before
// the page has what stands on a level.

import { END, count, isAsked, lasts, share, stopOf, widens, ZOOM } from "./beam_figure.js";
import { place } from "./flow_figure.js";
import { HEAD } from "./flow_zoom.js";
import { still, until } from "./mount.js";

/** @typedef {import("./mount.js").View} View */

/** The flow as it is now. @param {View} view */
export const now = (view) => view.figures[view.beam.at];

/** Set choices of the address; a level opens, or closes, before the page has what stands on it. @param {View} view @param {Record<string, string>} select */
export function go(view, select) {
  const figure = now(view);
  const beam = beamOf(figure);
  if (!figure.level && select.edits !== undefined && select.edits !== figure.edits) {
    figure.wanted = select.edits; // what is pressed is struck at once
    view.beam.paint();
  }
  open(view, select);
  const { later } = view.beam; // where the beam came to, which the address has not yet: one message says both
  clearTimeout(later);
  view.beam.later = undefined;
  view.send("select", later === undefined ? select : { flow_beam: beam, ...select });
}

/** Where the beam stands, as the address says it: of what is opened before the end in its layer. @param {any} figure */
export function beamOf(figure) {
  if (figure.current >= count(figure)) return END;
  const isIts = (/** @type {any} */ one) => one.layer === figure.layer && one.band === figure.band;
  return `${figure.level ? figure.layers.findIndex(isIts) : figure.current}`;
}

/** Let the columns slide to their places from those of a place before. @param {View} view @param {any} before @param {number} [began] when that was */
export function glide(view, before, began = performance.now()) {
  const figure = now(view);
  cancelAnimationFrame(view.gliding[view.beam.at]);
  if (still()) return view.beam.paint();
  const wide = widens({ ...figure, ...before }, figure);
  const all = lasts({ ...figure, ...before }, figure);
  const tick = (/** @type {number} */ time) => {
    const ms = Math.max(0, time - began);
    if (now(view) !== figure || !view.root.isConnected) return;
    if (ms >= all) return view.beam.paint();
    view.beam.paint({ ...figure, from: { ...before, share: share(ms, 0, wide), ms } });
    view.gliding[view.beam.at] = requestAnimationFrame(tick);
  };
  tick(performance.now());
}

/** Whether the flow on show is asked the same as one that comes in its place, under the same edits. @param {View} view @param {any[]} figures */
export const isSame = (view, figures) => {
  const told = (/** @type {any} */ one) => JSON.stringify([one?.asks, one?.edits, one?.bands]);
  return told(now(view)) === told(figures.find(({ kind }) => kind === "flow"));
};

/** Keep where the beam stands. Returns what brings it there again, where the same flow is built anew, and lets it go on. @param {View} view */
export function held(view) {
  const { current, level } = now(view);
  const plays = Boolean(view.settle);
  return () => {
    if (level || now(view).level || current < 0) return;
    now(view).go?.(current);
    if (plays && current < count(now(view))) view.play.click();
  };
}

const LEVELS = ["", "Layer", "Head", "Weight"]; // as an address has them
const FFN = "FFN"; // of a layer, as deep as that

/** Begin to open or to close a level: the picture is on its way while what stands on it is made. @param {View} view @param {Record<string, string>} select */
function open(view, select) {
  const figure = now(view);
  const level = LEVELS.indexOf(select.flow_level === FFN ? LEVELS[1] : select.flow_level);
  const ffn = select.flow_level === FFN;
  if (level < 0 || (level === figure.level && ffn === figure.ffn)) return;
  view.settle?.();
  const before = place(figure);
  const column = figure.layers.findIndex(
    (/** @type {any} */ one) =>
      `${one.layer}` === select.layer && (one.layer !== figure.layer || one.band === figure.band),
  );
  Object.assign(figure, {
    level,
    ffn,
    layer: figure.layers[column].layer,
    band: figure.layers[column].band,
    attention: select.attention ?? figure.attention,
    head: level && select.head ? Number(select.head) : -1,
    current: level ? figure.current : currentOf(figure, select),
  });
  view.zoom = { before, began: performance.now() };
  if (level < HEAD && !ffn) view.beam.told(); // what is said of a layer, or of where the beam stands, is here
  glide(view, before);
  const end = () => view.gliding[view.beam.at] !== undefined && view.beam.paint();
  view.root.addEventListener("pointerdown", end, { once: true });
}

/** The column that an address brings under the beam. @param {any} figure @param {Record<string, string>} select */
const currentOf = (figure, { flow_beam: beam = "" }) =>
  /^\d+$/.test(beam) ? Number(beam) : beam === END ? count(figure) : figure.current;

/** What stands below the first figure, and where. @param {View} view @returns {{ element: HTMLElement, box: DOMRect }[]} */
export const standing = ({ boxes = [] }) =>
  boxes.slice(1).map((/** @type {HTMLElement} */ element) => ({
    element,
    box: element.getBoundingClientRect(),
  }));

/** Go on with a level that is opening, or closing, where its picture has come meanwhile; what stands below the whole machine grows out of the foot of what was opened, or goes back into it. @param {View} view @param {any[]} were the figures that stood there @param {{ element: HTMLElement, box: DOMRect }[]} below what stood below it */
export function goOn(view, were, below) {
  const { zoom, beam, figures } = view;
  const [before] = were;
  if (
    figures.length + were.length <= 2 ||
    !beam ||
    before?.kind !== "flow" ||
    now(view)?.kind !== "flow" ||
    still()
  )
    return;
  const from = zoom ? zoom.before : place(before);
  view.zoom = undefined;
  if (from.level === now(view).level && from.ffn === now(view).ffn) return;
  const began = zoom?.began ?? performance.now();
  if (performance.now() - began < ZOOM) glide(view, from, began);
  const isIn = now(view).level > from.level || (now(view).ffn && !from.ffn);
  const source = sourceOf(view, from.level, below);
  if (!source) return;
  const timing = { duration: ZOOM, easing: "ease-in-out" };
  /** @type {Animation[]} */
  const moves = [];
  // Out of its foot: nothing passes over the picture.
  const into = ({ left, width }, /** @type {DOMRect} */ own) =>
    `translateX(${left - own.left}px) scale(${width / own.width}, 0)`;
  const boxes = view.boxes.slice(beam.at + 1);
  if (isIn)
    for (const box of boxes) {
      box.style.transformOrigin = "0 0";
      const frames = {
        transform: [into(source, box.getBoundingClientRect()), "none"],
        opacity: [0, 1],
      };
      moves.push(box.animate(frames, timing));
    }
  else {
    const column = view.boxes[beam.at].parentElement; // which gets higher meanwhile
    const { left } = column.getBoundingClientRect();
    const top = Math.min(...below.map(({ box }) => box.top));
    column.style.position = "relative";
    for (const { element, box } of below) {
      Object.assign(element.style, {
        position: "absolute",
        left: `${box.left - left}px`,
        top: `calc(100% + ${box.top - top}px)`,
        transformOrigin: "0 0",
      });
      element.inert = true;
      column.append(element);
      const frames = { transform: ["none", into(source, box)], opacity: [1, 0] };
      const move = element.animate(frames, timing);
      move.onfinish = move.oncancel = () => element.remove();
      moves.push(move);
    }
  }
  const end = () => moves.forEach((each) => each.finish());
  view.root.addEventListener("pointerdown", end, { once: true });
}

/** Where what a level shows comes from: the column of its layer, or its FFN; of a weight the matrix of its head. @param {View} view @param {number} level from which one @param {{ element: HTMLElement, box: DOMRect }[]} below @returns {DOMRect | undefined} */
function sourceOf(view, level, below) {
  const figure = now(view);
  const deeper = Math.max(level, figure.level);
  const [first] = figure.level > level ? below : [];
  if (deeper === LEVELS.length - 1 && first) return first.box;
  const { layers, layer, band, ffn } = figure;
  const at = layers.findIndex((/** @type {any} */ one) => one.layer === layer && one.band === band);
  const column = view.boxes[view.beam.at].querySelector(`g.flow-layer[data-at="${at}"]`);
  return ((ffn && column?.querySelector(".flow-ffn")) || column)?.getBoundingClientRect();
}

const [WHEEL, PINCH] = [40, 1.25]; // pixels and a factor from which on fingers mean a level

/** What opens the next level, or closes this one; undefined where there is none. @param {any} figure @param {boolean} isIn @param {number} [column] the one under the pointer */
export function levelBeside(figure, isIn, column) {
  const stop = figure.level || column === undefined ? stopOf(figure) : figure.stops[column];
  if (isIn) return stop.levels[figure.level + 1]?.select;
  const select = figure.level && stop.levels[figure.level - 1]?.select;
  return select ? { ...select, flow_beam: beamOf(figure) } : undefined;
}

/** The column at a place of the window, undefined where there is none. @param {View} view @param {{ clientX: number, clientY: number }} place */
function columnAt(view, { clientX, clientY }) {
  const svg = view.boxes[view.beam.at].firstChild;
  const { left, top } = svg.getBoundingClientRect();
  const [across, down] = [clientX - left, clientY - top];
  const column = [...svg.querySelectorAll("g.flow-layer")].find((each) => {
    const [x, y, wide, high] = each.getAttribute("data-box").split(" ").map(Number);
    return across >= x && across < x + wide && down >= y && down < y + high;
  });
  return column && Number(column.getAttribute("data-at"));
}

/** Open and close levels by two fingers, on a screen or on what a browser takes for a wheel with Ctrl. @param {View} view */
export function zoomedBy(view) {
  let [sum, apart] = [0, 0];
  const to = (
    /** @type {boolean} */ isIn,
    /** @type {{ clientX: number, clientY: number }} */ place,
  ) => {
    const figure = now(view);
    if (isAsked(figure)) return;
    const select = levelBeside(figure, isIn, columnAt(view, place));
    if (select) go(view, select);
  };
  const isOver = (/** @type {Event} */ { target }) =>
    view.boxes.some((/** @type {Element} */ box) => box.contains(/** @type {Node} */ (target)));
  const wheel = (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey || !isOver(event)) return;
    event.preventDefault();
    sum = sum * event.deltaY < 0 ? event.deltaY : sum + event.deltaY;
    if (Math.abs(sum) < WHEEL || view.gliding[view.beam.at] !== undefined) return;
    to(sum < 0, event);
    sum = 0;
  };
  const touch = (/** @type {TouchEvent} */ event) => {
    const [one, other] = event.touches;
    if (!other || !isOver(event)) return (apart = 0);
    event.preventDefault();
    const wide = Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    apart ||= wide;
    if (wide < apart * PINCH && wide > apart / PINCH) return undefined;
    to(wide > apart, {
      clientX: (one.clientX + other.clientX) / 2,
      clientY: (one.clientY + other.clientY) / 2,
    });
    apart = wide;
    return undefined;
  };
  const heard = { wheel, touchstart: touch, touchmove: touch, touchend: touch };
  for (const [name, hear] of Object.entries(heard))
    view.root.addEventListener(name, /** @type {EventListener} */ (hear), { passive: false });
  until(view, "fingers", () => {
    for (const [name, hear] of Object.entries(heard))
      view.root.removeEventListener(name, /** @type {EventListener} */ (hear));
  });
}
