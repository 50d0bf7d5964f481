// @ts-check
// What a class is asked on a step of a lesson, and before the light of a flow is on: the words that students
// guess there are their votes. Such a vote is of its step, and ends where the teacher goes on.

import { bus } from "./bus.js";
import { here } from "./class_client.js";
import { send } from "./class_part.js";
import { voters } from "./class_answers.js";
import { sentences } from "./sentences.js";

const say = sentences("class");

const LONGEST = 600; // characters of a text of a question
const MOST = 6; // words that a guess may be chosen from
const STEP = "lesson_step"; // in an address

/** What this window has asked by itself, so that what its teacher takes away is not asked anew, and the number of the question that it took away last. */
let [asked, passed] = ["", 0];

/** True where the window leads a class. @param {any} lesson */
const leads = (lesson) => Boolean(lesson?.key && !lesson.over);

/** The step that a question was asked on, from 0; NaN for one that is of no step. @param {any} question */
const stepOf = (question) =>
  Number(new URLSearchParams(`${question?.to}`.split("?")[1]).get(STEP) || NaN) - 1;

/** True for a question that has an answer to be shown. @param {any} question */
export const hasAnswer = ({ free, says, model }) => Boolean(!free || says || model);

/** Where this window is, of a step of a lesson with its number alone. @param {number | undefined} at */
function place(at) {
  if (at === undefined) return "";
  const [path, query] = here().split("?");
  const choices = new URLSearchParams(query);
  for (const name of ["lesson", "lesson_word"]) choices.delete(name);
  choices.set(STEP, `${at + 1}`);
  return `${path}?${choices}`;
}

/** The answers that a class chooses from, and which is right; none of words that it types. @param {{ options?: string, right?: string }} steps */
const toChoose = ({ options, right }) =>
  options
    ? { free: false, choices: options.split("\n"), right: Number(right) }
    : { free: true, long: true, choices: [] };

/** The question of a step, with answers to choose from or as one that a class answers in its own words. @param {any} steps */
const ofStep = ({ question, answer, at, ...more }) => ({
  text: question.slice(0, LONGEST),
  says: answer.slice(0, LONGEST),
  ...toChoose(more),
  to: place(at),
});

/** What a flow asks before its light is on. @param {{ text: string, words: string[] }} stage @param {any} steps */
const ofStage = ({ text, words }, steps) => ({
  text: text.slice(-LONGEST),
  free: true,
  choices: words.slice(0, MOST),
  to: place(steps?.at),
});

/**
 * Press a key of whoever leads a class: V asks the question of the step, or shows the votes, R reveals, A asks
 * once more, X takes the question away. False where it does nothing.
 * @param {string} key
 */
export function press(key) {
  const { lesson, steps, stage } = bus.now;
  if (!leads(lesson)) return false;
  const { question, open, revealed } = lesson;
  const tell = (/** @type {Promise<any>} */ sent) => Boolean(sent.catch(() => {}));
  if (key === "x") return tell(takeAway(lesson));
  if (question && key !== "v") return tell(send(key === "a" ? "again" : "reveal"));
  if (question && open) return tell(send("close"));
  if (key !== "v" || (question && !revealed && hasAnswer(question))) return false;
  const isGuessed = stage?.words && question?.text !== stage.text;
  const next = isGuessed ? ofStage(stage, steps) : steps?.question && ofStep(steps);
  return next ? tell(send("ask", { question: next })) : false;
}

/** What a class guessed, the most frequent words first, for the end where the answer is told. @param {[string, number][]} tally */
function guessed(tally) {
  const words = tally.slice(0, MOST).map(([word, n]) => say("times", { word, n }));
  return say("guessed", { words: words.join(", ") });
}

/** Take the question away; what was answered by then is on the record. @param {any} lesson */
async function takeAway({ code, number, question, tally }) {
  if (question && voters(tally)) {
    const { note } = await import("./class_record.js"); // for who leads a class alone
    note(code, { number, open: false, question, tally });
    if (!hasAnswer(question)) bus.tell({ guesses: { [question.text]: guessed(tally) } });
  }
  await send("ask", { question: null });
}

/** True where the teacher has gone on from where a question was asked; at the desk nobody has. @param {any} lesson @param {any} stage */
function isPast({ question, code }, stage) {
  if (!question || location.pathname.endsWith("/classroom")) return false;
  const choices = new URLSearchParams(location.search);
  const now = choices.get("lesson") ? Number(choices.get(STEP) || 1) - 1 : NaN;
  const step = stepOf(question);
  if (step >= 0) return step !== now;
  return asked === `${code} ${question.text}` && stage?.text !== question.text;
}

/** Hear what is true in this window: of who leads a class, what is asked by itself and what has passed. @param {Record<string, any>} now */
export function keepStep({ lesson, steps, stage: asks }) {
  if (!leads(lesson)) return;
  const stage = asks?.words && asks; // as soon as there are words to choose from
  const { question, code, number } = lesson;
  if (isPast(lesson, stage)) {
    if (passed === number) return;
    passed = number;
    takeAway(lesson).catch(() => (passed = 0));
    return;
  }
  const own = stage ? `${code} ${stage.text}` : "";
  if (asked === own || (question && question.text !== stage?.text)) return;
  asked = own;
  if (own && !question) send("ask", { question: ofStage(stage, steps) }).catch(() => (asked = ""));
}

/** True where the question of a class is the one that a flow of this window asks: it is answered there. @param {any} lesson */
export const isOnStage = ({ question }) =>
  Boolean(question && bus.now.stage?.text === question.text);

/** Send the word that was guessed before the light of a flow, where that is what the class is asked. @param {string} word @returns {Promise<any> | undefined} */
export function guess(word) {
  const { lesson } = bus.now;
  if (!lesson?.open || lesson.key || !word || !isOnStage(lesson)) return undefined;
  return send("answer", { number: lesson.number, choice: word });
}
