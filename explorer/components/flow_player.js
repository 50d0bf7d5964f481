// @ts-check
// The bar above the picture of the whole machine: Play, the steps from layer to layer, and where one
// is in it.

import { make, still } from "./mount.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */
const words = sentences("flow");
const SWEEP = 350; // milliseconds that the light takes for a layer
const LONGEST = 4000; // and for the whole machine

/** The button that plays a flow: layer after layer draws itself. @param {View} view @param {number} at */
export function player(view, at) {
  const { layers, layer, band, head, attention } = view.figures[at];
  const button = make("button", { type: "button", onclick: () => (view.settle ? view.settle() : sweep(view, at, button)), data: { focus: "play" } }, words("play")); // prettier-ignore
  const of = layers.filter((/** @type {any} */ each) => each.band === band);
  const place = of.findIndex((/** @type {any} */ each) => each.layer === layer);
  const focus = (/** @type {any} */ to, one = "") => ({
    attention,
    layer: `${to}`,
    head: `${one}`,
  });
  const step = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {number} */ by) =>
    make("button", { type: "button", class: "step", disabled: !of[place + by], "aria-label": label, data: { focus: label }, onclick: () => view.send("select", focus(of[place + by].layer)) }, sign); // prettier-ignore
  const crumb = (/** @type {string} */ label, /** @type {any} */ to) =>
    make("button", { type: "button", class: "crumb", data: { focus: label }, onclick: () => view.send("select", to) }, label); // prettier-ignore
  const way = [crumb(words("model"), { attention: "", layer: "", head: "" }), crumb(words("layer", { layer }), focus(layer))]; // prettier-ignore
  if (head >= 0) {
    const token = view.figures[at].bands[band].places[view.figures[at].bands[band].selected];
    const query = new URLSearchParams({ ...focus(layer, head), token });
    way.push(crumb(words("one_head", { head }), focus(layer, head)));
    way.push(crumb(words("heads"), { address: `tab=heads&${query}` }));
    way.push(crumb(words("weight"), { address: `tab=weight&${query}` }));
  }
  const steps = [step("‹", words("before"), -1), step("›", words("next"), 1)];
  return make("div", "slider flow-bar", button, ...steps, make("nav", { "aria-label": words("way") }, ...way)); // prettier-ignore
}

/** Let a light go from the first layer to the words that come out. @param {View} view @param {number} at @param {HTMLElement} button */
function sweep(view, at, button) {
  if (still()) return;
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
