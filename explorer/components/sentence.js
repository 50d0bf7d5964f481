// @ts-check
// The sentence field. It holds what the reader types and the server what is drawn; where the two differ,
// the field says so.

import { bus } from "./bus.js";
import { takeDrops } from "./dropped.js";
import { keepFocus } from "./focus.js";
import { firstMark, hear, make, mount, OF_TEXT, onceBack, resized, until } from "./mount.js";
import { spokenLine } from "./number_format.js";
import { prefetch } from "./prefetch.js";
import style from "./sentence.css.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("sentence");

const PAUSE = 350; // ms after the last key, before a text is drawn that nobody sent
const SENT = 20; // texts remembered as sent, so that their answers are told from news

export default mount("sentence", style, (view) => {
  if (!view.field) build(view);
  if (view.fresh) take(view);
});

/** @param {View} view */
function build(view) {
  view.sent = [];
  view.says = spokenLine("says");
  const field = (view.field = make("textarea", {
    rows: 1,
    ...OF_TEXT,
    spellcheck: false,
    placeholder: say("placeholder"),
    "aria-label": say("label"),
    title: say("title"),
    oninput: () => {
      mark(view);
      clearTimeout(view.timer);
      if (view.header.live && !view.composing) view.timer = setTimeout(() => draw(view), PAUSE);
    },
    onkeydown: (event) => {
      event.stopPropagation(); // the page's own keys are no letters
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      draw(view);
      field.scrollTop = 0;
    },
    onblur: () => (field.scrollTop = 0),
  }));
  field.addEventListener("beforeinput", () => giveBack(view));
  field.addEventListener("compositionstart", () => {
    giveBack(view);
    view.composing = true;
  });
  field.addEventListener("compositionend", () => {
    view.composing = false;
    field.dispatchEvent(new InputEvent("input"));
  });
  const skips = [
    skip(say("to_picture"), firstMark),
    skip(say("to_menus"), () => document.querySelector(".st-key-selection-bar input")),
  ];
  const button = make("button", { type: "button", onclick: () => draw(view) }, "Draw  ⏎");
  view.root.append(...skips, field, button, view.says);
  until(view, "clock", () => clearTimeout(view.timer));
  resized(view, view.root, view.root.clientWidth, () => fit(field));
  keepFocus();
  takeDrops({
    longest: view.header.longest,
    draw: (text) => {
      view.known = text;
      field.value = text;
      mark(view);
      draw(view);
    },
  });
  // Streamlit's own controls told nothing while the server was not reached: each run tells all of them.
  hear(view, ({ lost }) => {
    if (lost)
      onceBack(view, () => {
        if (view.sent.length) view.keep("text", view.sent.at(-1));
        else view.send("again", true); // not the text, which the server may have led on meanwhile
      });
  });
}

/** A button that only who presses Tab sees: it leads past the frame. @param {string} label
 * @param {() => HTMLElement | null | undefined} find */
function skip(label, find) {
  return make("button", { type: "button", class: "skip", onclick: () => find()?.focus() }, label);
}

// An answer to what was sent leaves alone what the reader has typed since; any other text is news and
// takes its place.
/** @param {View} view */
function take(view) {
  const { field, header, sent } = view;
  const at = sent.indexOf(header.text);
  const { text, covered } = view.before || {};
  if (text === header.text && !covered) view.known = undefined; // a question was opened
  view.before = header;
  if (isCovered(view)) {
    clearTimeout(view.timer);
    view.sent = [];
    field.value = header.covered;
  } else if (at < 0 || field.value === header.text) {
    clearTimeout(view.timer);
    if (field.value !== header.text) field.value = header.text;
    view.sent = [];
  } else sent.splice(0, at);
  mark(view);
}

// A word that is asked for is covered in the field too. It comes back when the reader begins to change
// the text: who has typed a text knows it.
/** @param {View} view */
const isCovered = ({ header, known }) => Boolean(header.covered) && known !== header.text;

/** The covered word comes back; what is selected stays so. @param {View} view */
function giveBack(view) {
  if (!isCovered(view)) return;
  const { field, header } = view;
  const { covered, text } = header;
  let start = 0;
  while (start < covered.length && covered[start] === text[start]) start += 1;
  const end = start + 1; // of what covers the word
  const place = (/** @type {number} */ at) => (at < end ? at : text.length - covered.length + at);
  const ends = [field.selectionStart, field.selectionEnd].map(place);
  view.known = text;
  field.value = text;
  field.setSelectionRange(...ends);
}

/** @param {View} view */
function draw(view) {
  clearTimeout(view.timer);
  if (isCovered(view)) return;
  const text = view.field.value;
  view.known = text;
  if (text === view.header.text && !view.sent.length) return;
  view.sent = [...view.sent, text].slice(-SENT);
  bus.tell({ sent: text });
  // The page says its text before it brings its pictures.
  prefetch(text, view.header.model, () => (view.sent.at(-1) ?? view.header.text) === text);
  view.keep("text", text);
}

// A picture of another text than the one in the field is not left to look like this one's.
/** @param {View} view */
function mark(view) {
  const { field, header, root, says } = view;
  const covered = isCovered(view);
  field.title = say(covered ? "covered" : "title");
  const waits = !covered && field.value !== header.text && !header.live;
  root.classList.toggle("stale", waits);
  const long = field.value.length - header.longest;
  const status = long > 0 ? say("too_long", { n: long }) : waits ? say("not_drawn") : "";
  if (says.textContent !== status) says.textContent = status;
  root.dataset.text = field.value; // of which a page of paper has every line
  fit(field);
}

/** As high as its text, of a long one as high as whole lines of it. @param {HTMLTextAreaElement} field */
function fit(field) {
  field.classList.remove("long");
  field.style.height = "auto";
  const height = field.scrollHeight + 2;
  field.style.height = `${height}px`;
  field.classList.toggle("long", height > field.offsetHeight);
}
