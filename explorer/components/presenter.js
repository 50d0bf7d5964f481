// @ts-check
// P, or the button Present, hides the frame and fills the screen with the current picture, its
// headline and its caption. Arrows walk the findings and the heads, or from picture to picture; in a lesson up
// and down walk the steps of its picture. F puts numbers into the formula; Q shows the question of a lesson's
// step; V asks a class, R, A and T go on with its vote; G starts and stops a live training; S opens the
// speaker's window; B blanks; Esc returns.

import { bus } from "./bus.js";
import { requestedStep } from "./class_client.js";
import {
  LINK,
  PICTURE,
  ROOT,
  codePicture,
  send,
  spelled,
  unfinished,
  wayIn,
} from "./class_part.js";
import { answerList, hasAnswer, rowsOf } from "./class_answers.js";
import { ANSWER, ASKED, isPast, press, questionSlide, stepOf } from "./class_step.js";
import { decode } from "./codec.js";
import { typeset, typesetAlone } from "./formula.js";
import { isRunning } from "./optimistic_updates.js";
import { clamp, onScreen } from "./theme.js";
import { inProse, isTyping, plainKey } from "./keys.js";
import { hear, make, mount, put, until, viewOf } from "./mount.js";
import { besideFrame, resolved } from "./panel_layout.js";
import {
  captionOf,
  content,
  headline,
  is,
  lastWords,
  pictures,
  rootOf,
  tree,
} from "./presenter_pictures.js";
import { spokenLine } from "./number_format.js";
import { patternPicture } from "./pattern_picture.js";
import style from "./presenter.css.js";
import { sentences } from "./sentences.js";
import { lettered } from "./terms.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {HTMLElement} Picture */

const say = sentences("presenter");
const classroom = sentences("classroom");

const ON = "data-headlight-presenter"; // "on" or "blank", on the document
const PICKED = "data-headlight-picture"; // on the picture that is shown
const LETTERS = [44, 38, 33, 29, 26, 23, 20, 18, 16, 14, 12, 10, 8]; // sizes of the page's type in pixels, tried in turn
const HEADS = "[data-panel='attention.heads']";
const FLOW = "[data-panel='architecture.flow']";
const UNTITLED = ["steps", "flow", "paperfigure"]; // figures that name themselves
const ANSWERS = [60, 52, 46, 40, 36, 32, 28, 24]; // sizes of answers in pixels, tried in turn
const BESIDE = [40, 36, 32, 29, 26, 24, 22, 20]; // the same beside a picture
const LEAST = 0.44; // of the screen, for the picture below a formula with its numbers
const SETTLES = 350; // ms after which a page that was drawn anew is looked at again

const page = document.documentElement;

export default mount("presenter", style, (view) => {
  schemed();
  if (!view.keys) listen(view);
  if (bus.now.waiting) {
    bus.tell({ waiting: false }); // P was pressed before there was anybody to hear it (server/page.py)
    if (!bus.now.presenter) enter(view);
  }
  if (bus.now.presenter) later(view);
});

/** The document has the app's scheme, light or dark: menus and dialogs stand outside the app. */
function schemed() {
  const app = document.querySelector("[data-testid=stApp]");
  if (app) page.style.colorScheme = getComputedStyle(app).colorScheme;
}

/** @param {View} view */
function listen(view) {
  view.keys = (/** @type {KeyboardEvent} */ event) => pressed(view, event);
  // The button is Streamlit's own, which the page only hears of.
  view.click = (/** @type {MouseEvent} */ { target }) => {
    if (/** @type {Element} */ (target).closest(".st-key-present button") && !bus.now.presenter)
      enter(view);
  };
  view.again = () => bus.now.presenter && present(view);
  // What changes inside a view is its own affair: it was drawn larger. A chart is drawn when it comes.
  view.news = new MutationObserver((all) => {
    const inside = (/** @type {Node} */ at) => tree(view.picture) && view.picture.contains(at);
    const drawn = (/** @type {MutationRecord} */ one) => one.type === "attributes";
    if (bus.now.presenter && all.some((one) => drawn(one) || !inside(one.target))) later(view);
  });
  let asked = bus.now.speaker;
  hear(view, ({ presenter, speaker }) => {
    if (asked !== speaker) open(view);
    asked = speaker;
    if (presenter) later(view); // a view may move by itself
  });
  if (sessionStorage.getItem("headlight speaker")) speak(view);
  view.says = spokenLine("announced");
  view.root.append(view.says);
  bus.tell({ presents: true });
  addEventListener("keydown", view.keys);
  addEventListener("click", view.click);
  addEventListener("resize", view.again);
  until(view, "keys", () => {
    removeEventListener("keydown", view.keys);
    removeEventListener("click", view.click);
    removeEventListener("resize", view.again);
    view.news.disconnect();
    bus.tell({ presents: false });
    leave(view);
  });
}

/** @param {View} view @param {KeyboardEvent} event */
function pressed(view, event) {
  if (!plainKey(event) || isTyping(event) || (!bus.now.presenter && inProse(event))) return;
  if (acts(view, event.key.length === 1 ? event.key.toLowerCase() : event.key))
    event.preventDefault();
}

/** What a key does; false where it does nothing. @param {View} view @param {string} key */
function acts(view, key) {
  const on = bus.now.presenter;
  if (key === "p") on ? leave(view) : enter(view);
  else if (!on) return false;
  else if (key === "Escape") leave(view);
  else if (key === "b") blank(view);
  else if (key === "f") substitute(view);
  else if (key === "s") open(view);
  else if (key === "g") return trains();
  else if (key === "q" && bus.now.steps?.question) asks(view);
  else if (key === "r" && !bus.now.lesson?.key && bus.now.steps?.options) tells(view);
  else if ("vart".includes(key)) return press(key);
  else return walks(view, key);
  return true;
}

/** The page's own button that stops a live training, or starts one. @returns {HTMLElement | null} */
const trainButton = () =>
  document.querySelector(".st-key-live-stop button") ||
  document.querySelector(".st-key-live-start button");

/** What a press of G does here, in the words of the page; "" for nothing. */
const training = () => trainButton()?.querySelector("p")?.textContent || "";

/** Start a live training, or stop it; false where there is none. */
function trains() {
  const button = trainButton();
  button?.click();
  return Boolean(button);
}

/** Open the speaker's window, in a process of its own: it does not wait while this one draws. One that is open closes. @param {View} view */
function open(view) {
  window.open(new URL("speaker", ROOT), "_blank", "popup,noopener,width=1280,height=800");
  speak(view);
}

const OF_SPEAKER = { "<": "ArrowLeft", ">": "ArrowRight", u: "ArrowUp", d: "ArrowDown" };

/** From here on the speaker's window hears what is shown, and its keys are pressed here. @param {View} view */
const speak = (view) =>
  import("./speaker_wall.js").then(({ speak }) =>
    speak((key) => acts(view, OF_SPEAKER[/** @type {"<"} */ (key)] || key)),
  );

/** Show the question of the step, or its picture again. @param {View} view */
function asks(view) {
  const { at } = bus.now.steps;
  view.asks = view.asks === at ? undefined : at;
  present(view);
}

/** Show the answer of a step without a class, or its question again. @param {View} view */
function tells(view) {
  const { at } = bus.now.steps;
  view.tells = view.tells === at ? undefined : at;
  present(view);
}

/** @param {View} view */
function enter(view) {
  view.plate = make("div", { class: "plate", onclick: (event) => clicked(view, event) });
  view.caption = make("p", { class: "caption", dir: "auto" });
  view.head = make("h1", { dir: "auto" });
  view.formulas = make("div", "formulas");
  view.aside = make("div", "aside");
  const middle = make("div", "middle", view.plate, view.aside);
  view.board = make("div", "board", view.head, view.formulas, middle, view.caption);
  view.root.append(view.board);
  page.setAttribute(ON, "on");
  view.at = behind.length = 0;
  view.asks = undefined;
  bus.tell({ presenter: true, slide: undefined });
  view.picture = inSight();
  view.shown = undefined;
  view.waits = isUnderWay(view) || isRunning() || !view.picture; // for the page's own picture
  view.news.observe(/** @type {Node} */ (document.querySelector("[data-testid=stMain]")), {
    childList: true,
    subtree: true,
    attributeFilter: ["data-drawn"], // a view whose code came late
  });
  view.says.textContent = say("opened");
  present(view);
  later(view); // its room is what words over and under it leave, which may come late
}

/** @param {View} view */
function leave(view) {
  if (!bus.now.presenter) return;
  view.news.disconnect();
  clearTimeout(view.timer);
  view.board?.remove();
  free();
  page.removeAttribute(ON);
  bus.tell({ presenter: false });
  view.says.textContent = "";
}

/** Put numbers into the formula of the picture, or take them out again. @param {View} view */
function substitute(view) {
  /** @type {HTMLElement | null | undefined} */
  const button =
    view.picture && rootOf(view.picture)?.querySelector(".formulas [data-focus=filled]");
  if (view.spared) view.insists = view.spared;
  else button?.click();
  present(view);
}

/** @param {View} view */
function blank(view) {
  const dark = page.getAttribute(ON) !== "blank";
  page.setAttribute(ON, dark ? "blank" : "on");
  view.board.classList.toggle("blank", dark);
  bus.tell({ slide: { ...bus.now.slide, dark } });
}

/** Look again when the page is at rest. @param {View} view */
function later(view) {
  clearTimeout(view.timer);
  view.timer = setTimeout(() => {
    if (!bus.now.presenter) return;
    if (isUnderWay(view)) later(view);
    else if (changed(view)) present(view);
  }, SETTLES);
}

/** True while the page that has the picture of a step is on its way: until then the slide before it stays, title and picture. @param {View} view */
function isUnderWay({ step, shown }) {
  const { panel, at } = bus.now.steps || {};
  if (!panel || panel === "words") return false;
  if (requestedStep() !== undefined) return true;
  const own = ofStep(pictures());
  // A panel of that name may be the one that the step before has left.
  return isRunning() && (!own || (step !== at && about(own) === shown));
}

/** True where the page shows something else than when it was last looked at. @param {View} view */
function changed(view) {
  const { picture, plate } = view;
  const current = inPlace(view);
  if (current || view.current) return JSON.stringify(current) !== view.current;
  if (view.beside !== JSON.stringify(vote(view))) return true;
  if ((bus.now.slide?.training || "") !== training()) return true;
  if (!pictures().includes(picture) || plate.scrollHeight > plate.clientHeight + 1) return true;
  if (cameLate(view) || (view.waits && inSight() !== picture)) return true;
  return view.shown !== about(picture) || view.size !== sizeOf(plate);
}

/** The picture that a step of a lesson speaks of; undefined while it is not on the page. @param {Picture[]} list */
function ofStep(list) {
  const { panel } = bus.now.steps || {};
  return panel && list.find((each) => rootOf(each)?.dataset.panel === panel);
}

/** True where the picture of a step came after another was put on the screen, and nobody chose that. @param {View} view */
function cameLate({ picture, chosen }) {
  const own = ofStep(pictures());
  return Boolean(own) && own !== picture && chosen !== picture;
}

/** @param {Element} plate */
const sizeOf = ({ clientWidth, clientHeight }) => `${clientWidth} ${clientHeight}`;

/** What tells one state of a picture from another. @param {Picture} picture */
const about = (picture) =>
  JSON.stringify([headline(picture), captionOf(picture), rootOf(picture)?.dataset.token]);

/** What a picture stands in, without a look for it. */
function free() {
  page.style.fontSize = "";
  for (const each of document.querySelectorAll(`[${PICKED}]`)) {
    each.removeAttribute(PICKED);
    put(/** @type {HTMLElement} */ (each), {
      style: { zoom: "", width: "", height: "", left: "", top: "", opacity: "" },
    });
  }
}

/** The picture that is looked at: the one with the focus, else the first of which half is in sight, else the one most of which is. */
function inSight() {
  const list = pictures();
  const own =
    ofStep(list) ||
    list.find((each) => each.contains(document.activeElement)) ||
    list.find((each) => is(each, "[data-panel='attention.head']"));
  const seen = (/** @type {Picture} */ each) => {
    const { top, bottom } = each.getBoundingClientRect();
    return Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0));
  };
  const half = list.find((each) => seen(each) >= each.offsetHeight / 2);
  return own || half || list.sort((a, b) => seen(b) - seen(a))[0];
}

/**
 * The question of the class that this window leads, as a slide; undefined once its answer was passed by.
 * @param {View} view
 */
const question = (view) => {
  const { lesson } = bus.now;
  if (!lesson?.question || view.passed === lesson.number || isPast(lesson)) return undefined;
  return questionSlide(lesson, stepOf(lesson) - backSteps(view));
};

/** How many steps before the one that the class is at. @param {View} view */
function backSteps(view) {
  const { lesson } = bus.now;
  const state = `${lesson.number} ${stepOf(lesson)}`;
  if (view.state !== state) Object.assign(view, { state, back: 0 });
  return view.back;
}

/** The way into the class that this window leads, or another one of its browser, as a slide of the page Class. @param {View} view */
function invitation(view) {
  const { key, over, question, number, here, ...lesson } = bus.now.lesson || {};
  const code = key && !over ? lesson.code : unfinished()?.code;
  const asks = key && question && view.passed !== number;
  if (!code || asks || !location.pathname.endsWith("/classroom")) return undefined;
  const { address, picture } = wayIn(code);
  return {
    says: classroom("join_at", { address }),
    caption: key ? say("here", { here: here ?? 0 }) : "",
    code: spelled(code),
    picture,
  };
}

/** The question of a lesson's step, while it is shown; of a step of its own words these. @param {View} view */
function ofLesson(view) {
  const { asks } = view;
  const { at, heading, question, panel, says, typeset: formula } = bus.now.steps || {};
  if (asks !== undefined && asks === at)
    return (panel === "words" && toChoose(view)) || { says: heading, caption: "", asks: question };
  return panel === "words" ? { says: heading, caption: "", asks: says, formula } : undefined;
}

/** What a flow asks before its light is on: the line with its gap, and the words that are offered. @param {View} view */
function ofStage(view) {
  const { stage, steps } = bus.now;
  const of = view.picture?.isConnected ? view.picture : inSight();
  if (!stage || isUnderWay(view) || !of || !is(of, FLOW)) return undefined;
  const [caption = ""] = captions(viewOf(rootOf(of))?.header.caption || []);
  return { ...stage, says: steps?.heading || stage.asks, asks: stage.line, caption };
}

/**
 * The question of a step with answers to choose from, which stands beside the picture that it is about: with
 * the votes of the class where it was asked, and after the reveal with what is right; undefined for none.
 * @param {View} view
 */
function vote(view) {
  const { steps, lesson } = bus.now;
  if (!steps?.options || steps.panel === "words") return undefined;
  const asked = lesson?.question?.of === steps.of && lesson.question.choices?.length;
  const slide = asked ? question(view) : undefined;
  if (slide) return { ...slide, told: stepOf(lesson) - backSteps(view) === ANSWER };
  return toChoose(view);
}

/** The answers of a step as they stand where no class was asked; undefined for none. @param {View} view */
function toChoose(view) {
  const { steps } = bus.now;
  if (!steps.options) return undefined;
  const told = view.tells === steps.at || view.told === steps.of;
  const plain = { free: false, choices: steps.options.split("\n"), right: Number(steps.right) };
  const rows = rowsOf(plain, undefined, { votes: false, answer: told });
  return { says: steps.question, asks: told ? steps.answer : "", rows, caption: "", told };
}

/** The code of a class on the first step of a lesson, and of the page that a step leads to. @param {any} steps */
function codeOf({ at, link }) {
  const { lesson } = bus.now;
  const to = LINK.test(link) ? new URL(link, ROOT) : undefined;
  if (!to && (at || !lesson?.key || lesson.over)) return [];
  const { address, picture } = to
    ? { address: to.host + to.pathname, picture: codePicture(`${to}`) }
    : wayIn(lesson.code);
  return [
    make("img", { src: picture, alt: classroom("qr_code") }),
    make("p", "code", to ? "" : spelled(lesson.code)),
    make("p", "", address.replaceAll("/", "/\u200b")),
  ];
}

/** What is shown in the place of the page's own picture: of the class, of the lesson, or what the page asks; undefined for nothing. @param {View} view */
const inPlace = (view) =>
  (!vote(view) && question(view)) || invitation(view) || ofLesson(view) || ofStage(view);

/**
 * The next step of a question, or the one before: the vote ends, the answer is shown, the page's own pictures
 * come. Nothing is lost by a step: arrows back bring answer, votes and question again.
 * @param {View} view @param {number} by
 */
function questionStep(view, by) {
  const { lesson } = bus.now;
  const step = stepOf(lesson);
  const back = backSteps(view);
  if (by < 0) view.back = Math.min(back + 1, step - ASKED);
  else if (back) view.back = back - 1;
  else if (step === ANSWER || (step !== ASKED && !hasAnswer(lesson.question))) {
    Object.assign(view, { passed: lesson.number, since: 0, told: bus.now.steps?.of });
    if (bus.now.stage || bus.now.steps?.options) return walks(view, "ArrowRight"); // the page's own picture is the question
  } else send(step === ASKED ? "close" : "reveal").catch(() => {});
  present(view);
}

/** True for an arrow back from the first picture after an answer, which brings the answer. @param {View} view @param {number} by */
function broughtBack(view, by) {
  const { lesson } = bus.now;
  if (!lesson?.question || lesson.over || view.passed !== lesson.number) return false;
  view.since = (view.since || 0) + by;
  if (view.since >= 0) return false;
  view.passed = undefined;
  present(view);
  return true;
}

/** Put the picture, its headline and its caption on the screen. @param {View} view */
function present(view) {
  const current = inPlace(view);
  if (!current && isUnderWay(view)) {
    if (!view.shown) view.head.textContent = bus.now.steps.heading;
    return later(view);
  }
  view.turn = (view.turn || 0) + 1;
  view.formulas.replaceChildren();
  const beside = current ? undefined : vote(view);
  view.beside = JSON.stringify(beside);
  view.aside.replaceChildren(...(beside ? votes(beside) : codeOf(bus.now.steps || { at: 1 })));
  view.current = current && JSON.stringify(current);
  if (current) {
    free();
    [view.head.textContent, view.caption.textContent] = [current.says, current.caption];
    view.board.classList.remove("clear");
    if (!("picture" in current)) return inLargeType(view, current);
    shows(view, "", { asks: current.code });
    const about = classroom("qr_code");
    const image = make("img", { src: current.picture, alt: about });
    return view.plate.replaceChildren(make("div", "invite", image, make("p", "", current.code)));
  }
  const list = pictures();
  const { steps } = bus.now;
  if (steps && view.step !== steps.at) [view.step, view.picture] = [steps.at, undefined];
  if (!view.picture?.isConnected || !list.includes(view.picture) || cameLate(view))
    view.picture = steps ? inSight() : list[clamp(view.at, 0, list.length - 1)];
  if (view.waits) view.picture = inSight();
  const { picture, head, caption, plate } = view;
  view.at = list.indexOf(picture);
  free();
  plate.replaceChildren();
  plate.style.fontSize = "";
  plate.classList.remove("large");
  const panel = picture && viewOf(rootOf(picture));
  if (panel?.name === "panel") return presentPanel(view, panel);
  view.walk = undefined;
  head.replaceChildren(...lettered(headline(picture)));
  caption.replaceChildren(
    ...lettered(picture ? captionOf(picture) : say(training() ? "no_training" : "no_picture")),
  );
  if (!picture) return inLargeType(view, { says: head.innerText, asks: lastWords() });
  [view.shown, view.size] = [about(picture), sizeOf(plate)];
  view.board.classList.add("clear");
  shows(view);
  const { width, height } = picture.getBoundingClientRect();
  picture.setAttribute(PICKED, "");
  const room = [head.getBoundingClientRect().bottom, caption.getBoundingClientRect().top];
  fill(view, picture, room, [width, height]);
}

/**
 * What is shown, for the speaker's window. @param {View} view
 * @param {string | null} [svg] of the picture, null while it is drawn
 * @param {{ asks?: string, words?: string[], rows?: import("./class_answers.js").Row[], beside?: any }} [more] what stands in the place of the picture, and beside it
 */
function shows({ head, caption }, svg = "", more = {}) {
  const dark = page.getAttribute(ON) === "blank";
  const { paper, ink } = onScreen(head);
  const about = { head: head.innerText, caption: caption.innerText };
  bus.tell({ slide: { ...about, svg, paper, ink, dark, asks: "", training: training(), ...more } });
}

/** A question, or its answers where there are some, as large as their room allows. @param {View} view @param {{ says: string, asks?: string, formula?: any, words?: string[], rows?: import("./class_answers.js").Row[], pattern?: string }} current */
function inLargeType(view, { says, asks = "", formula, words = [], rows = [], pattern }) {
  const { plate, head } = view;
  if (!asks && !formula && !rows.length) [head.textContent, asks] = ["", says]; // words are typed, and the vote is open
  shows(view, "", { asks: asks || (rows.length ? "" : says), words, rows });
  const own = formula ? typesetAlone(formula) : [];
  const offered = words.map((each) => make("span", "", each));
  const parts = [
    pattern && patternPicture(pattern, says),
    asks && make("p", "", ...lettered(asks)),
    offered.length && make("p", "offered", ...offered),
    ...own,
    rows.length && answerList(rows, { leads: bus.now.lesson }),
  ].filter(Boolean);
  const isList = rows.length && parts.length === 1;
  const inside = isList ? parts[0] : make("div", { class: "asked", dir: "auto" }, ...parts);
  plate.replaceChildren(inside);
  fits(plate, ANSWERS);
  fits(view.aside, BESIDE);
}

/** Set the type of an element as large as its room allows. @param {HTMLElement} element @param {number[]} sizes in pixels, tried in turn */
function fits(element, sizes) {
  for (const size of sizes) {
    element.style.fontSize = `${size}px`;
    if (element.scrollHeight <= element.clientHeight + 1) return;
  }
}

/** A question with its answers, beside a picture. @param {any} vote */
const votes = ({ says, asks, caption, rows }) =>
  [
    make("p", { class: "question", dir: "auto" }, ...lettered(says)),
    answerList(rows),
    asks && make("p", { class: "why", dir: "auto" }, ...lettered(asks)),
    caption && make("p", "", caption),
  ].filter(Boolean);

/** The panel that shows the true answer of a step, once the answer is shown: undefined until it is here. @param {View} view @param {View} panel in whose place it stands */
function proven(view, panel) {
  const { proof = "" } = bus.now.steps || {};
  if (!PICTURE.test(proof) || !vote(view)?.told) return undefined;
  if (view.proof?.of !== proof) prove(view, proof);
  const { header, blocks } = view.proof;
  const figures = header && resolved(header.figures, blocks);
  return figures && { header, figures, look: panel.look, formulas: { filled: true } };
}

/** Fetch the panel of such an address, and show it. @param {View} view @param {string} of */
async function prove(view, of) {
  view.proof = { of };
  const panel = await fetch(new URL(of.replace(".svg?", ".bin?"), ROOT))
    .then((answer) => answer.arrayBuffer())
    .then(decode)
    .catch(() => undefined); // asked for again with the next answer
  if (view.proof?.of !== of) return;
  view.proof = panel && { ...panel, of };
  if (panel && bus.now.presenter) present(view);
}

/** A panel: its finding, its figures in large type, and what they are of; the proof of an answer in its place. @param {View} view @param {View} own */
function presentPanel(view, own) {
  const proof = proven(view, own);
  const panel = proof || own;
  const { header, figures } = panel;
  const steps = figures.find((/** @type {any} */ each) => each.go);
  const walk = (/** @type {number} */ by) => {
    // The beam of a flow has no frames, and keeps to its own ends.
    steps.go(clamp(steps.current + by, 0, (steps.frames?.length ?? Infinity) - 1));
    presentPanel(view, own);
  };
  view.walk = steps && walk;
  view.shown = about(view.picture);
  // While no word is selected, the panel of a head says to select one.
  const wordless = header.panel === "attention.head" && !/\d/.test(header.finding);
  const found = wordless ? headline(/** @type {Picture} */ (view.picture)) : header.finding;
  const frame = steps?.frames?.[steps.current];
  const { filled: isFilled } = panel.formulas;
  const focus = frame?.focus || header.focus;
  const { steps: at } = bus.now;
  // A step's words are about its own picture.
  const { heading, address, isOwn, says: ownWords, typeset: ownFormula } = (!proof && at) || {};
  const formulas = besideFrame(header.formulas, frame);
  const inNumbers = formulas.filter(({ numbers }) => numbers.length);
  const all = isFilled ? inNumbers.length : 0;
  const set = (/** @type {number} */ most, /** @type {boolean} */ flat) => {
    view.spared = most < all && header.panel;
    view.formulas.classList.toggle("flat", flat);
    view.formulas.replaceChildren(
      ...(ownFormula ? typesetAlone(ownFormula) : []),
      ...formulas.flatMap((one) =>
        typeset([one], { focus, filled: inNumbers.indexOf(one) < most, flat }),
      ),
    );
  };
  set(all, false);
  const guess = /flow_beam=end/.test(address || "") ? bus.now.guess : "";
  const said = [guess, frame?.sentence || found || header.title].filter(Boolean).join(" ");
  // On a step of a lesson a sentence without a number is about the page.
  const step = heading?.replace(/[.?!]?$/, (/** @type {string} */ end) => end || ".");
  const whole = step && !said.startsWith(step) ? `${step} ${said}` : said;
  const finding = step && (isOwn || !/\d/.test(said)) ? step : whole;
  view.board.classList.remove("clear");
  filled(view.head, finding.split(/(?<=[.!?]) (?=[\p{Lu}“])/u), " ");
  const of = captions(header.caption).filter((line) => !heading || !OF_LESSON.test(line));
  filled(view.caption, isOwn && ownWords ? [ownWords] : of, " · ");
  if (!figures.length) return inLargeType(view, { says: finding }); // nothing was found to draw
  // The picture has its part of the screen, and all of its rows; where formulas would take of that, their
  // lines stand side by side in smaller type, then one formula has numbers, or they come on a press.
  const fewer = view.insists === header.panel ? [] : [1, 0].filter((most) => all > most);
  const flat = view.formulas.firstChild ? [all, ...fewer] : [];
  /** @type {[number, boolean][]} */
  const settings = [
    [all, false],
    ...flat.map((most) => /** @type {[number, boolean]} */ ([most, true])),
  ];
  while (settings.length > 1 && isSmall(view)) {
    settings.shift();
    set(...settings[0]);
  }
  // What the finding is about, where no figure says it.
  const named = figures.some(({ title, kind }) => title || UNTITLED.includes(kind));
  const [first, ...others] = figures;
  const shown = named ? figures : [{ ...first, title: header.title }, ...others];
  // The words that a step of a lesson names have their rows.
  const ofStep = `${at?.heading} ${at?.says}`.match(/“[^”]*”/g) || [];
  const says = [...(header.says || []), ofStep.join(" ")];
  fits(view.aside, BESIDE);
  const beside = vote(view);
  shows(view, null, { beside });
  const spoken = { header: { ...header, says }, look: panel.look, figures: shown };
  drawSlide(view, spoken, settings, set);
  view.size = sizeOf(view.plate);
}

/** Whether formulas leave a picture less than its part of the screen. @param {View} view */
const isSmall = ({ plate }) => plate.clientHeight < LEAST * innerHeight;

/**
 * Draw a slide by the code that the first one fetches, unless another picture has come meanwhile. Formulas above it
 * give way to rows that else are left out, and their numbers to a figure.
 * @param {View} view @param {any} figures @param {[number, boolean][]} settings of the formulas: how many have numbers, and whether flat; from the one that stands
 * @param {(most: number, flat: boolean) => void} set
 */
async function drawSlide(view, figures, [own, ...smaller], set) {
  const turn = ++view.turn;
  const { slide } = await import("./slide_layout.js");
  if (view.turn !== turn || !bus.now.presenter) return;
  const draw = () => slide(figures, view.plate, figures.header.title);
  let [made, stands] = [draw(), own];
  for (const one of smaller) {
    if (!(made.lacks || made.isCut) || (one[0] < own[0] && !made.isCut)) break;
    set(...one);
    const tried = draw();
    const isMore = tried.lacks < made.lacks && tried.isCut === made.isCut;
    if (isMore || (made.isCut && !tried.isCut)) [made, stands] = [tried, one];
    else {
      set(...stands);
      made = draw();
    }
  }
  view.size = sizeOf(view.plate);
  shows(view, made.svg, { beside: vote(view) });
}

/** Put as many parts of a text into an element as it shows whole, and the first one in any case. @param {HTMLElement} element @param {string[]} parts @param {string} between */
function filled(element, parts, between) {
  for (let n = parts.length; n > 0; n--) {
    element.replaceChildren(...lettered(parts.slice(0, n).join(between)));
    if (element.scrollHeight <= element.clientHeight + 1) return;
  }
}

const OF_LESSON = /^Text: |edits: none$/; // lines that are the same on each of its steps, whose room numbers take

/** The lines of a caption by what a room needs first: model and edits of each side, the text, the rest. @param {string[]} lines */
function captions(lines) {
  const plain = (/** @type {string} */ line) =>
    line.replace("Headlight · ", "").replace(/ \([^()]* weights [^()]*\)/, "");
  const rank = (/** @type {string} */ line) =>
    /^[AB]: /.test(line) ? 0 : /^Text: /.test(line) ? 1 : 2;
  const rest = lines.slice(1).sort((a, b) => rank(a) - rank(b));
  return [...lines.slice(0, 1), ...rest].map(plain);
}

/**
 * As large as the room between two heights allows. Our own views are set in the page's type, so it is
 * the type that grows, tried from large to small, each time after the view has drawn itself anew;
 * charts are enlarged as they are.
 * @param {View} view @param {Picture} picture @param {number[]} room @param {number[]} size of a chart
 */
async function fill(view, picture, [top, bottom], size) {
  const [wide, high] = [Math.round(innerWidth * 0.96), bottom - top];
  const { turn } = view;
  if (!tree(picture)) return enlarged(picture, size, top, wide, high);
  put(picture, { style: { opacity: "0", left: "0", top: "0" } });
  for (const size of LETTERS) {
    page.style.fontSize = `${size}px`;
    put(picture, { style: { width: `${wide - size}px` } }); // another width: views fit themselves to it
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    if (view.turn !== turn || !bus.now.presenter) return;
    const { width, height } = content(picture);
    if (size > LETTERS[LETTERS.length - 1] && (height > high || width > wide)) continue;
    const left = (innerWidth - Math.min(width, wide)) / 2;
    const down = top + Math.max(0, (high - height) / 2);
    put(picture, { style: { left: `${left}px`, top: `${down}px`, opacity: "1" } });
    return;
  }
}

/** @param {Picture} picture @param {number[]} size @param {number} top @param {number} wide @param {number} high */
function enlarged(picture, [width, height], top, wide, high) {
  const zoom = Math.min(wide / width, high / height);
  put(picture, { style: { opacity: "1" } });
  const left = (innerWidth - width * zoom) / 2 / zoom;
  const down = (top + (high - height * zoom) / 2) / zoom;
  put(picture, {
    style: {
      zoom: `${zoom}`,
      width: `${width}px`,
      height: `${height}px`,
      left: `${left}px`,
      top: `${down}px`,
    },
  });
}

/** An arrow: the page's own findings and heads, else the next picture. True where it was taken. @param {View} view @param {string} key */
function walks(view, key) {
  view.waits = false;
  const by = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[key];
  const up = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (question(view)) {
    if (by) questionStep(view, by);
    return Boolean(by || up);
  }
  if (by && broughtBack(view, by)) return true;
  if (bus.now.steps) {
    if (by) return bus.now.steps.by(by); // of a lesson
    if (up && view.walk) {
      view.walk(up);
      return true;
    }
  } else if ((by && finding(by)) || (up && head(up))) return true; // a step speaks of its own head
  if (by && view.walk) {
    view.walk(by);
    later(view);
    return true;
  }
  const step = by || up;
  const list = pictures();
  if (!step || !list.length) return Boolean(step);
  view.at = clamp(view.at + step, 0, list.length - 1);
  view.picture = view.chosen = list[view.at];
  present(view);
  return true;
}

/** @type {string[]} the addresses that the next finding was pressed at */
const behind = [];

/** A press on the right half of a picture of several steps walks to its next one, on the left half back. @param {View} view @param {MouseEvent} event */
function clicked({ walk, plate }, { clientX }) {
  const { left, width } = plate.getBoundingClientRect();
  walk?.(clientX > left + width / 2 ? 1 : -1);
}

/** The next finding of the text, or back to the one before. @param {number} by */
function finding(by) {
  /** @type {HTMLElement | null} */
  const next = document.querySelector(".st-key-next-finding button");
  const leaves = next
    ?.querySelector("[data-testid=stIconMaterial]")
    ?.textContent?.includes("outward");
  if (by > 0 ? !next || leaves : !behind.length) return false;
  if (by > 0) {
    behind.push(location.href);
    next?.click();
  } else if (location.href !== behind.at(-1)) {
    behind.pop();
    history.back();
  }
  return true;
}

/** The next head in the grid of all heads. @param {number} by */
function head(by) {
  for (const each of pictures()) {
    const buttons = /** @type {HTMLElement[]} */ ([
      ...(is(each, HEADS) ? rootOf(each)?.querySelectorAll(".cell") || [] : []),
    ]);
    const at = buttons.findIndex((one) => one.getAttribute("aria-pressed") === "true");
    if (buttons.length) {
      buttons[clamp(at + by, 0, buttons.length - 1)].dispatchEvent(
        new MouseEvent("click", { bubbles: true }),
      );
      return true;
    }
  }
  return false;
}
