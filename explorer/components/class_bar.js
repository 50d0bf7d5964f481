// @ts-check
// The line at the foot of the window for whoever takes part in a class, and above it the question
// that the class is asked.

import style from "./class_bar.css.js";
import {
  desk,
  forget,
  go,
  offered,
  part,
  pictureOf,
  putAside,
  resume,
  send,
  spelled,
  takePart,
  takesPart,
  wander,
} from "./class_client.js";
import { answered } from "./class_slide.js";
import { hear, make, mount, redraw } from "./mount.js";
import { spokenLine } from "./number_format.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("class_bar");

export default mount("follow", style, (view) => {
  const { header, root } = view;
  if (!view.says) view.says = spokenLine("spoken");
  takesPart(header, (event) => !event.composedPath().includes(root));
  hear(view, (now) => {
    draw(view, now.lesson);
    // For who follows a class alone: others fetch no code for it.
    if (view.picture || pictureOf(now.lesson))
      import("./class_preview.js").then(({ board }) => board(view, now.lesson));
  });
});

/** @param {View} view @param {any} lesson */
function draw(view, lesson) {
  const left = lesson ? null : offered();
  const drawn = JSON.stringify([lesson, left, view.sure, view.problem, view.folded]);
  if (view.drawn === drawn) return;
  view.drawn = drawn;
  view.root.hidden = !lesson && !left;
  if (!lesson) return redraw(view, left ? [waiting(left)] : []);
  const parts = [panel(view, lesson), line(view, lesson), view.says];
  redraw(view, parts.filter(Boolean));
  speak(view, lesson);
}

/** A class that this browser leads, in a window that does not lead it. @param {import("./class_client.js").Part} left */
const waiting = (left) =>
  make(
    "div",
    "line",
    make("span", "code", say("class", { code: spelled(left.code) })),
    make("span", "state", say("started")),
    press("resume", say("resume"), () => resume(left), "main"),
    press("aside", "Not here", () => putAside(left.code)),
  );

/** @param {string} name @param {string} label @param {() => void} onclick */
const press = (name, label, onclick, kind = "") =>
  make("button", { type: "button", class: kind, data: { focus: name }, onclick }, label);

/** What those hear who do not see it. @param {View} view @param {any} lesson */
function speak(view, { at, alone, key, question, open, over, lost, cut }) {
  const page = String(at || "").split("?")[0];
  let message = over ? say("ended") : lost || cut ? say("lost") : "";
  if (!message && question && view.announced !== `${question.text}${open}`) {
    message = open ? say("question", question) : say("answer");
    view.announced = `${question.text}${open}`;
  } else if (!message && !key && !alone && at !== view.at)
    message = say("moved", { page: view.header.pages[page] || say("another_page") });
  view.at = at;
  if (message && view.says.textContent !== message) view.says.textContent = message;
}

/** @param {View} view @param {any} lesson */
function line(view, lesson) {
  const { code, key, alone, over, lost, cut, behind, unfit, here } = lesson;
  const about = make("span", "code", say("class", { code: spelled(code) }));
  const leave = () => takePart(null);
  const words = (text) => make("span", "state", text);
  if (over)
    return make("div", "line", about, words(say("has_ended")), press("leave", "Close", leave));
  const state =
    lost || cut
      ? say("trying")
      : key
        ? unfit
          ? say("too_long")
          : say("leading", { here: here ?? 0 })
        : alone
          ? say("alone")
          : behind
            ? say("behind")
            : say("following");
  const buttons = key
    ? leading(view)
    : [
        alone
          ? press("wander", say("return"), () => wander(false), "main")
          : press("wander", say("look_around"), () => wander(true)),
        press("leave", "Leave", leave),
      ];
  return make("div", "line", about, words(state), ...buttons);
}

/** @param {View} view */
function leading(view) {
  const sure = (yes) => {
    view.sure = yes;
    draw(view, /** @type {any} */ (globalThis).headlight.lesson);
  };
  const end = async () => {
    sure(false);
    const code = part()?.code || "";
    await send("end").catch(() => {});
    forget(code);
    takePart(null);
  };
  return view.sure
    ? [press("end", say("end"), end, "main"), press("keep", "Go on", () => sure(false))]
    : [press("code", "Code", () => go(desk())), press("end", "End", () => sure(true))];
}

/** The question, where there is one. @param {View} view @param {any} lesson */
function panel(view, { question, open, number, mine, tally: counted, here, key, over }) {
  if (!question || over) return undefined;
  const tally = open ? undefined : counted; // after the vote: it would lead those who have not answered
  const most = Math.max(1, ...(tally || []));
  const answer = (choice) =>
    send("answer", { number, choice }).then(
      () => afterAnswer(view, choice, ""),
      (problem) => afterAnswer(view, mine, problem.message),
    );
  // Folded, it leaves the page's picture in sight.
  const fold = (now) => {
    view.folded = now;
    draw(view, /** @type {any} */ (globalThis).headlight.lesson);
  };
  const about = { class: "panel", "aria-label": say("question_label") };
  if (!open && view.folded === number)
    return make(
      "section",
      { ...about, class: "panel folded" },
      make("span", { class: "asked", dir: "auto", title: question.text }, question.text),
      press("see", "Question", () => fold(undefined)),
    );
  const see = () => {
    fold(number);
    if (!key) wander(true);
    go(question.to);
  };
  const choices = question.choices.map((words, at) => {
    const marks = [
      mine === at && !key && make("span", "note", open ? say("your_answer") : "you"),
      at === question.right && (key ? !open : true) && make("span", "note", "right ✓"),
    ];
    const bar =
      tally && make("span", { class: "bar", style: { width: `${(100 * tally[at]) / most}%` } });
    const right = at === question.right && !open ? " right" : "";
    const inside = [
      make("span", "letter", "ABCDEF"[at]),
      make("span", { class: "words", dir: "auto" }, words),
      ...marks,
      tally && make("span", "count", `${tally[at]}`),
      bar,
    ];
    return key || !open
      ? make("div", `choice${right}`, ...inside)
      : make(
          "button",
          {
            type: "button",
            class: "choice",
            "aria-pressed": `${mine === at}`,
            data: { focus: `choice ${at}` },
            onclick: () => answer(at),
          },
          ...inside,
        );
  });
  const foot = key
    ? [
        make("span", "state", answered({ tally: counted, here })),
        open && press("reveal", "Reveal", () => send("reveal"), "main"),
        !open && question.to && press("see", "See it", see, "main"),
        press("away", say("take_away"), () => send("ask", { question: null })),
      ]
    : [
        make(
          "span",
          "state",
          view.problem ||
            (open ? (mine >= 0 && mine !== null ? say("may_change") : say("choose")) : ""),
        ),
        !open && question.to && press("see", "See it", see),
      ];
  return make(
    "section",
    about,
    make("h2", { dir: "auto" }, question.text),
    make("div", { class: "choices", role: "group", "aria-label": "Answers" }, ...choices),
    !open && question.says && make("p", { class: "says", dir: "auto" }, question.says),
    make("div", "foot", ...foot),
  );
}

/** What became of an answer. @param {View} view @param {any} mine @param {string} problem */
function afterAnswer(view, mine, problem) {
  view.problem = problem;
  const lesson = /** @type {any} */ (globalThis).headlight.lesson;
  if (lesson) lesson.mine = mine;
  draw(view, lesson);
}
