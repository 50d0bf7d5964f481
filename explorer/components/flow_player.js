// @ts-check
// The light that goes through the whole machine: the question before it, the bar above the picture, and
// the beam as it is dragged, played and walked along the layers.

import {
  END,
  count,
  GROW,
  isAsked,
  isEnd,
  isPulse,
  LASTS,
  lasts,
  onShow,
  PULSE,
  share,
  stopOf,
  TRAVEL,
  WIDEN,
} from "./beam_figure.js";
import { asTable, hued, spoken } from "./beam_words.js";
import { carry, outcomeOf, parcelsOf, wayOfAnswer } from "./beam_parcels.js";
import { bus, listen } from "./bus.js";
import { place } from "./flow_figure.js";
import { beamOf, glide, go, levelBeside, now, zoomedBy } from "./flow_levels.js";
import {
  askGuess,
  besideGuess,
  guessKey,
  isKept,
  isOfClass,
  laneOf,
  opening,
  rememberGuess,
  stage,
  vote,
} from "./flow_question.js";
import { GAP, isHidden, labelsOf, toggled, writtenRow } from "./flow_rows.js";
import { fetchedRow } from "./flow_shares.js";
import { arrow, hearKeys, isPressed, OWN, passPress } from "./keys.js";
import { focused, make, OF_TEXT, still, until } from "./mount.js";
import { Echoes } from "./optimistic_updates.js";
import { sentences } from "./sentences.js";
import { explained, sentenceOf } from "./terms.js";

/** @typedef {import("./mount.js").View} View */
const say = sentences("flow");
const OF_WORD = "switch word"; // where the focus is, also when its button puts the word back
const FAST = 80; // milliseconds of a layer that is not told by itself
const [READING, A_WORD] = [2500, 200]; // milliseconds that a stop is read, at least, and of each word
const LAST = /[^.!?]*[.!?]$/; // sentence of several
const PACE = 1.25; // of the parts of a layer that is told
const AGAIN = 1800; // milliseconds after which its parcels go once more
const PAUSE = 250; // milliseconds after the last step, before the address has it
const PAINTED = 400; // milliseconds after which a picture and its page have been drawn

/** The bar of a flow: the button that plays it, the steps from layer to layer, the levels to which it is opened, and what leads on; in its place the question, where the light is off. @param {View} view @param {number} at @param {(one?: any) => void} paint draws the picture, or another one in its place */
export function player(view, at, paint) {
  const figure = view.figures[at];
  view.beam = { ...view.beam, at, paint, said: view.header.finding };
  view.beam.told = () => told(view, true);
  if (!view.aside) {
    view.beam.echoes ||= new Echoes();
    figure.go = (/** @type {number} */ to, echo = false) => {
      if (
        echo &&
        (view.beam.echoes.takes(to) || view.beam.later || view.settle || to === now(view).current)
      )
        return;
      moveTo(view, to);
    };
    hearKeys(view, (event, inside) => meaning(view, event, inside));
    const down = (/** @type {PointerEvent} */ event) => drag(view, event);
    view.root.addEventListener("pointerdown", down);
    until(view, "drag", () => view.root.removeEventListener("pointerdown", down));
    late(view, figure);
    if (!isAsked(figure)) showGuess(view, figure);
    zoomedBy(view);
    until(view, "stage", () => bus.now.stage && bus.tell({ stage: undefined }));
  }
  if (!isAsked(figure) && bus.now.stage) bus.tell({ stage: undefined });
  return isAsked(figure) ? stage(view, () => lit(view)) : bar(view);
}

/** Let what is taken out, or put back, be seen on its way to the words that come out: these move when it is there. @param {View} view @param {any} before the flow that was on show */
export function pulse(view, before) {
  const figure = view.figures[view.beam?.at];
  if (!isPulse(before, figure) || still() || view.aside) return;
  const box = view.boxes[view.beam.at];
  const canvas = make("canvas", { class: "parcels", "aria-hidden": "true" });
  /** @type {import("./beam_parcels.js").Parcel[] | undefined} */
  let parcels;
  let began = 0;
  const end = () => {
    view.root.removeEventListener("pointerdown", end);
    view.root.classList.remove("holds");
    canvas.remove();
  };
  const tick = (/** @type {number} */ time) => {
    began ||= time;
    if (time - began >= PULSE || now(view) !== figure || !view.root.isConnected) return end();
    if (time - began >= WIDEN) {
      parcels ||= outcomeOf(view, before); // columns have their widths
      carry(canvas, box, view.look, parcels, time - began - WIDEN);
    }
    requestAnimationFrame(tick);
    return undefined;
  };
  box.after(canvas);
  view.root.classList.add("holds");
  view.root.addEventListener("pointerdown", end);
  requestAnimationFrame(tick);
}

/** Put into a flow what is known from before: the reader's guess, and the colours of its words. @param {View} view @param {any} figure */
export function remember(view, figure) {
  rememberGuess(figure);
  figure.hues = view.hues?.[guessKey(figure)] || votedHues(figure);
  figure.proof = proofOf(figure);
  figure.hued = hued;
}

/** What the answer is without the word that matters most to it, "" under edits and where that is not known. @param {any} figure @returns {string} */
const proofOf = ({ out, edits }) => (!edits && wordsOut.get(out)?.finding) || "";

/** The colours of the words that heads vote on: those of the vote, on every tab. @param {any} figure @returns {Record<number, number>} */
const votedHues = ({ votes }) =>
  Object.fromEntries(
    votes
      .filter((/** @type {number[]} */ [row]) => row >= 0)
      .map(([row, noun]) => [row, Math.min(noun, HUES - 1)]),
  );

/** A button of the bar. @param {string} label @param {() => void} onclick @param {Record<string, any>} [more] attributes */
const button = (label, onclick, more = {}) =>
  make(
    "button",
    { type: "button", onclick, data: { focus: more["aria-label"] || label }, ...more },
    label,
  );

/** @param {View} view */
function bar(view) {
  const play = button(say("play"), () => playOrStop(view), {
    class: "play",
    "aria-keyshortcuts": "Space",
  });
  view.play = play;
  const nav = make("nav", { "aria-label": say("way") });
  if (view.aside) {
    fill(view, nav);
    return make("div", "slider flow-bar", play, nav); // nothing leads on from a file
  }
  const steps = [
    button("‹", () => step(view, -1), {
      class: "step",
      "aria-label": say("before"),
    }),
    button("›", () => step(view, 1), {
      class: "step",
      "aria-label": say("next"),
    }),
  ];
  const slider = make("input", {
    type: "range",
    class: "beam",
    min: 0,
    max: count(now(view)),
    "aria-label": say("beam"),
    data: { focus: "beam" },
  });
  slider.oninput = () => moveTo(view, Number(slider.value), true);
  const more = make("span", "more");
  const table = make("table", { ...OF_TEXT, class: "unseen notranslate" });
  const made = make(
    "div",
    "slider flow-bar",
    play,
    ...steps,
    now(view).level ? false : slider,
    nav,
    more,
    table,
  );
  view.beam.fill = () => {
    fill(view, nav, more, slider);
    tell(now(view), table);
  };
  view.beam.fill();
  return made;
}

/** The words that race as a table, for who does not see them. @param {any} figure @param {HTMLElement} table */
function tell(figure, table) {
  const { title, columns, rows } = asTable(figure);
  const row = (/** @type {"td" | "th"} */ kind, /** @type {string[]} */ cells) =>
    make("tr", "", ...cells.map((each) => make(kind, "", each)));
  table.replaceChildren(
    make("caption", "", title),
    make("thead", "", row("th", columns)),
    make("tbody", "", ...rows.map((each) => row("td", each))),
  );
}

/** The line below a flow that names its keys. @param {any} figure */
export const keysOf = (figure) =>
  !isAsked(figure) && make("p", "keys", `${figure.level ? "" : say("drag")} ${say("keys")}`.trim());

/** The parts of the bar that depend on where the beam stands. @param {View} view @param {HTMLElement} nav @param {HTMLElement} [more] @param {HTMLInputElement} [slider] */
function fill(view, nav, more, slider) {
  const figure = now(view);
  const { level, leads } = figure;
  const { levels = [], switch: toggle } = stopOf(figure) || {};
  const to = (/** @type {string} */ label, /** @type {any} */ select, more = {}) =>
    button(label, () => go(view, select), more);
  const [{ rows, selected }] = figure.bands;
  const own = `${rows[selected]} →`; // a word that is hidden has no name here either
  const named = levels.map((/** @type {any} */ one) =>
    isHidden(figure) ? { ...one, label: one.label.replace(own, `${GAP} →`) } : one,
  );
  const crumbs = named.map(({ label, select }, /** @type {number} */ each) =>
    (each === level && !figure.ffn) || view.aside
      ? make(
          "span",
          {
            class: "crumb",
            ...(each === level ? { "aria-current": "step" } : {}),
          },
          label,
        )
      : to(label, each ? select : { ...select, flow_beam: beamOf(figure) }, {
          class: each > level ? "crumb deeper" : "crumb",
        }),
  );
  if (figure.ffn)
    crumbs.splice(
      2,
      Infinity,
      make("span", { class: "crumb", "aria-current": "step" }, say("ffn_name")),
    );
  nav.replaceChildren(...crumbs.slice(0, view.aside ? level + 1 : undefined));
  const isOn = level || figure.current >= count(figure); // till then nobody knows what is written
  const word = isEnd(figure) && !figure.edits && figure.strongest;
  const isProof = isEnd(figure) && figure.cause.length && (figure.isLate || !figure.out) && !word;
  more?.replaceChildren(
    ...(word
      ? [
          to(
            say("take_out", { word: word.label }),
            { edits: toggled(figure, word.edits), flow_beam: END },
            { class: "lead switch proof", data: { focus: OF_WORD } },
          ),
        ]
      : []),
    ...(toggle && !figure.ffn
      ? [
          to(toggle.label, toggle.select, {
            class: isProof ? "lead switch proof" : "lead switch",
            "aria-keyshortcuts": "X",
            data: { focus: /HideWord/.test(figure.edits) ? OF_WORD : "switch" },
          }),
        ]
      : []),
    ...(isOn
      ? leads.map((/** @type {any} */ one) => to(one.label, one.select, { class: "lead" }))
      : []),
  );
  if (!slider) return;
  slider.value = `${figure.current}`;
  slider.setAttribute("aria-valuetext", spoken(figure));
}

// ---- the beam ------------------------------------------------------------------------------------

/** Bring the beam to a column, or to the end; the address has it a moment later. @param {View} view @param {number} to @param {boolean} [tells] */
function moveTo(view, to, tells = false) {
  const figure = now(view);
  view.settle?.();
  const before = { ...place(figure) };
  to = Math.max(0, Math.min(count(figure), to));
  if (isAsked(figure)) return lit(view, to, false);
  figure.current = to;
  shown(view, isTold(figure));
  glide(view, before);
  if (tells) report(view);
}

/** Whether what happens where the beam stands is told by itself. @param {any} figure */
const isTold = ({ current, slow, layers }) => slow.includes(current) || current >= layers.length;

/** The sentence of where the beam stands. One that stands there is not said again. @param {View} view @param {boolean} isSaid whether it is read out @param {any} [stop] what is told in its place */
function told(view, isSaid, stop = stopOf(now(view))) {
  const { finding } = stop;
  const { titles } = now(view);
  if (titles.length) {
    view.header.title = titles[now(view).level || isEnd(now(view)) ? 1 : 0];
    const title = explained(view.header.terms, view.header.title, new Set());
    view.root.querySelector("h2")?.replaceChildren(...title);
  }
  if (view.beam.said !== finding) {
    view.finding.ariaLive = isSaid ? "polite" : "off";
    view.finding.replaceChildren(...sentenceOf(view, besideGuess(now(view), finding)));
  }
  view.header.finding = view.beam.said = finding;
}

/** The sentence and the bar of where the beam stands. @param {View} view @param {boolean} [isSaid] @param {any} [stop] */
function shown(view, isSaid = false, stop = undefined) {
  told(view, isSaid, stop);
  view.beam.fill?.();
}

/** Tell the address where the beam stands. @param {View} view @param {number} [pause] milliseconds */
function report(view, pause = PAUSE) {
  const { beam } = view;
  clearTimeout(beam.later);
  beam.later = setTimeout(() => {
    beam.later = undefined;
    tellBeam(view, now(view).current);
  }, pause);
}

/** @param {View} view @param {number} to a column */
function tellBeam(view, to) {
  view.beam.echoes.sent.push(to);
  go(view, { flow_beam: beamOf({ ...now(view), current: to }) });
}

/** Go a layer on, or back; of a layer that is opened to the one beside it. @param {View} view @param {number} by @param {boolean} [far] to the next that matters */
function step(view, by, far = false) {
  const figure = now(view);
  if (figure.level) {
    const to = besides(figure, by);
    return to && go(view, to);
  }
  const stops = far ? [...figure.matters, count(figure)] : [...Array(count(figure) + 1).keys()];
  const to =
    by > 0
      ? stops.find((each) => each > figure.current)
      : stops.filter((each) => each < figure.current).pop();
  if (to !== undefined) moveTo(view, to, true);
}

/** What brings the layer before or after the one that is opened into focus; undefined where there is none. @param {any} figure @param {number} by */
function besides({ layers, layer, band, attention }, by) {
  const of = layers.filter((/** @type {any} */ each) => each.band === band);
  const to = of[of.findIndex((/** @type {any} */ each) => each.layer === layer) + by];
  return to && { attention, layer: `${to.layer}`, head: "" };
}

/** What brings the word above or below the chosen one into focus. @param {any} figure @param {number} by */
function wordBesides({ bands: [band] }, by) {
  const isRest = band.places[band.selected + by] === "";
  const to = band.places[band.selected + by * (isRest ? 2 : 1)];
  return to && { [band.choice]: to };
}

/** What takes out the head or the word that has the focus; undefined where neither has. @param {any} figure @param {Element | null} inside */
function outInFocus(figure, inside) {
  const part = inside?.closest("g.flow-head, g.token");
  const [names, values] = ["data-names", "data-select"].map((each) =>
    JSON.parse(part?.getAttribute(each) || "[]"),
  );
  const at = Object.fromEntries(names.map((/** @type {string} */ name, i) => [name, values[i]]));
  if (at.edits !== undefined) return at;
  const of = figure.layers
    .filter((/** @type {any} */ each) => `${each.layer}` === at.layer)
    .flatMap(({ attentions }) => attentions)
    .find(({ attention }) => at.head !== undefined && attention === at.attention);
  const line = of && `ZeroHead:${at.layer}:${at.head}:${of.name}`;
  return line && { ...at, edits: toggled(figure, line) };
}

/** The edits that take out the word that is read most, in the end the one that the answer comes from. @param {any} figure */
function wordOut(figure) {
  const layer = figure.layers[Math.min(count(figure) - 1, figure.current)];
  const [band] = figure.bands;
  const row = isEnd(figure) && figure.cause.length ? figure.cause[3] : fetchedRow(figure, layer);
  const line = layer && band.outs?.[row];
  return line ? { edits: toggled(figure, line), flow_beam: END } : undefined;
}

/** What switches the head that brings most off or on: on the model's own level its effect is seen in the end. @param {any} figure */
function switching(figure) {
  const toggle = stopOf(figure).switch;
  return toggle && (figure.level ? toggle.select : { edits: toggle.select.edits, flow_beam: END });
}

/** What a key does, undefined for nothing: Space plays, left and right go to another layer where no lesson is followed, with Shift to one that matters, up and down to another word, Enter opens and Escape closes a level, X takes a head out and Delete a word: that which has the focus, else what brings most. Before the light is on numbers choose a word and Enter lights it. @param {View} view @param {KeyboardEvent} event @param {Element | null} inside the part that has the focus */
function meaning(view, event, inside) {
  const figure = now(view);
  const to = (/** @type {any} */ select) => select && (() => go(view, select));
  const [down, right] = arrow(event) || [0, 0];
  const own = inside?.closest(OWN);
  if (isAsked(figure)) {
    if (event.key === "Enter" && !inside?.closest("button")) return () => lit(view);
    const choice = view.root.querySelectorAll(".choices button")[Number(event.key) - 1];
    return choice ? () => /** @type {HTMLElement} */ (choice).click() : undefined;
  }
  const walks = !inside?.closest("[data-cells], input") && (inside || !down);
  if (right && bus.now.steps) return undefined; // a lesson's steps
  if (right && walks) return () => step(view, right, event.shiftKey);
  if (down && walks) return to(wordBesides(figure, down));
  const ends = { Home: 0, End: count(figure) };
  if (event.key in ends && !figure.level && walks) return () => moveTo(view, ends[event.key], true);
  if (event.key === "Escape" && figure.level) return to(levelBeside(figure, false));
  if (event.key.toLowerCase() === "x") return to(outInFocus(figure, inside) ?? switching(figure));
  if (event.key === "Delete" && !figure.level)
    return to(outInFocus(figure, inside) ?? wordOut(figure));
  if (own && !isPressed(own)) return undefined;
  if (event.key === "Enter") return to(levelBeside(figure, true));
  return event.key === " " ? () => playOrStop(view) : undefined;
}

// ---- playing -------------------------------------------------------------------------------------

/** Play what is opened, or end it: the steps of a weight where there are some, else the way through the layers. @param {View} view */
function playOrStop(view) {
  const steps = view.figures.find((/** @type {any} */ each) => each.toggle);
  if (steps) steps.toggle();
  else if (view.settle) view.settle();
  else play(view);
}

/** Let the beam go through the layers that are left, from the first where it is at the end: slowly through those that are told by themselves. A press ends it. @param {View} view */
function play(view) {
  const figure = now(view);
  const n = count(figure);
  const calm = still();
  let column = figure.current >= n ? 0 : Math.max(0, figure.current);
  const nextSlow = () => figure.slow.find((/** @type {number} */ each) => each > column) ?? n;
  if (calm && !figure.slow.includes(column)) column = nextSlow();
  if (figure.level) return;
  view.play.textContent = say("stop");
  view.root.classList.add("plays");
  const canvas = make("canvas", { class: "parcels", "aria-hidden": "true" });
  const box = view.boxes[view.beam.at];
  box.after(canvas);
  const press = (/** @type {Event} */ { target }) => target !== view.play && view.settle?.();
  view.root.addEventListener("click", press, true);
  let [frame, timer, began] = [0, 0, 0];
  /** @type {import("./beam_parcels.js").Parcel[] | undefined} */
  let parcels;
  let before = place(figure);
  view.settle = () => {
    view.settle = undefined;
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    view.root.removeEventListener("click", press, true);
    canvas.remove();
    view.root.classList.remove("plays");
    view.play.textContent = say("play");
    figure.ms = undefined;
    if (!view.root.isConnected || now(view) !== figure) return;
    shown(view, isTold(figure));
    view.beam.paint();
    if (!view.aside) report(view, 0);
  };
  const draw = (/** @type {number | undefined} */ ms, part = 1) => {
    figure.ms = ms;
    view.beam.paint({
      ...figure,
      from: part < 1 ? { ...before, share: part } : undefined,
    });
  };
  const next = () => {
    before = place(figure);
    column = calm ? nextSlow() : column + 1;
    enter();
  };
  /** @type {any} */
  let said;
  let [reads, fast] = [0, FAST]; // milliseconds that what is told is read, and those of a quick layer
  /** @type {any} */
  let later; // what is told of a layer when it is seen
  const enter = () => {
    figure.current = column;
    const isSlow = figure.slow.includes(column);
    // Quick layers before the first that is told have one sentence, which is read; later ones pass.
    const passes = column > figure.slow[0] && !isTold(figure);
    if (!passes) {
      const stop = figure.stops[lastOfQuick(figure)];
      if (stop !== said) {
        said = stop;
        // Quick layers pass while their sentence is read, so that nothing stands still.
        fast = Math.max(FAST, readingOf(stop.finding) / (1 + lastOfQuick(figure) - column));
      }
      const stands = figure.stops[column].finding.match(LAST)?.[0] ?? ""; // of the answer, here
      later = isSlow && !calm && stop;
      const finding = later
        ? `${say("layer", figure.layers[column])} …`
        : stop.finding.replace(LAST, () => stands);
      shown(view, !later && isTold(figure), { finding });
      reads = readingOf(stop.finding);
    }
    if (column >= n) ending();
    else if (calm) {
      draw(undefined);
      timer = setTimeout(next, reads);
    } else if (isSlow) {
      began = 0;
      parcels = undefined;
      frame = requestAnimationFrame(tick);
    } else {
      const begins = performance.now();
      const pace = passes ? FAST : fast;
      const sweep = (/** @type {number} */ time) => {
        const part = Math.min(1, Math.max(0, time - begins) / pace);
        draw(undefined, part);
        if (part < 1) frame = requestAnimationFrame(sweep);
        else next();
      };
      sweep(begins);
    }
  };
  const tick = (/** @type {number} */ time) => {
    if (!view.root.isConnected || now(view) !== figure) {
      view.settle?.();
      return;
    }
    began ||= time;
    const ms = (time - began) / PACE;
    if (later && ms >= GROW) {
      shown(view, true, later);
      later = undefined;
    }
    if (time - began >= PACE * GROW + reads) {
      canvas.width = 0;
      next();
      return;
    }
    if (ms < LASTS) draw(ms, share(ms, 0, WIDEN));
    else if (figure.ms !== undefined) draw(undefined);
    if (ms >= WIDEN) {
      if (!parcels) {
        inSight(view); // it has its width
        parcels = parcelsOf(view);
      }
      if (ms > WIDEN + AGAIN) parcels = parcels.filter(({ word }) => !word); // which goes once
      carry(canvas, box, view.look, parcels, (ms - WIDEN) % AGAIN);
    }
    frame = requestAnimationFrame(tick);
  };
  const ending = () => {
    const began = performance.now();
    const all = calm ? 0 : lasts({ ...figure, ...before }, figure);
    /** @type {import("./beam_parcels.js").Parcel[] | undefined} */
    let answer;
    figure.ms = undefined;
    const last = (/** @type {number} */ time) => {
      const ms = Math.max(0, time - began);
      if (ms < all)
        view.beam.paint({ ...figure, from: { ...before, share: share(ms, 0, WIDEN), ms } });
      else {
        if (!answer) view.beam.paint();
        answer ||= calm ? [] : wayOfAnswer(view);
        if (ms >= all + TRAVEL * answer.length) {
          view.settle?.();
          if (innerWidth < PHONE) view.root.scrollIntoView(); // what it says
          return;
        }
        carry(canvas, box, view.look, answer, ms - all);
      }
      frame = requestAnimationFrame(last);
    };
    last(began);
  };
  enter();
}

/** The last of the quick layers that the beam stands in, that layer itself where it is told alone. @param {any} figure */
function lastOfQuick({ current, slow, layers }) {
  if (slow.includes(current) || current >= layers.length) return current;
  return Math.min(...slow.filter((/** @type {number} */ at) => at > current), layers.length) - 1;
}

/** The milliseconds in which a sentence is read. @param {string} sentence */
const readingOf = (sentence) => Math.max(READING, A_WORD * sentence.split(" ").length);

/** Where layers run downwards the page follows the light, below the sentence, which stays. @param {View} view */
function inSight(view) {
  if (innerWidth >= PHONE) return;
  const { current } = now(view);
  const part = view.boxes[view.beam.at].querySelector(`g.flow-layer[data-at="${current}"]`);
  if (!part) return;
  part.style.scrollMarginTop = `${view.finding.offsetHeight}px`;
  part.scrollIntoView({ block: "center", behavior: still() ? "auto" : "smooth" });
}
const PHONE = 640; // pixels of a window in which layers run downwards

// ---- dragging ------------------------------------------------------------------------------------

/** Drag the beam by its handle. @param {View} view @param {PointerEvent} event */
function drag(view, event) {
  const figure = now(view);
  const target = /** @type {Element} */ (event.target);
  if (figure.level || isAsked(figure) || !target.closest(".beam-pill")) return;
  event.preventDefault();
  focused(view.root)?.blur(); // as by any other press: no box stays where the handle was
  const move = (/** @type {PointerEvent} */ { clientX }) => {
    const svg = view.boxes[view.beam.at].firstChild;
    const x = clientX - svg.getBoundingClientRect().left;
    const boxes = [...svg.querySelectorAll("g.flow-layer")].map((each) =>
      each.getAttribute("data-box").split(" ").map(Number),
    );
    const found = boxes.findIndex(([left, , wide]) => x < left + wide);
    const to = found < 0 ? count(figure) : found;
    if (to !== figure.current) {
      isPress = false;
      view.settle?.();
      figure.current = to;
      shown(view);
      view.beam.paint();
    }
    if (!isPress) follow(view, x);
  };
  let isPress = true;
  const up = () => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
    if (isPress) return; // it opens the layer
    const held = (/** @type {Event} */ click) => click.stopPropagation();
    view.root.addEventListener("click", held, true);
    setTimeout(() => view.root.removeEventListener("click", held, true));
    shown(view, isTold(figure));
    view.beam.paint();
    report(view);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", up);
}

/** Let the handle stand where the pointer is, until it is let go. @param {View} view @param {number} x along the picture */
function follow(view, x) {
  const pill = view.boxes[view.beam.at].querySelector(".beam-pill");
  const { x: left, width } = pill.getBBox();
  pill.setAttribute("transform", `translate(${(x - left - width / 2).toFixed(1)} 0)`);
}

// ---- the light ---

/** The light goes on: the picture opens, and plays. @param {View} view @param {number} [to] the column that it begins at @param {boolean} [plays] */
function lit(view, to = 0, plays = true) {
  const figure = now(view);
  if (!isAsked(figure)) return;
  if (isKept()) {
    if (!isOfClass(bus.now.lesson)) return bus.now.steps.by(1);
    return vote(view);
  }
  const { finding: question } = view.header;
  const open = () => {
    figure.current = to;
    rememberGuess(figure);
    view.header.finding = plays ? question : figure.stops[to].finding; // it tells what has happened
    if (plays && !still() && figure.slow.includes(to)) figure.ms = 0; // where play begins
    const isHeld = focused(view.root);
    view.rebuild();
    if (isHeld) {
      view.play.focus({ preventScroll: true }); // what had it is gone
      passPress(view.play);
    }
    if (view.root.getBoundingClientRect().top < 0) view.root.scrollIntoView(); // its sentence is seen
    if (!plays) return;
    if (!still()) fall(view);
    play(view);
  };
  tellBeam(view, to); // at once: with the light all of the page tells the answer
  if (still()) open();
  else opening(view, open);
}

/** The words fall to their lines. @param {View} view */
function fall(view) {
  view.boxes[view.beam.at]
    .querySelectorAll("g.token")
    .forEach((/** @type {Element} */ each, /** @type {number} */ i) =>
      each.animate(
        { transform: ["translateY(-40px)", "none"], opacity: [0, 1] },
        { duration: 400, delay: 20 * i, easing: "ease-out", fill: "backwards" },
      ),
    );
}

// ---- what comes later ----------------------------------------------------------------------------

/** What each word does to the answer, by the address of its panel. @type {Map<string, any>} */
const wordsOut = new Map();

/** Ask what each word does to the answer, which takes a pass a word, and draw it when it is there. @param {View} view @param {any} figure */
async function late(view, figure) {
  const { out } = figure;
  if (!out) return;
  const keep = (/** @type {any} */ table) => {
    figure.isLate = true;
    if (table) colour(view, figure, table);
  };
  const apply = (/** @type {any} */ table) => {
    keep(table);
    if (!view.root.isConnected || now(view) !== figure) return;
    view.beam.choose?.();
    view.beam.fill?.();
    const moves = view.settle || view.gliding[view.beam.at] !== undefined; // to what it is now
    if (!moves && !isAsked(figure)) view.beam.paint();
  };
  if (wordsOut.has(out)) return keep(wordsOut.get(out));
  const gone = new AbortController();
  const { sent } = bus.now; // the text on show: whoever sends another one waits for that
  const deaf = listen((news) => news.sent !== sent && gone.abort());
  until(view, "late", () => {
    deaf();
    gone.abort();
  });
  await new Promise((resolve) => setTimeout(resolve, PAINTED));
  if (gone.signal.aborted) return;
  try {
    const table = await wordsWithout(out, gone.signal);
    apply(table);
    if (!table || isAsked(now(view)) || view.settle) return;
    view.beam.said = ""; // words have their colours, and what matters most is said in the end
    shown(view);
  } catch {
    if (!gone.signal.aborted) apply(null);
  }
}

/** What each word does to the answer, by the address of its panel; null where that is not known. @param {string} out @param {AbortSignal} [signal] */
async function wordsWithout(out, signal) {
  if (!wordsOut.has(out)) {
    const answer = await fetch(new URL(`../../${out}`, import.meta.url), { signal });
    const found = answer.ok ? await answer.json() : null;
    wordsOut.set(out, found && { ...found.table, finding: found.finding });
  }
  return wordsOut.get(out);
}

/** Give the words of a flow their colours, in a file too. @param {View} view */
export async function coloured(view) {
  const flow = view.figures.find(({ kind }) => kind === "flow");
  const table = flow.out && (await wordsWithout(flow.out).catch(() => null));
  if (table) colour(view, flow, table);
}

/** Show the way of the reader's guess, when it is there. @param {View} view @param {any} figure */
async function showGuess(view, figure) {
  if (!(await askGuess(figure)) || !view.root.isConnected || now(view) !== figure) return;
  view.beam.said = ""; // how it fared is said beside the answer
  shown(view);
  if (!view.settle && view.gliding[view.beam.at] === undefined) view.beam.paint();
}

const HUES = 3; // words that have a colour

/** Give the words of content that matter most their colours, the rival its lane, the end what the answer is without a word, and the FFN where its word comes from what it does without that. @param {View} view @param {any} figure @param {Record<string, any[]>} table */
function colour(view, figure, table) {
  figure.proof = proofOf(figure);
  const of = (/** @type {string} */ row) =>
    [...table.row.keys()].filter((at) => table.row[at] === row);
  const [most] = of("word").filter((at) => table.turns_most[at]);
  figure.strongest =
    most === undefined ? undefined : { label: table.word[most], edits: table.edits[most] };
  const [blind] = of("ffn");
  if (blind !== undefined && !figure.edits && !figure.blind) {
    figure.blind = table.word[blind];
    figure.stops[figure.cause[0]].finding += ` ${table.says[blind]}`;
  }
  const [band] = figure.bands;
  const [first] = figure.lanes.filter((/** @type {any} */ one) => one.were >= 0);
  const lead = first
    ? Math.max(...figure.lanes.map((/** @type {any} */ one) => one.were))
    : figure.lanes[0]?.chance;
  const isCause = (/** @type {number} */ at) =>
    (band.outs || []).indexOf(table.edits[at]) === figure.cause[3];
  const changes = of("word")
    .filter((at) => table.content[at])
    .sort((a, b) => Math.abs(table.probability[b] - lead) - Math.abs(table.probability[a] - lead))
    .sort((a, b) => Number(isCause(b)) - Number(isCause(a))); // the word of the story has one
  figure.hues = votedHues(figure);
  const taken = Object.values(figure.hues);
  const free = [...Array(HUES).keys()].filter((hue) => !taken.includes(hue));
  for (const at of changes) {
    const row = (band.outs || []).indexOf(table.edits[at]);
    if (row >= 0 && figure.hues[row] === undefined && free.length) figure.hues[row] = free.shift();
  }
  view.hues = { ...view.hues, [guessKey(figure)]: figure.hues };
  const [rival] = of("rival").map((at) => table.word[at]);
  if (!rival || figure.lanes.some((/** @type {any} */ one) => one.label === rival)) return;
  figure.rival = laneOf(table, "rival");
  figure.lanes = [...figure.lanes, figure.rival].sort((a, b) => b.chance - a.chance);
}

// ---- a word that is written ------------------------------------------------------------------------

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
  const flight = word.animate(frames, {
    duration: FLIGHT,
    easing: "ease-in-out",
  });
  flight.onfinish = flight.oncancel = () => word.remove();
}
