// @ts-check
// A class is started here, gone on with, or joined: its code, its address and the code that phones read.

import style from "./classroom.css.js";
import {
  part,
  resume as again,
  send,
  spelled,
  start,
  takePart,
  unfinished,
  wayIn,
} from "./class_client.js";
import { csv, forgetRecord, page, recorded } from "./class_record.js";
import { hear, make, mount, redraw } from "./mount.js";
import { spokenLine } from "./number_format.js";
import { save } from "./svg_export.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("classroom");

export default mount("classroom", style, (view) => {
  if (!view.says) view.says = spokenLine("problem", "div");
  hear(view, (now) => draw(view, now.lesson));
});

const press = (name, label, onclick, kind = "") =>
  make("button", { type: "button", class: kind, data: { focus: name }, onclick }, label);

/** @param {View} view @param {any} lesson */
function draw(view, lesson) {
  const kept = recorded();
  const about = [lesson?.code, lesson?.key, lesson?.over, lesson?.here];
  const shown = JSON.stringify([...about, part(), kept?.code, kept?.asked]);
  if (view.shown === shown) return;
  view.shown = shown;
  const inside =
    lesson && !lesson.over ? (lesson.key ? led(lesson) : followed(lesson)) : free(view);
  const own = kept && (!lesson || lesson.over || lesson.key) && results(view, lesson, kept);
  redraw(view, [...inside, own, view.says].filter(Boolean));
}

/** @param {any} lesson */
function led({ code, here }) {
  const { address, picture } = wayIn(code);
  const about = say("qr_code");
  return [
    make(
      "div",
      "open",
      make("img", { src: picture, alt: about, width: 192, height: 192 }),
      make(
        "div",
        "how",
        make("p", "", "Join at ", make("b", "", address), " with"),
        make("p", "code", spelled(code)),
        make("p", "", say("here", { here: here ?? 0 })),
      ),
    ),
  ];
}

/** What the class was asked, to be taken along. @param {View} view @param {any} lesson @param {import("./class_record.js").Kept} kept */
function results(view, lesson, kept) {
  const { code, day, asked } = kept;
  const file = `headlight-class-${day}`;
  const again = () => {
    forgetRecord();
    draw(view, lesson);
  };
  const blob = (/** @type {string} */ text, /** @type {string} */ type) =>
    new Blob([text], { type: `${type};charset=utf-8` });
  return make(
    "div",
    "results",
    make(
      "span",
      "",
      say("results", {
        n: asked.length === 1 ? "1 question" : `${asked.length} questions`,
        code: spelled(code),
      }),
    ),
    press("csv", "CSV", () => save(blob(csv(kept), "text/csv"), `${file}.csv`)),
    press("html", say("html"), () => save(blob(page(kept), "text/html"), `${file}.html`)),
    code !== lesson?.code && press("forget", say("forget"), again),
  );
}

/** @param {any} lesson */
const followed = ({ code }) => [make("p", "", say("in_class", { code: spelled(code) }))];

/** @param {View} view */
function free(view) {
  const failed = (problem) => (view.says.textContent = problem.message);
  const left = unfinished();
  const resume =
    left && press("resume", say("resume", { code: spelled(left.code) }), () => again(left), "main");
  const begin = press("start", say(left ? "another" : "start"), () => start().catch(failed));
  if (!left) begin.className = "main";
  const field = make("input", {
    "aria-label": say("code"),
    placeholder: "Code",
    maxlength: 16,
    autocomplete: "off",
    spellcheck: "false",
    data: { focus: "code" },
  });
  const join = make("form", "", field, make("button", { data: { focus: "join" } }, say("join")));
  join.onsubmit = async (event) => {
    event.preventDefault();
    try {
      const { code, student } = await send("join", { code: field.value });
      takePart({ code, student });
    } catch (problem) {
      failed(problem);
    }
  };
  return [make("div", "free", resume, begin, join)];
}
