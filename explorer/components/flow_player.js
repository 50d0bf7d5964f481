// @ts-check
// The bar above the picture of the whole machine: Play, the steps from layer to layer, and where one
// is in it.

import { arrow, plainKey } from "./keys.js";
import { make, still, until } from "./mount.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */
const words = sentences("flow");
const SWEEP = 350; // milliseconds that the light takes for a layer
const LONGEST = 4000; // and for the whole machine

/** The bar of a flow: the button that plays it, the steps from layer to layer, the levels to which it is opened, what leads on, and the head in focus switched off and on. @param {View} view @param {number} at */
export function player(view, at) {
  const { level, levels, leads, switch: toggle } = view.figures[at];
  const button = (/** @type {string} */ label, /** @type {() => void} */ onclick, more = {}) =>
    make("button", { type: "button", onclick, data: { focus: more["aria-label"] || label }, ...more }, label); // prettier-ignore
  const keys = (/** @type {string} */ name) => ({ "aria-keyshortcuts": name });
  const play = button(words("play"), () => sweepOrStop(view, at), {
    class: "play",
    ...keys("Space"),
  });
  const step = (
    /** @type {string} */ sign,
    /** @type {string} */ label,
    /** @type {number} */ by,
  ) => {
    const to = besides(view.figures[at], by);
    return button(sign, () => to && go(view, to), { class: "step", "aria-label": label, ...(to ? {} : { disabled: "" }) }); // prettier-ignore
  };
  const way = levels.map(({ label, select }, /** @type {number} */ each) =>
    button(label, () => go(view, select), { class: each > level ? "crumb deeper" : "crumb", ...(each === level ? { "aria-current": "step" } : {}) })); // prettier-ignore
  const others = leads.map((/** @type {any} */ one) => button(one.label, () => go(view, one.select), { class: "lead" })); // prettier-ignore
  const off =
    toggle && button(toggle.label, () => go(view, toggle.select), { class: "lead", ...keys("X") });
  listen(view, at);
  return make(
    "div",
    "slider flow-bar",
    play,
    step("‹", words("before"), -1),
    step("›", words("next"), 1),
    make("nav", { "aria-label": words("way") }, ...way),
    off,
    ...others,
  );
}

/** Set choices of the address. @param {View} view @param {Record<string, string>} select */
const go = (view, select) => view.send("select", select);

/** What brings the layer before or after the one in focus into focus; undefined where there is none. @param {any} figure @param {number} by */
function besides({ layers, layer, band, attention }, by) {
  const of = layers.filter((/** @type {any} */ each) => each.band === band);
  const to = of[of.findIndex((/** @type {any} */ each) => each.layer === layer) + by];
  return to && { attention, layer: `${to.layer}`, head: "" };
}

/** What brings the word above or below the chosen one into focus. @param {any} figure @param {number} by */
function wordBesides({ bands: [band] }, by) {
  const to = band.places[band.selected + by];
  return to === undefined ? undefined : { [band.choice]: to };
}

const TYPED = "input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable=true], [role=dialog]"; // prettier-ignore
const OWN = "button, a, summary, g.target, [data-cells], input"; // what has these keys for itself

/** Hear the keys while the focus is in the panel, or nowhere: Space plays, left and right go to another layer, up and down to another word, Enter opens and Escape closes a level, X switches the head in focus off or on. @param {View} view @param {number} at */
function listen(view, at) {
  const key = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {Element} */ (event.composedPath()[0]);
    const inside = view.root.contains(target);
    if (!view.root.isConnected || view.aside || event.defaultPrevented || !plainKey(event)) return;
    if (!(inside || target === document.body) || target.closest(TYPED)) return;
    const act = meaning(view, at, event, inside ? target : null);
    if (!act) return;
    event.preventDefault();
    act();
  };
  addEventListener("keydown", key);
  until(view, "keys", () => removeEventListener("keydown", key));
}

/** What a key does, undefined for nothing. @param {View} view @param {number} at @param {KeyboardEvent} event @param {Element | null} inside the part that has the focus */
function meaning(view, at, event, inside) {
  const figure = view.figures[at];
  const { level, levels, switch: toggle } = figure;
  const to = (/** @type {any} */ select) => select && (() => go(view, select));
  const [down, right] = arrow(event) || [0, 0];
  const walks = !inside?.closest("[data-cells], input") && (inside || !down);
  if (right && walks) return to(besides(figure, right));
  if (down && walks) return to(wordBesides(figure, down));
  if (event.key === "Escape") return to(levels[level - 1]?.select);
  if (event.key.toLowerCase() === "x") return to(toggle?.select);
  if (inside?.closest(OWN)) return undefined;
  if (event.key === "Enter") return to(levels[level + 1]?.select);
  return event.key === " " ? () => sweepOrStop(view, at) : undefined;
}

/** @param {View} view @param {number} at */
const sweepOrStop = (view, at) => (view.settle ? view.settle() : sweep(view, at));

/** Let a light go from the first layer to the words that come out. @param {View} view @param {number} at */
function sweep(view, at) {
  if (still()) return;
  const button = /** @type {HTMLElement} */ (view.root.querySelector(".flow-bar .play"));
  const svg = view.boxes[at].firstChild;
  const groups = [...svg.querySelectorAll("g.flow-layer"), svg.querySelector("g.flow-output")].filter(Boolean); // prettier-ignore
  const each = Math.min(SWEEP, LONGEST / groups.length);
  const moving = groups.flatMap((/** @type {Element} */ group, /** @type {number} */ i) => {
    const timing = { duration: each, delay: i * each, fill: /** @type {const} */ ("backwards"), easing: "ease-out" }; // prettier-ignore
    const curves = [...group.querySelectorAll("path.flow-curve")].map((path) => {
      const length = /** @type {SVGPathElement} */ (path).getTotalLength();
      const isWhole = !path.getAttribute("stroke-dasharray");
      const frames = isWhole ? { strokeDasharray: [`${length}`, `${length}`], strokeDashoffset: [length, 0] } : { opacity: [0, 1] }; // prettier-ignore
      return path.animate(frames, timing);
    });
    const sums = [...group.querySelectorAll(".flow-sum")].map((sum) =>
      sum.animate(
        { strokeWidth: ["2px", "6px", "2px"] },
        { duration: each, delay: (i + 0.7) * each },
      ),
    );
    return [...curves, ...sums, group.animate({ opacity: [0, 1] }, { ...timing, duration: each / 3 })]; // prettier-ignore
  });
  button.textContent = words("stop");
  view.settle = () => {
    view.settle = undefined;
    button.textContent = words("play");
    for (const one of moving) one.cancel();
  };
  const last = moving.reduce((a, b) => (Number(b.effect?.getComputedTiming().endTime) > Number(a.effect?.getComputedTiming().endTime) ? b : a)); // prettier-ignore
  last.onfinish = () => view.settle?.();
}
