// @ts-check
// What a class was asked and how it answered, in its teacher's browser alone: counts, and nothing of who gave
// them. It leaves as a table and as a page.

import { bus } from "./bus.js";
import { ROOT } from "./class_part.js";
import { rowsOf, voters } from "./class_answers.js";
import { tenths } from "./number_format.js";
import { sentences } from "./sentences.js";

const say = sentences("class_record");

const NAME = "headlight class record";
const MOST = 200; // questions of a class
// What spreadsheets take for a formula, with what they skip before it.
const FORMULA = /^'*[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^'*[\t\r\n]/;

/** `lesson`: the choices that name the lesson in the address of its step. @typedef {{ number: number, question: any, tally: any[], lesson?: Record<string, string> }} Asked */
/** @typedef {{ code: string, day: string, asked: Asked[] }} Kept */

/** The record of the last class that this browser led. @returns {Kept | null} */
export function recorded() {
  try {
    const kept = JSON.parse(localStorage.getItem(NAME) || "null");
    return kept?.asked?.length ? kept : null;
  } catch {
    return null;
  }
}

/** No record any more. */
export const forgetRecord = () => localStorage.removeItem(NAME);

/** What names the lesson of a step that this window is at, which no student is told; undefined elsewhere. @param {any} question */
function lessonOf({ of }) {
  if (!of || bus.now.steps?.of !== of) return undefined;
  const here = new URLSearchParams(location.search);
  const { lesson_step: step, ...names } = Object.fromEntries(
    [...here].filter(([name]) => name.startsWith("lesson")),
  );
  return names;
}

/** @param {Kept} kept */
function keep(kept) {
  try {
    localStorage.setItem(NAME, JSON.stringify(kept));
  } catch {
    // a browser that keeps nothing has no record
  }
}

/** The model's words for what was asked, the likeliest first, with their probabilities. @param {string} text of the question @param {[string, number][]} model */
export function noteModel(text, model) {
  const kept = recorded();
  if (!kept) return;
  for (const { question } of kept.asked) if (question.text === text) question.model = model;
  keep(kept);
}

/**
 * Note what a teacher's line says of a class: a question from the end of its vote on. A second vote stands in
 * the place of the first, which it holds.
 * @param {string} code
 * @param {{ number: number, open: boolean, question: any, tally?: any[] }} seen
 */
export function note(code, { number, open, question, tally }) {
  if (!question || open || !tally) return;
  const before = recorded();
  const kept =
    before?.code === code
      ? before
      : { code, day: new Date().toISOString().slice(0, 10), asked: [] };
  const rounds = question.rounds?.length || 0;
  const isBefore = (/** @type {Asked} */ each) =>
    each.number === number ||
    (each.question.text === question.text && each.number >= number - rounds);
  const lesson = lessonOf(question) || kept.asked.find(isBefore)?.lesson;
  const others = kept.asked.filter((each) => !isBefore(each));
  keep({ ...kept, asked: [...others, { number, question, tally, lesson }].slice(-MOST) });
}

/** The rows of a question as they are at its end. @param {Asked} asked @param {boolean} [struck] also words that the teacher struck */
const rows = ({ question, tally }, struck = false) =>
  rowsOf(question, tally, { votes: true, answer: true, struck });

/** The address of what a question is about, with the lesson that it is of. @param {Asked} asked */
function link({ question: { to }, lesson = {} }) {
  if (!to) return "";
  const at = new URL(to.replace(/^\/+/, ""), ROOT);
  for (const [name, word] of Object.entries(lesson)) at.searchParams.set(name, word);
  return `${at}`;
}

/** @param {any} value */
function cell(value) {
  const text = typeof value === "string" && FORMULA.test(value) ? `'${value}` : `${value}`;
  return /[",\r\n;]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** True for a question of which is known what is right. @param {any} question */
const hasRight = ({ free, model }) => !free || Boolean(model?.length);

/** One line an answer: the question, the answer, who chose it in each vote, what is right. @param {Kept} kept */
export function csv({ asked }) {
  const most = Math.max(1, ...asked.map(({ question }) => 1 + (question.rounds?.length || 0)));
  const votes = [...Array(most).keys()].map((at) => `vote ${at + 1}`);
  const heads = ["question", "asked", "letter", "answer", "right", ...votes, "probability"];
  const lines = [[...heads, "reason", "address", "struck"]];
  asked.forEach((each, at) => {
    for (const row of rows(each, true)) {
      const counts = [...row.before, row.n];
      const numbers = votes.map((_, k) => counts[k] ?? "");
      const p = row.p >= 0 ? row.p : "";
      const { text, says } = each.question;
      const right = hasRight(each.question) ? Number(row.right) : ""; // nobody said what is right
      const about = [at + 1, text, row.letter, row.words, right];
      lines.push([...about, ...numbers, p, says, link(each), row.struck ? 1 : ""]);
    }
  });
  return `\ufeff${lines.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** @param {any} text */
const escaped = (text) =>
  `${text}`.replace(/[&<>"]/g, (sign) => `&#${/** @type {number} */ (sign.codePointAt(0))};`);

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; color: #1f1b16; background: #fff; max-width: 46rem;
  margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; } section { break-inside: avoid; }
table { border-collapse: collapse; width: 100%; } td { padding: 0.2rem 0.5rem; vertical-align: top; }
td:nth-child(n + 3) { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
th { text-align: right; font-size: 0.8rem; font-weight: 400; padding: 0 0.5rem; }
.right { font-weight: 650; } .bar { width: 8rem; } .bar i { display: block; height: 0.7rem; background: #b45309; }
.bar .first { background: #d9c9b4; } .says { margin: 0.4rem 0.5rem; } a { color: #9a4a06; }`;

/** A page that asks for nothing from elsewhere. @param {Kept} kept */
export function page({ code, day, asked }) {
  const questions = asked.map((each, at) => {
    const all = rows(each);
    const most = Math.max(1, ...all.flatMap(({ n, before }) => [n, ...before]));
    const rounds = all[0]?.before.length || 0;
    const bar = (/** @type {number} */ n, /** @type {boolean} */ first) =>
      `<i${first ? ' class="first"' : ""} style="width:${(100 * n) / most}%"></i>`;
    const hasModel = all.some(({ p }) => p >= 0);
    const heads = [
      ...[...Array(rounds + 1).keys()].map((k) => escaped(say("vote", { n: k + 1 }))),
      ...(hasModel ? [escaped(say("model"))] : []),
    ];
    const lines = all.map(
      ({ letter, words, right, before, n, p }) =>
        `<tr${right ? ' class="right"' : ""}><td>${letter}</td><td>${escaped(words)}${right ? " ✓" : ""}</td>` +
        [...before, n].map((count) => `<td>${count}</td>`).join("") +
        (hasModel ? `<td>${p >= 0 ? tenths(100 * p) : ""}</td>` : "") +
        `<td class="bar">${before.map((count) => bar(count, true)).join("")}${bar(n, false)}</td></tr>`,
    );
    const { text, says } = each.question;
    const to = link(each);
    return (
      `<section><h2>${at + 1}. ${escaped(text)}</h2><table><tr><th></th><th></th>` +
      `${heads.map((head) => `<th>${head}</th>`).join("")}<th></th></tr>${lines.join("")}</table>` +
      `<p class="says">${escaped(says || "")} ${to ? `<a href="${escaped(to)}">${escaped(say("see"))}</a>` : ""}</p></section>`
    );
  });
  const answers = asked.reduce((sum, { tally }) => sum + voters(tally), 0);
  const title = escaped(say("title", { day }));
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
    `<title>${title}</title><style>${STYLE}</style></head><body><h1>${title}</h1>` +
    `<p>${escaped(say("about", { code, n: asked.length, answers }))}</p>${questions.join("")}</body></html>`
  );
}
