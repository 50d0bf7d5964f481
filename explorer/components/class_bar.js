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
import { bus } from "./bus.js";
import { answerList, hasAnswer, rowsOf } from "./class_answers.js";
import { answered, isAsked, isOnStage, isPast, keepStep, takeAway } from "./class_step.js";
import { coverPage } from "./cover.js";
import { hear, make, mount, put, redraw } from "./mount.js";
import { spokenLine } from "./number_format.js";
import { patternPicture } from "./pattern_picture.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("class_bar");

export default mount("follow", style, (view) => {
  const { header, root } = view;
  if (!view.says) view.says = spokenLine("spoken");
  takesPart(header, (event) => !event.composedPath().includes(root));
  hear(view, (now) => {
    coverPage(now.lesson);
    keepStep(now);
    sendGuess(now);
    draw(view, now.lesson);
    // For who follows a class alone: others fetch no code for it.
    if (view.picture || pictureOf(now.lesson))
      import("./class_preview.js").then(({ board }) => board(view, now.lesson));
  });
});

/** What was guessed and sent last. @type {any} */
let sent;

/** Send a word that was guessed in a picture, once, where the class is asked for it. @param {Record<string, any>} now */
function sendGuess({ guessed, lesson }) {
  // One that is made before the class is asked waits for the question.
  if (!guessed || guessed === sent || !isAsked(lesson, guessed)) return;
  sent = guessed;
  answer(guessed.word).catch(({ message }) => guessed.failed(message));
}

/** Answer the question of the class: it is this student's answer for every view of the window. @param {number | string} choice */
async function answer(choice) {
  const { number } = bus.now.lesson;
  await send("answer", { number, choice });
  const { lesson } = bus.now;
  if (lesson?.number === number) bus.tell({ lesson: { ...lesson, mine: choice } });
}

/** @param {View} view @param {any} lesson */
function draw(view, lesson) {
  const left = lesson ? null : offered();
  const state = [lesson, left, view.sure, view.problem, view.folded, isInPicture(lesson)];
  const drawn = JSON.stringify(state);
  if (view.drawn === drawn) return;
  view.drawn = drawn;
  view.root.hidden = !lesson && !left;
  if (!lesson) {
    redraw(view, left ? [waiting(left)] : []);
    return makeRoom(view);
  }
  const parts = [panel(view, lesson), line(view, lesson), view.says];
  redraw(view, parts.filter(Boolean));
  makeRoom(view);
  speak(view, lesson);
}

/** The page ends above the bar, so that the foot of its last picture can be seen, and beside a question where the window has room for both. @param {View} view */
function makeRoom({ root }) {
  const { height } = root.getBoundingClientRect();
  const beside = root.querySelector(".panel:not(.folded)") ? "19rem" : "0px";
  const page = document.documentElement;
  put(page, { vars: { "class-bar": `${Math.ceil(height)}px`, "class-beside": beside } });
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
function speak(view, { at, alone, key, question, open, revealed, over, lost, cut }) {
  const page = String(at || "").split("?")[0];
  let message = over ? say("ended") : lost || cut ? say("lost") : "";
  const state = `${question?.text} ${question?.rounds?.length} ${open} ${revealed}`;
  if (!message && question && view.announced !== state) {
    message = open ? say("question", question) : revealed ? say("answer") : say("closed");
    view.announced = state;
  } else if (!message && !key && !alone && at !== view.at)
    message = say("moved", { page: view.header.pages[page] || say("another_page") });
  view.at = at;
  if (message && view.says.textContent !== message) view.says.textContent = message;
}

/** True where the picture of this window's own page asks what the class is asked. @param {any} lesson */
const isInPicture = (lesson) =>
  lesson?.open && !lesson.alone && isOnStage(lesson) && !bus.now.standsIn;

/** @param {View} view @param {any} lesson */
function line(view, lesson) {
  const { code, key, alone, over, lost, cut, behind, unfit, here, mine } = lesson;
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
            : isInPicture(lesson)
              ? say(typeof mine === "string" ? "answered" : "in_picture", { mine })
              : say("following");
  const buttons = key
    ? [...(isInPicture(lesson) ? onStage(lesson) : []), ...leading(view)]
    : [
        alone
          ? press("wander", say("return"), () => wander(false), "main")
          : press("wander", say("look_around"), () => wander(true)),
        press("leave", "Leave", leave),
      ];
  return make("div", "line", about, words(state), ...buttons);
}

/** What the teacher sees of a question that the class answers on the page. @param {any} lesson */
const onStage = (lesson) => [
  make("span", "votes", answered(lesson)),
  press("close", say("close_vote"), () => send("close"), "main"),
];

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
    const { recorded } = await import("./class_record.js");
    if (recorded()) go(desk()); // where what was asked can be taken along
  };
  return view.sure
    ? [press("end", say("end"), end, "main"), press("keep", "Go on", () => sure(false))]
    : [press("code", "Code", () => go(desk())), press("end", say("end_class"), () => sure(true))];
}

/** The question, where there is one. @param {View} view @param {any} lesson */
function panel(view, lesson) {
  const { question, open, revealed, number, mine, tally, key, over, at } = lesson;
  if (!question || over) return undefined;
  if (key && isPast(lesson)) return undefined;
  if (isInPicture(lesson)) return undefined; // where it is answered; the line has the votes
  // Folded, it leaves the page's picture in sight: where a press leads, and where the class goes on.
  const fold = (now) => {
    view.folded = now;
    view.answeredAt = at;
    draw(view, /** @type {any} */ (globalThis).headlight.lesson);
  };
  if (revealed && view.answered !== number)
    Object.assign(view, { answered: number, answeredAt: at });
  else if (revealed && view.answeredAt !== at)
    Object.assign(view, { folded: number, answeredAt: at });
  const about = { class: "panel", "aria-label": say("question_label") };
  if (revealed && view.folded === number)
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
  const choose = (choice) => {
    view.typed = view.problem = undefined;
    return answer(choice).catch(({ message }) => {
      view.problem = { number, message };
      draw(view, bus.now.lesson);
    });
  };
  const votes = open ? undefined : tally; // after the vote: they would lead those who have not answered
  const rows = rowsOf(question, votes, { votes: !open, answer: Boolean(revealed) });
  const words = question.free && open && !key ? question.choices : [];
  const list =
    rows.length > 0 &&
    answerList(rows, {
      mine: key ? undefined : mine,
      note: open ? say("your_answer") : "you",
      press: key || !open ? undefined : (row) => choose(row.at),
      leads: key ? lesson : undefined,
    });
  return make(
    "section",
    about,
    make("h2", { dir: "auto" }, question.text),
    question.head && patternPicture(question.head, question.text),
    words.length > 0 && offeredWords(words, mine, choose),
    question.free && open && !key && typing(view, lesson, choose),
    list,
    revealed && question.says && make("p", { class: "says", dir: "auto" }, question.says),
    make("div", "foot", ...(key ? teacherFoot(lesson, see) : studentFoot(view, lesson, see))),
  );
}

/** Words that a student may press in the place of typing one. @param {string[]} words @param {any} mine @param {(word: string) => void} answer */
const offeredWords = (words, mine, answer) =>
  make(
    "div",
    "offered",
    ...words.map((word) =>
      make(
        "button",
        {
          type: "button",
          "aria-pressed": `${word === mine}`,
          data: { focus: `word ${word}` },
          onclick: () => answer(word),
        },
        word,
      ),
    ),
  );

/** What a student is asked to type: a word or a sentence. @param {any} question */
const typed = ({ long }) => say(long ? "type_sentence" : "type_word");

/** Where a student types it; what was typed for another question is none for this one. @param {View} view @param {any} lesson @param {(word: string) => void} answer */
function typing(view, { question, number, mine }, answer) {
  const field = make(question.long ? "textarea" : "input", {
    "aria-label": typed(question),
    placeholder: typed(question),
    maxlength: question.long ? 200 : 40,
    ...(question.long ? { rows: 2 } : {}),
    autocomplete: "off",
    spellcheck: "false",
    data: { focus: "guess" },
    oninput: () => (view.typed = { number, text: field.value }),
  });
  field.value = (view.typed?.number === number ? view.typed.text : mine) ?? "";
  const form = make(
    "form",
    "guess",
    field,
    press("send guess", say("send_word"), () => {}, "main"),
  );
  field.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  };
  form.onsubmit = (event) => {
    event.preventDefault();
    if (field.value.trim()) answer(field.value.trim());
  };
  /** @type {HTMLButtonElement} */ (form.lastChild).type = "submit";
  return form;
}

/** @param {any} lesson @param {() => void} see */
function teacherFoot(lesson, see) {
  const { question, open, revealed } = lesson;
  return [
    make("span", "state", answered(lesson)),
    open && press("close", say("close_vote"), () => send("close"), "main"),
    !revealed && press("again", say("vote_again"), () => send("again")),
    !revealed &&
      hasAnswer(question) &&
      press("reveal", "Reveal", () => send("reveal"), open ? "" : "main"),
    revealed && question.to && !question.long && press("see", "See it", see, "main"),
    press("away", say("take_away"), () => takeAway(lesson).catch(() => {})),
  ];
}

/** @param {View} view @param {any} lesson @param {() => void} see */
function studentFoot(view, { question, open, revealed, mine, number }, see) {
  const done = mine !== null && mine !== undefined && mine !== -1;
  const asked = done ? say("may_change") : question.free ? typed(question) : say("choose");
  const words = open ? asked : revealed ? "" : say("closed");
  const { problem } = view;
  return [
    make("span", "state", problem?.number === number ? problem.message : words),
    revealed && question.to && !question.long && press("see", "See it", see),
  ];
}
