// @ts-check
// The answers to a question of a class as a list: how many chose each, before and after a discussion, and
// after the reveal which is right and what the model gives it. A typed one can be struck by who leads the class.

import { send } from "./class_part.js";
import { make } from "./mount.js";
import { tenths } from "./number_format.js";
import { patternPicture } from "./pattern_picture.js";
import { sentences } from "./sentences.js";
import { answer } from "./tokens.js";

const say = sentences("class");

/**
 * What is shown of a question. `votes`: how many chose what; `answer`: what is right; `struck`: also words that
 * the teacher struck.
 * @typedef {{ votes: boolean, answer: boolean, struck?: boolean }} Shown
 *
 * One answer: `n` and `before` are those who chose it, in the last vote and in those before, NaN where
 * votes are not shown; `p` is the model's probability, NaN where it is not shown.
 * @typedef {{ at: number, letter: string, words: string, picture: string, n: number,
 *   before: number[], p: number, right: boolean, struck?: boolean }} Row
 */

const LETTERS = "ABCDEF";
const same = (/** @type {string} */ a, /** @type {string} */ b) =>
  a.toLowerCase() === b.toLowerCase();

/** True for a question that has an answer to be shown. @param {any} question */
export const hasAnswer = ({ free, says, model }) => Boolean(!free || says || model);

/** How many answered, those whose words were struck too. @param {any[] | undefined} tally */
export const voters = (tally) =>
  (tally || []).reduce((sum, each) => sum + (Array.isArray(each) ? each[1] : each), 0);

/**
 * The rows of a question: its choices, or where words were typed those and the model's.
 * @param {any} question @param {any[] | undefined} tally @param {Shown} shown
 * @returns {Row[]}
 */
export function rowsOf(question, tally, { votes, answer, struck = false }) {
  const rounds = votes ? question.rounds || [] : [];
  const model = answer ? question.model || [] : [];
  const p = (/** @type {string} */ word) =>
    model.find((/** @type {any} */ each) => same(each[0], word))?.[1] ?? NaN;
  const typed = (/** @type {any[]} */ counts, /** @type {string} */ word) =>
    counts?.find(([other]) => same(other, word))?.[1] ?? 0;
  if (!question.free)
    return question.choices.map((/** @type {string} */ words, /** @type {number} */ at) => ({
      at,
      letter: LETTERS[at],
      words,
      picture: question.pictures?.[at] || "",
      n: votes ? (tally?.[at] ?? 0) : NaN,
      before: rounds.map((/** @type {number[]} */ each) => each[at] ?? 0),
      p: p(words),
      right: answer && at === question.right,
    }));
  const counts = votes ? [...(tally || []), ...rounds.flat()] : [];
  const words = [];
  for (const [word, , isStruck] of [...model.map((/** @type {any} */ [word]) => [word]), ...counts])
    if ((struck || !isStruck) && !words.some((each) => same(each, word))) words.push(word);
  return words.map((word, at) => ({
    at,
    letter: "",
    words: word,
    picture: "",
    n: votes ? typed(tally || [], word) : NaN,
    before: rounds.map((/** @type {any[]} */ each) => typed(each, word)),
    p: p(word),
    struck: counts.some(([other, , isStruck]) => isStruck && same(other, word)),
    right: answer && at === 0 && model.length > 0,
  }));
}

/** Strike what was typed, so that neither wall nor students show it, or take that back. @param {any} leads @param {Row} row */
function striking({ code, watch }, { words, struck }) {
  const label = say(struck ? "unstrike" : "strike", { word: words });
  return make(
    "button",
    {
      type: "button",
      class: "strike",
      title: label,
      "aria-label": label,
      data: { focus: `strike ${words}` },
      onclick: (/** @type {Event} */ event) => {
        event.stopPropagation(); // a press on the slide walks its picture
        send("strike", { code, watch, word: words, struck: !struck }).catch(() => {});
      },
    },
    struck ? "↺" : "×",
  );
}

/**
 * The rows as elements. `press` makes them buttons, `mine` is the answer of who reads; `leads` is the class of
 * who may strike what was typed.
 * @param {Row[]} rows
 * @param {{ mine?: any, note?: string, press?: (row: Row) => void, leads?: any }} [reader]
 */
export function answerList(rows, { mine, note = "", press, leads } = {}) {
  const most = Math.max(1, ...rows.flatMap(({ n, before }) => [n || 0, ...before]));
  const wide = (/** @type {number} */ share) => ({ style: { width: `${100 * share}%` } });
  const whole = (/** @type {Row} */ { before, n }) => [...before, n].join(" → ");
  const each = (/** @type {Row} */ row) => {
    const own = mine === row.at || (typeof mine === "string" && same(mine, row.words));
    const inside = [
      row.letter && make("span", "letter", row.letter),
      row.picture && patternPicture(row.picture, row.words),
      answer(row.words),
      own && note && make("span", "note", note),
      row.right && make("span", "note", "right ✓"),
      row.n >= 0 && make("span", "count", whole(row)),
      row.p >= 0 && make("span", "share", say("model", { p: tenths(100 * row.p) })),
      ...row.before.map((n) => make("span", { class: "bar before", ...wide(n / most) })),
      row.n >= 0 && make("span", { class: "bar", ...wide(row.n / most) }),
      row.p >= 0 && make("span", { class: "bar model", ...wide(row.p) }),
      leads?.watch && !row.letter && !(row.p >= 0) && striking(leads, row),
    ].filter(Boolean);
    const name = `choice${row.right ? " right" : ""}${row.struck ? " struck" : ""}`;
    if (!press) return make("div", name, ...inside);
    return make(
      "button",
      {
        type: "button",
        class: name,
        "aria-pressed": `${own}`,
        data: { focus: `choice ${row.at}` },
        onclick: () => press(row),
      },
      ...inside,
    );
  };
  const pictures = rows.some(({ picture }) => picture);
  return make(
    "div",
    { class: `choices${pictures ? " pictures" : ""}`, role: "group", "aria-label": "Answers" },
    ...rows.map(each),
  );
}
