// @ts-check
// The speaker's window: what the wall shows, note, question and answer of the step, the step that comes, the
// clock with the lesson's plan, the votes and the code of the class. It draws what the window on the wall tells
// it (speaker_wall.js), pictures as images alone, and sends the keys that are pressed here back to it.

import { answerList, hasAnswer, rowsOf, voters } from "./class_answers.js";
import { CHANNEL, PICTURE, ROOT, codePicture, spelled, wayIn } from "./class_part.js";
import { plainKey } from "./keys.js";
import { make, put, redraw } from "./mount.js";
import { spokenLine } from "./number_format.js";
import style from "./speaker.css.js";
import { sentences } from "./sentences.js";
import { dressed } from "./svg_export.js";
import { lettered } from "./terms.js";

/** @typedef {import("./speaker_wall.js").Shown} Shown */

const say = sentences("speaker");
const bar = sentences("class_bar");
const classroom = sentences("classroom");

const KEYS = {
  ArrowLeft: "<",
  PageUp: "<",
  ArrowRight: ">",
  PageDown: ">",
  ArrowUp: "u",
  ArrowDown: "d",
  " ": ">",
};
const PRESSED = "0abfgpqrtv"; // keys that are pressed as they are
const MINUTE = 60_000;
const LATER = 1500; // ms after which what was not answered is asked once more
const TRIES = 5;

// A phone's address ends on the code of the class and the teacher's word, which no server is told with it.
const [code = "", watch = ""] = location.hash.slice(1).split(".");
const channel = watch ? undefined : new BroadcastChannel(CHANNEL);

const root = /** @type {HTMLElement} */ (document.querySelector(".speaker"));
const view = /** @type {import("./mount.js").View} */ (/** @type {unknown} */ ({ root }));
const heard = spokenLine("announced");
/** @type {{ shown?: Shown, lesson?: any, says: string, picture: string, slide: string, showsCode?: boolean }} */
const own = { says: say("waits"), picture: "", slide: "" };

document.head.append(make("style", "", style));

// ---- what is heard ------------------------------------------------------------------------------

const COLOUR = /^#[0-9a-f]{3,8}$/i;

/** @param {Shown} shown of the wall; on a phone, what whoever leads the class has sent */
async function show(shown) {
  const { head } = own.shown?.slide || {};
  own.shown = shown;
  own.says = "";
  draw();
  if (shown.slide && shown.slide.head !== head) heard.textContent = shown.slide.head;
  const svg = `${shown.slide?.svg || ""}`;
  if (svg === own.slide) return;
  own.slide = svg;
  own.picture = "";
  const picture = svg && (await dressed(svg));
  if (own.slide !== svg) return;
  own.picture = picture;
  draw();
}

const opened = Date.now() + Math.random();

if (channel) {
  channel.onmessage = ({ data }) => {
    if (data.asks) return data.asks > opened && window.close(); // one that is opened later takes its place
    const isSame = !own.shown || own.shown.wall === data.wall;
    if (data.gone && isSame) says(say("closed"));
    else if (data.wall && !data.gone && (isSame || data.on || own.says)) show(data);
  };
  const ask = (/** @type {number} */ tries) => {
    channel.postMessage({ asks: opened });
    if (tries) setTimeout(() => own.shown || ask(tries - 1), LATER);
  };
  ask(TRIES);
} else if (code) hearClass();

/** The news of the class, whose wall is elsewhere. */
function hearClass() {
  const at = new URL("class/news", ROOT);
  at.search = `${new URLSearchParams({ code, as: watch })}`;
  const line = new EventSource(at);
  line.onerror = () => {
    if (line.readyState !== EventSource.CLOSED) return says(say("lost"));
    setTimeout(hearClass, LATER); // what the browser gives up is asked for again
  };
  line.onmessage = async ({ data }) => {
    const seen = JSON.parse(data);
    if (seen.over) {
      line.close();
      return says(say("over"));
    }
    own.lesson = { ...seen, code, watch };
    if (own.says === say("lost")) own.says = "";
    if (seen.slide) fetched(seen.slide);
    draw();
  };
}

/** @type {string} the slide that was fetched last */
let had = "";

/** What the wall shows, as the class has it; nothing where the wall has gone on meanwhile. @param {string} name */
async function fetched(name) {
  if (had === name) return;
  had = name;
  const at = new URL("class/slide", ROOT);
  at.search = `${new URLSearchParams({ code, as: watch, name })}`;
  const answer = await fetch(at).catch(() => undefined);
  if (had !== name) return;
  if (answer?.status === 200) {
    const plain = answer.body?.pipeThrough(new DecompressionStream("gzip"));
    const shown = await new Response(plain).json();
    if (had === name) show(shown);
  } else if (answer?.status !== 204) {
    had = "";
    setTimeout(() => had || fetched(name), LATER);
  }
}

/** @param {string} words in the place of the slide */
function says(words) {
  Object.assign(own, { says: words });
  draw();
}

// ---- what is pressed ----------------------------------------------------------------------------

/** @param {string} key of the window on the wall */
function press(key) {
  if (channel) return channel.postMessage({ wall: own.shown?.wall, press: key });
  fetch(new URL("class/press", ROOT), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code, watch, press: key }),
  }).catch(() => says(say("lost")));
}

addEventListener("keydown", (event) => {
  if (!plainKey(event)) return;
  const target = /** @type {Element} */ (event.composedPath()[0]);
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (name === " " && target.closest?.("button")) return;
  const key =
    KEYS[/** @type {keyof typeof KEYS} */ (event.key)] || (PRESSED.includes(name) ? name : "");
  if (!key) return;
  event.preventDefault();
  press(key);
});

/** @param {string} key @param {string} label @param {string} [kind] @param {string} [cap] what stands on the key, "" for none */
const button = (key, label, kind = "", cap = "") =>
  make(
    "button",
    {
      type: "button",
      class: kind,
      data: { focus: key },
      onclick: () => press(key),
    },
    label,
    cap && make("span", { class: "cap", "aria-hidden": "true" }, cap),
  );

// ---- what is drawn ------------------------------------------------------------------------------

const about = (/** @type {string} */ words) => make("p", "about", words);

function draw() {
  const { shown, says: words } = own;
  if (!shown || words) {
    const class_ = own.lesson && shown ? ofClass(own.lesson) : undefined;
    return redraw(view, [make("p", "waits", words || say("waits")), class_, heard].filter(Boolean));
  }
  const lesson = channel ? shown.lesson : own.lesson;
  const isScanned = shown.phone && own.showsCode; // in the place of what comes
  redraw(view, [
    top(shown),
    make("div", "column", ...wall(shown), ...step(shown.steps)),
    make("div", "column", !isScanned && next(shown.steps, lesson), ofClass(lesson), phone(shown)),
    foot(shown, lesson),
    heard,
  ]);
  tick();
}

/** The lesson, where it is, and the clock. @param {Shown} shown */
function top({ steps }) {
  const { title = "", at, n } = steps || {};
  return make(
    "header",
    "",
    make("h1", { dir: "auto" }, title || "Headlight"),
    n && make("span", "where", say("step", { at: at + 1, n })),
    steps?.minutes && make("div", "plan", make("div", "gone"), make("div", "due")),
    make(
      "button",
      {
        class: "clock",
        type: "button",
        title: say("restart"),
        data: { focus: "0" },
        onclick: () => press("0"),
      },
      make("b", "time"),
      make("span", "state"),
    ),
  );
}

const two = (/** @type {number} */ n) => `${n}`.padStart(2, "0");

/** A time in words, to half a minute. @param {number} ms */
function spoken(ms) {
  const n = Math.round(ms / MINUTE);
  return n < 1 ? say("half") : n === 1 ? say("minute") : say("minutes", { n });
}

/** The clock: how long it has run, and whether the step is the one that the plan has now. */
function tick() {
  const { began = 0, steps } = own.shown || {};
  const time = root.querySelector(".time");
  if (!time) return;
  const gone = began ? Math.max(0, Date.now() - began) : 0;
  const seconds = Math.floor(gone / 1000);
  time.textContent = `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
  const { minutes, at, n } = steps || {};
  if (!minutes) return;
  const whole = minutes * MINUTE;
  const [from, to] = [(at / n) * whole, ((at + 1) / n) * whole];
  const off = gone < from ? gone - from : Math.max(0, gone - to);
  const state =
    Math.abs(off) < MINUTE / 4
      ? say("on_time")
      : say(off < 0 ? "ahead" : "behind", { by: spoken(Math.abs(off)) });
  /** @type {Element} */ (root.querySelector(".clock .state")).textContent = say("of", {
    minutes,
    state,
  });
  const wide = (/** @type {string} */ name, /** @type {any} */ style) =>
    put(/** @type {HTMLElement} */ (root.querySelector(`.plan ${name}`)), {
      style,
    });
  wide(".gone", { width: `${Math.min(100, (100 * gone) / whole)}%` });
  wide(".due", { left: `${(100 * from) / whole}%`, width: `${100 / n}%` });
}
setInterval(tick, 1000);

/** What the wall shows. @param {Shown} shown */
function wall({ on, slide }) {
  if (!on)
    return [
      about(say("wall")),
      make("div", "slide off", make("p", "", say("off")), button("p", say("present"), "main", "P")),
    ];
  const { head = "", caption = "", paper = "", ink = "", dark, beside, ...more } = slide || {};
  const inside = [
    make("h2", { dir: "auto" }, head),
    make("div", "middle", ...plate(more), beside && aside(beside)),
    make("p", { class: "caption", dir: "auto" }, ...lettered(caption)),
  ];
  const vars = COLOUR.test(paper) && COLOUR.test(ink) ? { paper, ink } : {};
  const name = `slide${dark ? " dark" : ""}`;
  return [about(say(dark ? "blank" : "wall")), make("div", { class: name, vars }, ...inside)];
}

/** The picture of a slide, or the question with its answers that stands in its place. @param {Partial<import("./speaker_wall.js").Slide>} slide */
function plate({ svg, asks, words = [], rows = [], training }) {
  if (own.picture) return [make("img", { src: own.picture, alt: "" })];
  const empty = svg === "" && !rows.length && !training ? say("no_picture") : "";
  const offered = words.map((each) => make("span", "", each));
  return [
    make(
      "div",
      "bare",
      make("p", { dir: "auto" }, ...lettered(asks || empty)),
      offered.length > 0 && make("p", "offered", ...offered),
      rows.length > 0 && answerList(rows),
    ),
  ];
}

/** A question with its answers, beside the picture. @param {any} vote */
const aside = ({ says, asks, rows }) =>
  make(
    "div",
    "aside",
    make("p", { dir: "auto" }, ...lettered(says)),
    answerList(rows),
    asks && make("p", { dir: "auto" }, ...lettered(asks)),
  );

/** What is there for the speaker on a step. @param {any} steps */
function step(steps) {
  if (!steps) return [];
  const { says, note, question, answer } = steps;
  return [
    make(
      "section",
      "",
      about(say("says")),
      make("p", { class: "says", dir: "auto" }, ...lettered(says)),
      about(say("note")),
      make("p", { class: "note", dir: "auto" }, ...lettered(note || say("no_note"))),
    ),
    question &&
      make(
        "section",
        "",
        about(say("question")),
        make("p", { class: "question", dir: "auto" }, ...lettered(question)),
        make("p", { class: "answer", dir: "auto" }, ...lettered(answer)),
      ),
  ];
}

/** The step that comes; a vote has the room of its picture. @param {any} steps @param {any} lesson */
function next(steps, lesson) {
  if (!steps) return undefined;
  const { next } = steps;
  if (!next) return make("section", "next", about(say("last")));
  // It costs the server time, which the page on the wall has first.
  const isDue = own.picture || own.shown?.slide?.svg === "" || !own.shown?.on;
  const picture =
    isDue &&
    !lesson?.question &&
    PICTURE.test(next.picture) &&
    make("img", { src: `${new URL(next.picture, ROOT)}`, alt: "" });
  if (picture) picture.onerror = () => picture.remove(); // of a recording, or where the server is full
  return make(
    "section",
    "next",
    about(say("next", { heading: next.heading })),
    make("p", { class: "says", dir: "auto" }, ...lettered(next.says)),
    picture,
  );
}

/** The votes of the class as they come, and its code. @param {any} lesson */
function ofClass(lesson) {
  if (!lesson || lesson.over)
    return make("section", "class", about(say("no_class")), button("c", say("start")));
  const { question, open, revealed, tally, here = 0, code } = lesson;
  const { address } = wayIn(code);
  const way = make(
    "p",
    "way",
    make("b", "code", spelled(code)),
    make("span", "about", say("code", { address })),
    make("span", "about", bar("leading", { here }).split(" · ").at(-1) || ""),
  );
  if (!question) return make("section", "class", way, about(say("no_vote")));
  const n = voters(tally);
  const state = say(open ? "vote_open" : "vote_closed", {
    n,
    here: Math.max(n, here),
  });
  const rows = rowsOf(question, tally, { votes: true, answer: true, struck: true });
  return make(
    "section",
    "class",
    way,
    make("h3", "", say("vote"), make("span", "about", state)),
    make("p", { class: "voted", dir: "auto" }, question.text),
    make(
      "div",
      "presses",
      open && button("v", say("show_votes"), "main", "V"),
      !revealed && hasAnswer(question) && button("r", "Reveal", open ? "" : "main", "R"),
      !revealed && button("a", bar("vote_again"), "", "A"),
      button("t", bar("take_away"), "", "T"),
    ),
    answerList(rows, { leads: lesson }),
  );
}

/** The way to this window on a phone. @param {Shown} shown */
function phone({ phone }) {
  if (!channel) return undefined;
  const open = button("h", say("phone"));
  open.onclick = () => {
    own.showsCode = !own.showsCode;
    phone ? draw() : press("h");
  };
  if (!phone || !own.showsCode) return make("section", "phone", open);
  const to = new URL("speaker", ROOT);
  to.hash = `${phone.code}.${phone.watch}`;
  return make(
    "section",
    "phone",
    open,
    make("img", { class: "qr", src: codePicture(`${to}`), alt: say("qr") }),
    about(say("scan")),
  );
}

/** @param {Shown} shown @param {any} lesson */
function foot({ on, steps, slide }, lesson) {
  const keys = [
    button("<", say("back"), "", "←"),
    button(">", say("forward"), "main", "→"),
    button("u", say("up"), "", "↑"),
    button("d", say("down"), "", "↓"),
    slide?.training && button("g", say("training", slide), "", "G"),
    steps?.question && button("q", say("ask"), "", "Q"),
    button("b", say("black"), "", "B"),
    steps?.question && lesson && !lesson.question && button("v", say("ask_class"), "", "V"),
    button("p", say("leave"), "", "P"),
  ];
  return make("footer", "", ...(on ? keys : []), make("span", "about yours", say("yours")));
}

draw();
