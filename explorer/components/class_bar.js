// @ts-check
// The line at the foot of the window for whoever takes part in a class, and above it the question
// that the class is asked.

import style from "./class_bar.css.js";
import {
  DESK,
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

/** @typedef {import("./mount.js").View} View */

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
  const shown = JSON.stringify([lesson, left, view.sure, view.problem]);
  if (view.shown === shown) return;
  view.shown = shown;
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
    make("span", "code", `Class ${spelled(left.code)}`),
    make("span", "state", "you started this class"),
    press("resume", "Go on with it here", () => resume(left), "main"),
    press("aside", "Not here", () => putAside(left.code)),
  );

/** @param {string} name @param {string} label @param {() => void} onclick */
const press = (name, label, onclick, kind = "") =>
  make("button", { type: "button", class: kind, data: { focus: name }, onclick }, label);

/** What those hear who do not see it. @param {View} view @param {any} lesson */
function speak(view, { at, alone, key, asked, open, over, lost, cut }) {
  const page = String(at || "").split("?")[0];
  let said = over
    ? "The class has ended."
    : lost || cut
      ? "The connection to the class is lost."
      : "";
  if (!said && asked && view.told !== `${asked.text}${open}`) {
    said = open ? `A question: ${asked.text}` : "The answer is shown.";
    view.told = `${asked.text}${open}`;
  } else if (!said && !key && !alone && at !== view.at)
    said = `The class is at ${view.header.pages[page] || "another page"}.`;
  view.at = at;
  if (said && view.says.textContent !== said) view.says.textContent = said;
}

/** @param {View} view @param {any} lesson */
function line(view, lesson) {
  const { code, key, alone, over, lost, cut, behind, unfit, here } = lesson;
  const about = make("span", "code", `Class ${spelled(code)}`);
  const leave = () => takePart(null);
  const words = (text) => make("span", "state", text);
  if (over) return make("div", "line", about, words("has ended"), press("leave", "Close", leave));
  const state =
    lost || cut
      ? "connection lost, trying again …"
      : key
        ? unfit
          ? "this text is too long for a link: the class stays where it was"
          : `you lead · ${here ?? 0} here`
        : alone
          ? "you look around by yourself"
          : behind
            ? "your teacher’s page is on its way …"
            : "you follow your teacher";
  const buttons = key
    ? leading(view)
    : [
        alone
          ? press("wander", "Return to the class", () => wander(false), "main")
          : press("wander", "Look around", () => wander(true)),
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
    ? [press("end", "End it for all", end, "main"), press("keep", "Go on", () => sure(false))]
    : [press("code", "Code", () => go(DESK)), press("end", "End", () => sure(true))];
}

/** The question, where there is one. @param {View} view @param {any} lesson */
function panel(view, { asked, open, number, mine, tally: counted, here, key, over }) {
  if (!asked || over) return undefined;
  const tally = open ? undefined : counted; // after the vote: it would lead those who have not answered
  const most = Math.max(1, ...(tally || []));
  const answer = (choice) =>
    send("answer", { number, choice }).then(
      () => said(view, choice, ""),
      (problem) => said(view, mine, problem.message),
    );
  const choices = asked.choices.map((words, at) => {
    const marks = [
      mine === at && !key && make("span", "note", open ? "your answer" : "you"),
      at === asked.right && (key ? !open : true) && make("span", "note", "right ✓"),
    ];
    const bar =
      tally && make("span", { class: "bar", style: { width: `${(100 * tally[at]) / most}%` } });
    const right = at === asked.right && !open ? " right" : "";
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
        !open && asked.to && press("see", "See it", () => go(asked.to), "main"),
        press("away", "Take it away", () => send("ask", { question: null })),
      ]
    : [
        make(
          "span",
          "state",
          view.problem ||
            (open
              ? mine >= 0 && mine !== null
                ? "You may still change it."
                : "Choose an answer."
              : ""),
        ),
        !open && asked.to && press("see", "See it", () => (wander(true), go(asked.to))),
      ];
  return make(
    "section",
    { class: "panel", "aria-label": "A question to the class" },
    make("h2", { dir: "auto" }, asked.text),
    make("div", { class: "choices", role: "group", "aria-label": "Answers" }, ...choices),
    !open && asked.says && make("p", { class: "says", dir: "auto" }, asked.says),
    make("div", "foot", ...foot),
  );
}

/** What became of an answer. @param {View} view @param {any} mine @param {string} problem */
function said(view, mine, problem) {
  view.problem = problem;
  const lesson = /** @type {any} */ (globalThis).headlight.lesson;
  if (lesson) lesson.mine = mine;
  draw(view, lesson);
}
