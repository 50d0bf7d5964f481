// @ts-check
// A flow as a file that moves: the picture of the SVG export, in which a light goes from layer to layer
// for six seconds, again and again. It holds no script; where a reader wants no movement it rests.

import { filed } from "./panel_layout.js";
import { tag } from "./svg_export.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const SECONDS = 6;
const [BEGIN, END, REST] = [4, 70, 95]; // per cent of it: the light sets out, arrives, and all fades
const BEAM = 90; // pixels of the light's width
const APPEAR = 1.5; // per cent in which a part comes
const LAYER = /<g class="flow-layer" data-at="(\d+)" data-box="([\d. -]+)">/g;

/** A panel of a flow as an SVG that moves. @param {View} view @param {Look} look */
export function loop(view, look) {
  const figures = view.figures.map((/** @type {any} */ each) => ({ ...each, note: "" }));
  const { svg } = filed({ ...view, figures }, look, { formulas: false });
  const { level, current } = view.figures.find((/** @type {any} */ each) => each.kind === "flow");
  const last = level || current < 0 ? Infinity : current; // the light goes no further than the beam
  const boxes = [...svg.matchAll(LAYER)]
    .map(([, , box]) => box.split(" ").map(Number))
    .slice(0, last + 1);
  const whole = boxes.reduce((sum, [, , wide]) => sum + wide, 0);
  const percent = (/** @type {number} */ part) => BEGIN + ((END - BEGIN) * part) / whole;
  const stop = (/** @type {number} */ offset, /** @type {number} */ opacity) =>
    tag("stop", { offset, "stop-color": look.primary, "stop-opacity": opacity });
  let [part, rules] = [0, ""];
  let lights = tag(
    "defs",
    {},
    tag("linearGradient", { id: "light" }, stop(0, 0), stop(0.8, 0.5), stop(1, 0)),
  );
  boxes.forEach(([x, y, wide, high], at) => {
    const [from, to] = [percent(part), percent((part += wide))];
    rules += layer(at, from, to, wide);
    const light = {
      x,
      y,
      width: Math.min(wide, BEAM),
      height: high,
      fill: "url(#light)",
      opacity: 0,
      class: `light l${at}`,
    };
    lights += tag("rect", light);
  });
  rules += frames("out", END, END + 2 * APPEAR) + ".flow-output{animation:out 6s infinite}";
  const moving = `@media (prefers-reduced-motion:no-preference){${rules}}`.replaceAll(
    "6s",
    `${SECONDS}s`,
  );
  const measured = svg.replace(
    /<path (?=[^>]*class="flow-curve")(?![^>]*stroke-dasharray)/g,
    '<path pathLength="1" ',
  );
  return measured
    .replace("</title>", `</title>${tag("style", {}, moving)}`)
    .replace(/<\/svg>$/, `${lights}</svg>`);
}

/** Keyframes of what comes between two moments, and goes with all. @param {string} name @param {number} from @param {number} to */
const frames = (name, from, to) =>
  `@keyframes ${name}{0%,${short(from)}%{opacity:0}${short(to)}%,${REST}%{opacity:1}100%{opacity:0}}`;

/** The rules of a layer, which draws itself while the light passes. @param {number} at @param {number} from @param {number} to @param {number} wide */
function layer(at, from, to, wide) {
  const [begin, end] = [short(from), short(to)];
  const own = `.flow-layer[data-at="${at}"]`;
  const far = short(Math.max(0, wide - BEAM));
  return [
    frames(`g${at}`, from, from + APPEAR),
    `${own}{animation:g${at} 6s infinite}`,
    frames(`t${at}`, to, to + APPEAR),
    `${own} text{animation:t${at} 6s infinite}`,
    `@keyframes c${at}{0%,${begin}%{stroke-dashoffset:1.01}${end}%,100%{stroke-dashoffset:0}}`,
    `${own} .flow-curve[pathLength]{stroke-dasharray:1.01 2;animation:c${at} 6s infinite}`,
    `@keyframes l${at}{0%,${begin}%{opacity:0;transform:none}${short(from + 0.4)}%{opacity:1}${end}%{opacity:1}${short(to + 0.4)}%,100%{opacity:0;transform:translateX(${far}px)}}`,
    `.l${at}{animation:l${at} 6s linear infinite}`,
  ].join("");
}

/** @param {number} value */
const short = (value) => +value.toFixed(2);
