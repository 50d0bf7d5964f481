// @ts-check
// The bar above the picture of the whole machine: Play, the steps from layer to layer, and where one
// is in it.

import { bus } from "./bus.js";
import { labelsOf, widthOf, writtenRow } from "./flow_figure.js";
import { arrow, hearKeys, OWN } from "./keys.js";
import { make, OF_TEXT, still, worded } from "./mount.js";
import { sentences } from "./sentences.js";
import { sentenceOf } from "./terms.js";

/** @typedef {import("./mount.js").View} View */
const say = sentences("flow");
const [SLOW, FAST] = [350, 80]; // milliseconds that the light takes for a layer
const READING = 1200; // for one whose sentence is read, as the light was asked for
const MANY = 12; // layers from which on it is fast
const TELLING = 3; // of these, at which it is slow
const LONGEST = 4000; // for the whole machine, where nobody asked for it
const [LIGHT, LASTS] = ["0.3", 2.2]; // opacity of a layer in the light, and how long it glows
const HEAD = 2; // as a place among the levels

/** The bar of a flow: the button that plays it, the steps from layer to layer, the levels to which it is opened, what leads on, and the head in focus, else the one that brings most, switched off and on. @param {View} view @param {number} at */
export function player(view, at) {
  const { level, levels, leads, switch: toggle } = view.figures[at];
  const button = (/** @type {string} */ label, /** @type {() => void} */ onclick, more = {}) =>
    make(
      "button",
      { type: "button", onclick, data: { focus: more["aria-label"] || label }, ...more },
      label,
    );
  const keys = (/** @type {string} */ name) => ({ "aria-keyshortcuts": name });
  const play = button(say("play"), () => sweepOrStop(view, at), {
    class: "play",
    ...keys("Space"),
  });
  const step = (
    /** @type {string} */ sign,
    /** @type {string} */ label,
    /** @type {number} */ by,
  ) => {
    const to = besides(view.figures[at], by);
    return button(sign, () => to && go(view, to), {
      class: "step",
      "aria-label": label,
      ...(to ? {} : { disabled: "" }),
    });
  };
  const way = levels.map(({ label, select }, /** @type {number} */ each) =>
    each === level || view.aside
      ? make(
          "span",
          { class: "crumb", ...(each === level ? { "aria-current": "step" } : {}) },
          label,
        )
      : button(label, () => go(view, select), { class: each > level ? "crumb deeper" : "crumb" }),
  );
  const others = leads.map((/** @type {any} */ one) =>
    button(one.label, () => go(view, one.select), { class: "lead" }),
  );
  const off =
    toggle &&
    button(toggle.label, () => go(view, toggle.select), { class: "lead switch", ...keys("X") });
  const nav = make(
    "nav",
    { "aria-label": say("way") },
    ...way.slice(0, view.aside ? level + 1 : undefined),
  );
  view.play = play;
  if (view.aside) return make("div", "slider flow-bar", play, nav); // nothing leads on from a file
  hearKeys(view, (event, inside) => meaning(view, at, event, inside));
  const steps = [step("‹", say("before"), -1), step("›", say("next"), 1)];
  return make("div", "slider flow-bar", play, ...steps, nav, off, ...others);
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

/** What a key does, undefined for nothing: Space plays, left and right go to another layer where no lesson is followed, up and down to another word, Enter opens and Escape closes a level, X switches the head in focus off or on. @param {View} view @param {number} at @param {KeyboardEvent} event @param {Element | null} inside the part that has the focus */
function meaning(view, at, event, inside) {
  const figure = view.figures[at];
  const { level, levels, switch: toggle } = figure;
  const to = (/** @type {any} */ select) => select && (() => go(view, select));
  const [down, right] = arrow(event) || [0, 0];
  const walks = !inside?.closest("[data-cells], input") && (inside || !down);
  if (right && bus.now.steps) return undefined; // a lesson's steps
  if (right && walks) return to(besides(figure, right));
  if (down && walks) return to(wordBesides(figure, down));
  if (event.key === "Escape") return to(levels[level - 1]?.select);
  if (event.key.toLowerCase() === "x") return to(toggle?.select);
  if (inside?.closest(OWN)) return undefined;
  if (event.key === "Enter") return to(levels[level + 1]?.select);
  return event.key === " " ? () => sweepOrStop(view, at) : undefined;
}

/** Play what is opened, or end it: the steps of a weight where there are some, else the way through the layers. @param {View} view @param {number} at */
function sweepOrStop(view, at) {
  const steps = view.figures.find((/** @type {any} */ each) => each.toggle);
  if (steps) steps.toggle();
  else if (view.settle) view.settle();
  else sweep(view, at);
}

/** How long the light takes for each layer, in milliseconds: of many layers it slows at those that change the prediction most. @param {any} figure @param {number} [slow] milliseconds */
export function paces({ layers }, slow = SLOW) {
  if (layers.length <= MANY) return layers.map(() => slow);
  const change = (/** @type {number} */ at) =>
    Math.abs((layers[at].answer ?? 0) - (layers[at - 1]?.answer ?? 0));
  const most = [...layers.keys()].sort((a, b) => change(b) - change(a)).slice(0, TELLING);
  return layers.map((/** @type {any} */ _, /** @type {number} */ at) =>
    most.includes(at) ? slow : FAST,
  );
}

/** Let a light go from the first layer to the words that come out. A press ends it. @param {View} view @param {number} at @param {number} [longest] milliseconds @param {() => void} [after] */
function sweep(view, at, longest = Infinity, after) {
  if (still()) return;
  const button = /** @type {HTMLElement} */ (view.root.querySelector(".flow-bar .play"));
  const svg = view.boxes[at].firstChild;
  const grounds = [...svg.querySelectorAll(".flow-ground rect")];
  const words = svg.querySelector("g.flow-output");
  const groups = [...svg.querySelectorAll("g.flow-layer"), ...(words ? [words] : [])];
  const asked = longest === Infinity;
  const wished = [...paces(view.figures[at], asked ? READING : SLOW), ...(words ? [SLOW] : [])];
  const whole = wished.reduce((a, b) => a + b, 0);
  const durations = wished.map((each) => each * Math.min(1, longest / whole));
  let delay = 0;
  const moving = groups.flatMap((group, i) => {
    const [duration, start] = [durations[i], delay];
    delay += duration;
    const timing = {
      duration,
      delay: start,
      fill: /** @type {const} */ ("backwards"),
      easing: "ease-out",
    };
    const curves = [...group.querySelectorAll("path.flow-curve")].map((path) => {
      const length = path.getTotalLength();
      const isWhole = !path.getAttribute("stroke-dasharray");
      const frames = isWhole
        ? { strokeDasharray: [`${length}`, `${length}`], strokeDashoffset: [length, 0] }
        : { opacity: [0, 1] };
      return path.animate(frames, timing);
    });
    const sums = [...group.querySelectorAll(".flow-sum")].map((sum) =>
      sum.animate(
        { strokeWidth: ["2px", "6px", "2px"] },
        { duration, delay: start + 0.7 * duration },
      ),
    );
    const own = grounds[i]?.getAttribute("fill-opacity") ?? "0";
    const light = grounds[i]?.animate(
      { fillOpacity: [own, LIGHT, own] },
      { duration: LASTS * duration, delay: start },
    );
    return [
      ...curves,
      ...sums,
      ...(light ? [light] : []),
      group.animate({ opacity: [0, 1] }, { ...timing, duration: duration / 3 }),
    ];
  });
  button.textContent = say("stop");
  const telling = asked ? tellSteps(view, at, durations) : [];
  const press = (/** @type {Event} */ { target }) => {
    if (target !== button) view.settle?.();
  };
  view.root.addEventListener("pointerdown", press);
  view.settle = () => {
    view.settle = undefined;
    view.root.removeEventListener("pointerdown", press);
    button.textContent = say("play");
    for (const one of moving) one.cancel();
    for (const one of telling) clearTimeout(one);
    view.finding.replaceChildren(...sentenceOf(view, view.header.finding));
    after?.();
  };
  const end = (/** @type {any} */ one) => Number(one.effect?.getComputedTiming().endTime);
  moving.reduce((a, b) => (end(b) > end(a) ? b : a)).onfinish = () => view.settle?.();
}

/** Say in the place of the finding what happens in each layer while the light is there. Returns the timers. @param {View} view @param {number} at @param {number[]} durations milliseconds a layer */
function tellSteps(view, at, durations) {
  const { layers } = view.figures[at];
  view.finding.style.minHeight = `${view.finding.getBoundingClientRect().height}px`;
  let start = 0;
  return layers.flatMap((/** @type {any} */ layer, /** @type {number} */ i) => {
    const tell = () => {
      const isShown = view.figures[at]?.layers.includes(layer); // else another state came meanwhile
      if (isShown) view.finding.replaceChildren(...worded(stepOf(view.figures[at], layer)));
    };
    const timer = setTimeout(tell, start);
    start += durations[i];
    return durations[i] < SLOW ? [] : [timer];
  });
}

/** What happens to the chosen word in a layer, in a sentence. @param {any} figure @param {any} layer */
function stepOf({ bands }, layer) {
  const [first] = layer.attentions;
  const parts = [say("step", { layer: layer.layer })];
  const row = first ? strongest(first, bands, layer.band) : undefined;
  if (row !== undefined) parts.push(say("brings", { key: labelsOf({ bands })[row] }));
  if (layer.says) parts.push(say("predicts", { word: layer.says[0], p: layer.says[2] }));
  return parts.join(" ");
}

/** The other row from which the heads of an attention together bring most; undefined where none brings anything. @param {any} attention @param {any[]} bands @param {number} band */
function strongest(attention, bands, band) {
  const before = bands
    .slice(0, band)
    .flatMap(({ rows, rest }) => [...rows, ...(rest ? [rest] : [])]).length;
  const chosen = before + bands[band].selected;
  const own = labelsOf({ bands }).map((_, row) =>
    row === chosen ? -Infinity : widthOf(attention, -1, row),
  );
  const most = own.indexOf(Math.max(...own));
  return own[most] > 0 ? most : undefined;
}

const FLIGHT = 250; // milliseconds that a written word takes to its row

/** Where the words that come out of a flow stand, before it is drawn anew. @param {View} view @returns {[string, DOMRect][]} */
export const outputs = (view) =>
  [...view.root.querySelectorAll(".flow-output text")].map((text) => [
    text.textContent || "",
    text.getBoundingClientRect(),
  ]);

/** Let a word that was written fly from the words that come out to its row. @param {View} view @param {number} at @param {any} from the flow before @param {[string, DOMRect][]} places as of `outputs` */
export function fly(view, at, from, places) {
  const figure = view.figures[at];
  const row = from?.kind === "flow" && figure.kind === "flow" ? writtenRow(from, figure) : -1;
  const label = row < 0 ? undefined : figure.bands[0].rows[row];
  const text = view.boxes[at].querySelector("g.token[aria-pressed=true] text");
  if (label === undefined || !text || !places.length || still()) return;
  const named = places.find(([each]) => each === label || each.startsWith(`${label}…`));
  const [, start] = named || places[0];
  const end = text.getBoundingClientRect();
  const all = view.root.getBoundingClientRect();
  const word = make(
    "span",
    { ...OF_TEXT, class: "flying notranslate", "aria-hidden": "true" },
    label,
  );
  word.style.right = `${all.right - end.right}px`;
  word.style.top = `${end.top - all.top}px`;
  view.root.append(word);
  const wide = word.getBoundingClientRect().width;
  const by = [start.left + wide - end.right, start.top - end.top];
  const frames = { transform: [`translate(${by[0]}px, ${by[1]}px)`, "none"] };
  const flight = word.animate(frames, { duration: FLIGHT, easing: "ease-in-out" });
  flight.onfinish = flight.oncancel = () => word.remove();
}

const PLAYED = "headlight.flow"; // in the browser's storage once it was played by itself

/** Play a flow by itself at the first visit of a browser; it rests on the head that brings most. @param {View} view @param {number} at @param {() => void} rest */
export function playOnce(view, at, rest) {
  if (still() || view.aside || document.hidden || view.figures[at].level) return;
  try {
    if (localStorage.getItem(PLAYED)) return;
    localStorage.setItem(PLAYED, "1");
  } catch {
    return; // no storage: it would play at every visit
  }
  sweep(view, at, LONGEST, rest);
}

/** The head that brings most, or the one in focus, as what is pointed at. @param {any} figure */
export function headline({ levels, layers, layer, band }) {
  const head = levels[HEAD]?.select.head;
  const at = layers.find((/** @type {any} */ one) => one.layer === layer && one.band === band);
  const of =
    at?.attentions.find(
      (/** @type {any} */ one) => one.attention === levels[HEAD]?.select.attention,
    ) || at?.attentions[0];
  return head && of ? { attention: of.attention, layer, head: Number(head) } : undefined;
}
