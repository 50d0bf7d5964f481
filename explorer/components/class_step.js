// @ts-check
// What a class is asked on a step of a lesson, and before the light of a flow is on: the words that students
// guess there are their votes. Such a vote is of its step, and ends where the teacher goes on. In type for the back
// row it is a slide after another: the question with the words that are offered, how many chose what after the
// vote, the answer with its reason.

import { bus } from "./bus.js";
import { requestedStep, where } from "./class_client.js";
import { send } from "./class_part.js";
import { hasAnswer, rowsOf, voters } from "./class_answers.js";
import { isRunning } from "./optimistic_updates.js";
import { sentences } from "./sentences.js";

const say = sentences("class");

const LONGEST = 600; // characters of a text of a question
const MOST = 6; // words that a guess may be chosen from
const LOOK = 60; // ms between two looks at a page that is on its way
const CALM = 3; // looks at a page at rest after which what it asks is its own

/** What this window has asked by itself, so that what its teacher takes away is not asked anew, and the question that it took away last. */
let [asked, gone] = ["", ""];
/** The looks at a page that asks. */
let [timer, calm] = [0, 0];

/** What was asked or taken away last. @type {Promise<any>} */
let turn = Promise.resolve();

/** Ask the class, or with null take its question away: one after another, so that the last one stands. @param {any} question @returns {Promise<any>} */
const ask = (question) => (turn = turn.catch(() => {}).then(() => send("ask", { question })));

/** What tells one question of a class from all others. @param {any} lesson */
const idOf = ({ code, number }) => `${code} ${number}`;

/** True where the window leads a class. @param {any} lesson */
const leads = (lesson) => Boolean(lesson?.key && !lesson.over);

/** What the step is called that this window is at, by its lesson and its place; "" where none is. */
const stepHere = () => bus.now.steps?.of || "";

/** Where this window is, of a step of a lesson with its number alone. @param {number | undefined} at */
function place(at) {
  if (at === undefined) return "";
  const [path, query] = where().split("?");
  const choices = new URLSearchParams(query);
  for (const name of ["lesson", "lesson_word"]) choices.delete(name);
  choices.set("lesson_step", `${at + 1}`);
  return `${path}?${choices}`;
}

/** The answers that a class chooses from, and which is right; none of words that it types. @param {{ options?: string, right?: string }} steps */
const toChoose = ({ options, right }) =>
  options
    ? { free: false, choices: options.split("\n"), right: Number(right) }
    : { free: true, long: true, choices: [] };

/** The question of a step, with answers to choose from or as one that a class answers in its own words. @param {any} steps */
const ofStep = ({ question, answer, at, of, ...more }) => ({
  text: question.slice(0, LONGEST),
  says: answer.slice(0, LONGEST),
  ...toChoose(more),
  to: place(at),
  of,
});

/** What a flow asks before its light is on. @param {{ text: string, words: string[] }} stage @param {any} steps */
const ofStage = ({ text, words }, steps) => ({
  text: text.slice(-LONGEST),
  free: true,
  choices: words.slice(0, MOST),
  to: place(steps?.at),
  of: stepHere(),
});

/**
 * Press a key of whoever leads a class: V asks the question of the step, or shows the votes, R reveals, A asks
 * once more, T takes the question away. False where it does nothing.
 * @param {string} key
 */
export function press(key) {
  const { lesson, steps, stage } = bus.now;
  if (!leads(lesson)) return false;
  const { open, revealed } = lesson;
  const question = isPast(lesson) ? undefined : lesson.question;
  const tell = (/** @type {Promise<any>} */ sent) => Boolean(sent.catch(() => {}));
  if (key === "t") return tell(takeAway(lesson));
  const ends = hasAnswer(question || {}) ? "reveal" : "close"; // nothing is revealed without an answer
  if (key !== "v" && question) return tell(send(key === "a" ? "again" : ends));
  if (question && open) return tell(send("close"));
  if (key !== "v" || (question && !revealed && hasAnswer(question))) return false;
  const isGuessed = stage?.words && !isOnStage(lesson);
  const next = isGuessed ? ofStage(stage, steps) : steps?.question && ofStep(steps);
  return next ? tell(ask(next)) : false;
}

/** What a class guessed, the most frequent words first, for the end where the answer is told: a sentence, and the words. @param {[string, number, true?][]} tally */
function guessed(tally) {
  const shown = tally.filter(([, , isStruck]) => !isStruck).slice(0, MOST);
  const words = shown.map(([word, n]) => say("times", { word, n })).join(", ");
  return { says: words && say("guessed", { words }), words: shown.map(([word]) => word) };
}

/** Take the question away; what was answered by then is on the record. @param {any} lesson */
export async function takeAway(lesson) {
  const { code, number, question, tally } = lesson;
  gone = idOf(lesson);
  const away = ask(null).catch((problem) => {
    gone = "";
    throw problem;
  });
  if (question && voters(tally)) {
    const { note } = await import("./class_record.js"); // for who leads a class alone
    note(code, { number, open: false, question, tally });
    if (!hasAnswer(question)) bus.tell({ guesses: { [question.text]: guessed(tally) } });
  }
  await away;
}

/** What tells a question that a flow asks from the same words on another step. @param {string} code @param {{ text: string }} stage */
const nameOf = (code, { text }) => JSON.stringify([code, stepHere(), text]);

/** True where a question is taken away, or the teacher has gone on from where it was asked: to another lesson, or to another of its steps. At the desk nobody has, nor while the page is on its way. @param {any} lesson */
export function isPast(lesson) {
  const { question, code } = lesson;
  if (!question) return false;
  if (idOf(lesson) === gone) return true;
  if (location.pathname.endsWith("/classroom")) return false;
  const { steps, stage } = bus.now;
  if (question.of) {
    const isComing = !steps && new URLSearchParams(location.search).get("lesson");
    return !isComing && question.of !== stepHere();
  }
  return asked === nameOf(code, question) && stage?.text !== question.text;
}

/** Look again at what the page asks; true once it is at rest, so that it is the page of this step. */
function isAtRest() {
  clearTimeout(timer);
  calm = requestedStep() === undefined && !isRunning() ? calm + 1 : 0;
  if (calm > CALM) return true;
  timer = setTimeout(() => keepStep(bus.now), LOOK);
  return false;
}

/** Hear what is true in this window: of who leads a class, what is asked by itself and what has passed. @param {Record<string, any>} now */
export function keepStep({ lesson, steps, stage: asks }) {
  if (!leads(lesson)) return;
  const stage = asks?.words && asks; // as soon as there are words to choose from
  const { question, code } = lesson;
  if (isPast(lesson)) {
    if (gone !== idOf(lesson)) takeAway(lesson).catch(() => {});
    return;
  }
  const own = stage ? nameOf(code, stage) : "";
  if (asked === own || (question && !isOnStage(lesson))) return;
  if (own && !question && !isAtRest()) return;
  [asked, calm] = [own, 0];
  if (own && !question) ask(ofStage(stage, steps)).catch(() => (asked = ""));
}

/** True where the question of a class is the one that a flow of this window asks, on this step; of which step it is, a student's window is not told. @param {any} lesson */
export const isOnStage = ({ question, key }) =>
  Boolean(question && bus.now.stage?.text === question.text) &&
  (!key || (question.of || "") === stepHere());

/** True where the class is asked what a flow asks. @param {any} lesson @param {{ word: string, text: string }} guessed */
export const isAsked = (lesson, { word, text }) =>
  Boolean(lesson?.open && !lesson.key && word && lesson.question.text === text);

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
