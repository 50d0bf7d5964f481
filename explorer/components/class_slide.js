// @ts-check
// The question of a class in type for the back row, one step after another: the question with the words that
// are offered, how many chose what after the vote, the answer with its reason.

import { bus } from "./bus.js";
import { rowsOf, voters } from "./class_answers.js";
import { isOnStage } from "./class_step.js";
import { sentences } from "./sentences.js";

const say = sentences("class");

export const [ASKED, VOTES, ANSWER] = [0, 1, 2]; // the steps of a question

/**
 * How many of those who are here have answered. @param {{ tally?: any[], here?: number }} lesson
 */
export const answered = ({ tally, here }) =>
  say("answered", { n: voters(tally), here: Math.max(here ?? 0, voters(tally)) });

/** The step that a class's question is at. @param {any} lesson */
export const stepOf = ({ open, revealed }) => (open ? ASKED : revealed ? ANSWER : VOTES);

/**
 * A step of a class's question as a slide; undefined where its teacher asks none.
 * @param {any} lesson
 * @param {number} step
 * @returns {{ says: string, asks: string, caption: string, words: string[], rows: import("./class_answers.js").Row[], pattern?: string } | undefined}
 */
export function questionSlide(lesson, step) {
  const { key, over, question, tally } = lesson || {};
  if (!key || over || !question) return undefined;
  const rows = rowsOf(question, tally, { votes: step >= VOTES, answer: step >= ANSWER });
  const n = voters(tally);
  const counted = say(n === 1 ? "one_answer" : "answers", { n });
  const caption = step === ASKED ? answered(lesson) : counted;
  const words = step === ASKED && question.free ? question.choices : [];
  const asks = step === ANSWER ? question.says : "";
  const { stage } = bus.now;
  if (isOnStage(lesson)) return { says: stage.asks, asks: stage.line, caption, rows, words };
  return { says: question.text, asks, caption, rows, words, pattern: question.head };
}
