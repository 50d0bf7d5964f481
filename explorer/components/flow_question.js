// @ts-check
// The question before the light is on, what is guessed there, and what is said of that in the end.

import { isAsked, isEnd, isYours, stopOf } from "./beam_figure.js";
import { bus, listen } from "./bus.js";
import { now } from "./flow_levels.js";
import { GAP } from "./flow_rows.js";
import { make, OF_TEXT, until } from "./mount.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */
const say = sentences("flow");
const CHOICES = 3; // likeliest words to choose from, beside the rival
const WHOLE = /^\p{L}{2,}$/u; // a word that is read as one, and no piece of one

/** What tells one question from another. @param {any} figure */
export const guessKey = ({ asks, n_words }) => JSON.stringify([asks, n_words]);

const [FIRST, LAST] = [160, 80]; // characters before and after it
const GUESSES = "headlight guesses"; // the name under which this window keeps them

/** Those of a picture in a frame, which has no store. @type {Record<string, string>} */
let unkept = {};

/** The words that were guessed in this window, by their questions. @returns {Record<string, string>} */
function guesses() {
  try {
    return JSON.parse(sessionStorage.getItem(GUESSES) || "{}");
  } catch {
    return unkept;
  }
}

/** Keep them. @param {Record<string, string>} words */
function keepGuesses(words) {
  try {
    sessionStorage.setItem(GUESSES, JSON.stringify(words));
  } catch {
    unkept = words;
  }
}

/** Whether the question of a lesson stands, whose answer comes in a later step. */
export const isKept = () => /[?&]covered=/.test(bus.now.steps?.address || "");

/** What a stop says, in the end before what was guessed beside it, which the bar of a lesson says too, and what the answer comes from. @param {any} figure @param {string} finding */
export function besideGuess(figure, finding) {
  if (!figure) return finding;
  const guess = guessBesideAnswer(figure) || guessOfClass(figure);
  if ((bus.now.guess || "") !== guess) bus.tell({ guess });
  const { part } = stopOf(figure) || {};
  const word = !figure.edits && figure.strongest?.label; // a button shows what comes of it
  const asks = word && [part, say("what_if", { word })].filter(Boolean).join(" ");
  const because = isEnd(figure) && (asks || figure.proof || part);
  const answer = part ? finding.replace(` ${part}`, "") : finding;
  return [answer, guess, because].filter(Boolean).join(" ");
}

/** What the class guessed that this window leads, in the end, where its record gets what the model gives these words. @param {any} figure */
function guessOfClass(figure) {
  const asked = bus.now.guesses && isEnd(figure) && !figure.edits && questionOf(figure).text;
  const of = asked && bus.now.guesses[asked];
  if (!of) return "";
  if (!of.isNoted && figure.lanes.length) {
    of.isNoted = true;
    noteModel(figure, asked, of.words);
  }
  return of.says;
}

/** @param {any} figure @param {string} asked @param {string[]} words */
async function noteModel(figure, asked, words) {
  const { noteModel: note } = await import("./class_record.js"); // for who leads a class alone
  const model = figure.lanes.map((/** @type {any} */ one) => [one.label + one.rest, one.chance]);
  for (const yours of words) {
    const lane = await wayOf({ ...figure, yours });
    if (lane && !lane.isPart) model.push([yours, lane.chance]);
  }
  note(asked, model);
}

/** What is asked before the light is on: the question, the line with its gap, and both as one text. @param {any} figure */
function questionOf({ asks: [before, after] }) {
  const asks = say(after ? "asks_hidden" : "asks_next");
  const line = `${cut(before)}${after ? "" : " "}${GAP}${after.slice(0, LAST)}`;
  return { asks, line, text: `${asks} ${line}` };
}

/** The end of what stands before a gap. @param {string} before */
const cut = (before) => (before.length > FIRST ? `…${before.slice(-FIRST)}` : before);

/** How the reader's guess fared: the model's own, the hidden one, or another. @param {any} figure */
function guessBesideAnswer(figure) {
  const { edits, lanes, yours, bands, asks } = figure;
  if (!isEnd(figure) || !yours || edits || !lanes.length) return "";
  const lane = lanes.find((/** @type {any} */ each) => isYours(figure, each));
  if (!lane) return say("other_guess", { yours });
  const { rows, selected } = bands[bands.length - 1];
  const isSame = lane === lanes[0] && !lane.isPart && alike(lane.label + lane.rest, yours);
  const isHidden = asks[2] === "hidden" && alike(rows[selected], yours);
  const kind = isSame ? "same" : isHidden ? "right" : lane.isPart ? "first" : "your";
  return say(`${kind}_guess`, { yours, token: lane.label, p: lane.text });
}

/** @param {string} one @param {string} other */
const alike = (one, other) => one.toLowerCase() === other.toLowerCase();

/** The lanes of words that were guessed, by the addresses that tell them. @type {Map<string, any>} */
const guessed = new Map();

/** The address that tells the way of the reader's guess, "" where it has a lane, or none is known. @param {any} figure */
const guessAddress = (figure) =>
  figure.yours &&
  figure.out &&
  !figure.lanes.some((/** @type {any} */ each) => isYours(figure, each))
    ? `${figure.out}&flow_guess=${encodeURIComponent(figure.yours)}`
    : "";

/** Give the reader's guess a lane, where what is known of it has come. @param {any} figure */
function laneOfGuess(figure) {
  const lane = guessed.get(guessAddress(figure));
  if (!lane) return false;
  const there = figure.lanes.find(({ id }) => id === lane.id);
  const lanes = figure.lanes.filter((/** @type {any} */ each) => each !== there || !lane.isPart);
  // Of a word with its own chance beside one that begins as it does the name is whole.
  const named = there ? { ...lane, label: lane.guess, rest: "" } : lane;
  const own = there && lane.isPart ? { ...there, guess: lane.guess, isPart: true } : named;
  figure.lanes = [...lanes, own].sort((a, b) => b.chance - a.chance);
  return true;
}

/** The way of the reader's guess, which is asked for; undefined where it has a lane, or none is known. @param {any} figure */
async function wayOf(figure) {
  const address = guessAddress(figure);
  if (!address) return undefined;
  const answer = await fetch(new URL(`../../${address}`, import.meta.url)).catch(() => undefined);
  const { table } = answer?.ok ? await answer.json().catch(() => ({})) : {};
  const lane = table && laneOf(table, "guess", figure.yours);
  if (lane) guessed.set(address, lane);
  return lane;
}

/** Ask for the way of the reader's guess, and give it a lane. @param {any} figure @returns {Promise<boolean>} whether it has one */
export const askGuess = async (figure) => Boolean(await wayOf(figure)) && laneOfGuess(figure);

/** A lane as the table of a panel tells it. @param {Record<string, any[]>} table @param {string} row the name of its rows @param {string} [guess] */
export function laneOf(table, row, guess) {
  const of = (/** @type {string} */ name) =>
    [...table.row.keys()].filter((at) => table.row[at] === name);
  const own = of(row);
  if (!own.length) return undefined;
  const [first, id] = [table.word[own[0]], table.id[own[0]]];
  const [chance, were = -1] = own.map((at) => table.probability[at]);
  const [text, was_text = ""] = own.map((at) => table.text[at]);
  const places = (/** @type {string} */ name) => of(name).map((at) => table.place[at]);
  const starts = guess?.toLowerCase().startsWith(first.toLowerCase());
  const isWhole = guess && table.is_whole[own[0]];
  const label = isWhole && !starts ? guess : first;
  const rest = guess && starts ? guess.slice(label.length) : "";
  return {
    label,
    rest,
    id,
    chance,
    text,
    were,
    was_text,
    guess,
    isPart: Boolean(guess && !alike(label, guess) && !isWhole),
    places: places("place"),
    middles: places("middle"),
    was_places: places("place before"),
  };
}

/** Put the reader's guess into a flow; what is asked again after its answer is guessed anew. @param {any} figure */
export function rememberGuess(figure) {
  const all = guesses();
  const key = guessKey(figure);
  const told = `${key} told`;
  if (isAsked(figure) && all[told]) keepGuesses({ ...all, [key]: "", [told]: "" });
  if (!isAsked(figure) && all[key] && !all[told]) keepGuesses({ ...all, [told]: "yes" });
  figure.yours = guesses()[key];
  if (!isAsked(figure)) laneOfGuess(figure);
}

/** The question: the line with a gap, words to choose from, and the light. @param {View} view @param {() => void} lit puts the light on */
export function stage(view, lit) {
  const figure = now(view);
  const [before, after] = figure.asks;
  const gap = make("span", "gap", figure.yours || "?");
  const line = make("p", { ...OF_TEXT, class: "line notranslate" });
  line.append(cut(before), gap, after.slice(0, LAST));
  const choices = make("div", "choices notranslate");
  const field = make("input", {
    type: "text",
    class: "guess",
    maxlength: 40,
    value: figure.yours || "",
    placeholder: say("type_alone"),
    "aria-label": say("type_alone"),
    autocomplete: "off",
    data: { focus: "guess" },
  });
  const guess = (/** @type {string} */ word) => {
    keepGuesses({ ...guesses(), [guessKey(figure)]: word.trim() });
    figure.yours = word.trim();
    gap.textContent = word.trim() || "?";
    for (const each of choices.querySelectorAll("button"))
      each.setAttribute("aria-pressed", `${each.textContent === word}`);
  };
  // Where the class is asked, this student's answer is the guess here too, and one to an earlier question is none.
  const voted = (/** @type {Record<string, any>} */ { lesson }) => {
    const { mine, open, question, number } = lesson || {};
    if (!open || !isOfClass(lesson) || question.text !== questionOf(figure).text) return;
    const { asked, isMade } = view.beam; // whether a guess was made here since this was asked
    view.beam.isMade = isMade && (!asked || asked === number);
    view.beam.asked = number;
    if (typeof mine === "string") view.beam.voted !== mine && guess((view.beam.voted = mine));
    else if (!view.beam.isMade && figure.yours) guess((view.beam.voted = field.value = ""));
  };
  voted(bus.now);
  until(view, "voted", listen(voted));
  const guessHere = (/** @type {string} */ word) => {
    view.beam.isMade = true;
    guess(word);
  };
  field.oninput = () => guessHere(field.value);
  field.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // it presses nothing that has the focus then
    lit();
  };
  const light = make(
    "button",
    {
      type: "button",
      class: "light",
      onclick: lit,
      data: { focus: "light" },
    },
    say("light"),
  );
  const named = () => say(!isKept() ? "light" : isOfClass(bus.now.lesson) ? "send" : "keep");
  const name = () => light.textContent !== named() && (light.textContent = named());
  until(view, "light", listen(name)); // the step of a lesson may be known later
  name();
  view.beam.choose = () => {
    const word = (/** @type {any} */ lane) => lane.label + (lane.rest || "");
    const last = before.trimEnd().split(/\s/).pop();
    const isOffered = (/** @type {string} */ each) => WHOLE.test(each) && each !== last;
    const lanes = figure.bands.length > 1 ? [] : figure.lanes; // of a translator they are pieces
    const likely = lanes.map(word).filter(isOffered).slice(0, CHOICES);
    const rival = figure.rival ? [word(figure.rival)].filter(isOffered) : [];
    const labels = [...new Set([...likely, ...rival])].sort((a, b) => a.localeCompare(b));
    const few = labels.length < 2; // which are no choice
    const offered = few ? [] : labels;
    bus.tell({
      stage: { ...questionOf(figure), words: offered },
    });
    field.placeholder = say(few ? "type_alone" : "type");
    choices.replaceChildren(
      ...offered.map((label) =>
        make(
          "button",
          {
            type: "button",
            "aria-pressed": `${label === figure.yours}`,
            onclick: () => {
              guessHere(label);
              vote(view);
            },
            onkeydown: (/** @type {KeyboardEvent} */ event) => {
              if (event.key !== "Enter" || figure.yours !== label) return;
              event.preventDefault(); // once more it would choose what is chosen
              lit();
            },
            data: { focus: `guess ${label}` },
          },
          label,
        ),
      ),
    );
  };
  if (!figure.out || figure.isLate) view.beam.choose();
  else if (!view.aside) bus.tell({ stage: questionOf(figure) }); // its words follow
  // What comes later moves nothing: the field stands beside the light, below the words.
  const rows = [choices, make("div", "row", field, light), make("span", "hint", say("enter"))];
  return make("div", "stage", line, ...(bus.now.lesson?.isBelow ? [] : rows));
}

const LIGHT_ON = 600; // milliseconds in which the cone opens

/** The dark of the question opens as a cone, from the middle of its line, onto the picture, which is there. @param {View} view @param {() => void} draw puts the picture there */
export function opening({ root, finding }, draw) {
  const { top, left, width, height } = root.getBoundingClientRect();
  const line = root.querySelector(".stage .line")?.getBoundingClientRect() ?? { top, height };
  finding.style.minHeight = `${finding.offsetHeight}px`; // as the panel gives it
  const dark = make("div", { class: "night shade", "aria-hidden": "true" });
  dark.inert = true;
  const parts = [...root.childNodes];
  draw();
  dark.append(...parts);
  root.after(dark);
  Object.assign(dark.style, { width: `${width}px`, height: `${height}px` });
  const [own, now] = [dark, root].map((each) => each.getBoundingClientRect());
  dark.style.translate = `${left - own.left}px ${now.top - own.top}px`;
  const y = line.top + line.height / 2 - top;
  const far = Math.max(width, height);
  const cone = (/** @type {number} */ wide) =>
    `polygon(evenodd, 0 0, 100% 0, 100% 100%, 0 100%, 0 0, ${-wide}px ${y}px, ${3 * far}px ${y - 4 * wide}px, ${3 * far}px ${y + 4 * wide}px, ${-wide}px ${y}px, 0 0)`;
  const timing = { duration: LIGHT_ON, easing: "ease-in", fill: /** @type {const} */ ("forwards") };
  const move = dark.animate({ clipPath: [cone(0), cone(far)] }, timing);
  move.onfinish = move.oncancel = () => dark.remove();
}

/** True for who follows a class. @param {any} lesson */
export const isOfClass = (lesson) =>
  Boolean(lesson && !lesson.key && !lesson.alone && !lesson.over);

/** Send a student's guess to the class, where that is what it is asked. @param {View} view */
export function vote(view) {
  if (!isOfClass(bus.now.lesson)) return;
  const figure = now(view);
  const hint = (/** @type {string} */ words) =>
    view.root.querySelector(".stage .hint")?.replaceChildren(words);
  const word = guesses()[guessKey(figure)] || "";
  bus.tell({ guessed: { word, text: questionOf(figure).text, failed: hint } });
  if (isKept()) hint(say("waits_for_teacher"));
}
