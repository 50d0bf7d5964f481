// @ts-check
// The question of a class in type for the back row, one step after another: the question, the tally
// after the vote, the answer.

import { sentences } from "./sentences.js";

const say = sentences("class");

const LETTERS = "ABCDEF";

/** @param {number[] | undefined} tally */
const sum = (tally) => (tally || []).reduce((a, b) => a + b, 0);

/**
 * How many of those who are here have answered. @param {{ tally?: number[], here?: number }} lesson
 */
export const answered = ({ tally, here }) =>
  say("answered", { n: sum(tally), here: Math.max(here ?? 0, sum(tally)) });

/**
 * The step that a class's question is at, as a slide; undefined where its teacher asks none.
 * @param {any} lesson
 * @param {boolean} withAnswer whether the right answer is marked
 * @returns {{ says: string, caption: string, figures: any[] } | undefined}
 */
export function questionSlide(lesson, withAnswer) {
  const { key, over, question, open, tally } = lesson || {};
  if (!key || over || !question) return undefined;
  const plain = { title: "", note: "", select: [], keys: [], selected: -1 };
  const words = question.choices.map((each, at) => `${LETTERS[at]}  ${each}`);
  if (open) {
    const rows = words.map((each) => [each]);
    const list = { ...plain, kind: "texttable", columns: [""], rows };
    return { says: question.text, caption: answered(lesson), figures: [list] };
  }
  const rows = words.map((label, at) => ({
    label,
    values: [tally?.[at] ?? 0],
    texts: [`${tally?.[at] ?? 0}${withAnswer && at === question.right ? " ✓" : ""}`],
    selected: withAnswer && at === question.right,
    key: "",
    outline: null,
    start: 0,
  }));
  const bars = {
    ...plain,
    kind: "bars",
    columns: [""],
    rows,
    high: null,
    shared: false,
    mark: null,
    header: "",
  };
  const all = sum(tally);
  const caption = withAnswer
    ? question.says || ""
    : say(all === 1 ? "one_answer" : "answers", { n: all });
  return { says: question.text, caption, figures: [bars] };
}
