// @ts-check
// Questions on a text: choose an answer, see what is right, go to where it is seen; or ask a class.

import { go, send } from "./class_client.js";
import { hear, make, mount, redraw } from "./mount.js";
import style from "./quiz.css.js";
import { spokenLine } from "./number_format.js";
import { patternPicture } from "./pattern_picture.js";
import { sentences } from "./sentences.js";
import { answer } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("quiz");

const LETTERS = "ABCDEF";

export default mount("questions", style, (view) => {
  if (!view.says) view.says = spokenLine("score");
  const { token, answered, items } = view.header;
  if (token !== view.of) Object.assign(view, { of: token, answers: given(answered, items) });
  hear(view, (now) => {
    const { key, over, number, question, open } = now.lesson || {};
    const leads = key && !over ? { question: question?.text, open, number } : null;
    const state = JSON.stringify([view.of, leads, view.look?.key]);
    if (view.drawn === state) return;
    Object.assign(view, { drawn: state, leads });
    draw(view);
  });
});

/** Answers by their question, from a letter for each. @param {string} letters @param {any[]} items */
function given(letters, items) {
  const all = [...letters].map((letter, at) => [at, LETTERS.indexOf(letter)]);
  return Object.fromEntries(all.filter(([at, k]) => k >= 0 && k < items[at]?.choices.length));
}

/** Keep the answers in the address: the score stands in a link. @param {View} view */
function keep(view) {
  const all = view.header.items.map((_, at) => LETTERS[view.answers[at]] || "-");
  view.send("answered", all.join(""));
}

/** @param {View} view */
function draw(view) {
  const { header, answers, says } = view;
  const cards = header.items.map((item, at) => card(view, item, at));
  redraw(view, [says, make("ol", "", ...cards)]);
  const done = Object.keys(answers).length;
  const right = header.items.filter((item, at) => answers[at] === item.right).length;
  says.textContent = done
    ? `${right} of ${done} right${done < header.items.length ? `, ${header.items.length - done} to go` : ""}.`
    : "";
}

/** @param {View} view @param {any} item @param {number} at */
function card(view, item, at) {
  const chosen = view.answers[at];
  const answered = chosen !== undefined;
  const choices = item.choices.map((words, k) => {
    const right = answered && k === item.right;
    const wrong = answered && k === chosen && !right;
    const mark = right ? "right ✓" : wrong ? say("wrong") : "";
    return make(
      "button",
      {
        type: "button",
        class: right ? "right" : wrong ? "wrong" : "",
        "aria-pressed": `${k === chosen}`,
        data: { focus: `${at} ${k}` },
        onclick: () => {
          if (!answered) {
            view.answers[at] = k;
            keep(view);
          }
          draw(view);
        },
      },
      make("span", "letter", LETTERS[k]),
      item.pictures[k] && patternPicture(item.pictures[k], words),
      answer(words),
      answered && item.measured[k] && make("span", "measured", item.measured[k]),
      mark && make("span", "mark", mark),
    );
  });
  const see = make(
    "a",
    { class: "see", href: `.${item.to}`, data: { focus: `see ${at}` } },
    "See it",
  );
  see.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(item.to);
  };
  const { measured, ...question } = item;
  const now = view.leads?.question === item.text;
  const asks = (/** @type {string} */ name, /** @type {string} */ label, /** @type {any} */ more) =>
    make(
      "button",
      {
        type: "button",
        class: "ask",
        data: { focus: `${name} ${at}` },
        onclick: () => send("ask", { question: { ...question, ...more } }),
      },
      label,
    );
  return make(
    "li",
    { "aria-label": say("question", { n: at + 1 }) },
    make("h2", { dir: "auto" }, item.text),
    item.head && patternPicture(item.head, item.text),
    make(
      "div",
      {
        class: `choices${item.pictures.length ? " pictures" : ""}`,
        role: "group",
        "aria-label": "Answers",
      },
      ...choices,
    ),
    make(
      "div",
      "foot",
      answered && make("p", { role: "status", dir: "auto" }, item.says),
      answered && see,
      view.leads && item.covers && asks("ask word", say("ask_word"), { free: true }),
      view.leads && asks("ask", now ? "Asked" : say("ask"), {}),
    ),
  );
}
