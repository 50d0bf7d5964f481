// @ts-check
// The bar of a lesson: its step on screen with what is said there, a question with its answer, a note
// for the speaker, and the way to the other steps. The arrow keys walk, but in what needs them itself. The panel
// that a step speaks of is brought into sight.

import { bus } from "./bus.js";
import { go, requestedStep } from "./class_client.js";
import { LINK, ROOT, send } from "./class_part.js";
import { typesetAlone } from "./formula.js";
import { bring } from "./in_sight.js";
import { needsArrows, plainKey, rove } from "./keys.js";
import { hear, make, mount, redraw, until } from "./mount.js";
import { spokenLine } from "./number_format.js";
import style from "./lesson_bar.css.js";
import { sentences } from "./sentences.js";
import { lettered } from "./terms.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {{ address: string, heading: string, says: string, number: string, rest: string, note: string, question: string, answer: string, done: string, panel: string, picture?: string, link?: string, formula: string, typeset?: import("./formula.js").Node | null }} Item */
/** A lesson; of a student's, steps that tell what the class is not to know yet are null. @typedef {{ id?: string, is_own?: boolean, title: string, minutes?: number, items: Item[] }} Lesson */

const say = sentences("lesson");

const EMPTY = {
  heading: "",
  says: "",
  number: "",
  rest: "",
  note: "",
  question: "",
  answer: "",
  done: "",
  formula: "",
  panel: "",
};
/** What this window gave to its class, or has of it: by which name, and the lesson. @type {{ of: string, lesson?: Lesson }} */
const shared = { of: "" };
/** The bar on the page: another one may have come while the lesson of a class was fetched. @type {View} */
let latest;

const BY = { ArrowRight: 1, ArrowLeft: -1, PageDown: 1, PageUp: -1 };

export default mount("lesson_bar", style, (view) => {
  // A page of the step before, which was under way, comes late.
  if (view.keys && (requestedStep() ?? view.header.at) !== view.header.at) return;
  const isHere = view.want === view.header.at;
  view.want = view.header.at;
  latest = view;
  if (!view.keys) listen(view);
  else if (!view.same || !isHere) {
    draw(view);
    shareWithClass(view, bus.now.lesson);
  }
});

/** @param {View} view */
function listen(view) {
  view.says = spokenLine("announced");
  view.keys = (/** @type {KeyboardEvent} */ event) => {
    if (bus.now.presenter) return; // which walks by itself
    const by = BY[/** @type {keyof typeof BY} */ (event.key)];
    if (!by || !plainKey(event) || event.shiftKey || event.defaultPrevented || needsArrows(event))
      return;
    event.preventDefault();
    walk(view, view.want + by);
  };
  addEventListener("keydown", view.keys);
  const back = (/** @type {PopStateEvent} */ event) => {
    const step = new URLSearchParams(location.search).get("lesson_step");
    if (!event.isTrusted || !step) return;
    view.want = Number(step) - 1;
    draw(view);
  };
  addEventListener("popstate", back);
  draw(view);
  hear(view, (now) => {
    shareWithClass(view, now.lesson);
    if ((view.guess || "") === (now.guess || "")) return;
    view.guess = now.guess;
    draw(view);
  });
  until(view, "keys", () => {
    removeEventListener("keydown", view.keys);
    removeEventListener("popstate", back);
    if (latest === view) bus.tell({ steps: undefined }); // else that of the next bar stands
  });
}

/** The lesson: that of the page, or the one that this window's class holds. @param {View} view @returns {Lesson} */
const lessonOf = (view) => (view.header.of_class && shared.lesson) || view.header;

/** What the class has to do with it: a teacher's window gives it to the class, a student's fetches it. @param {View} view @param {any} part */
async function shareWithClass(view, part) {
  const { title, items, of_class: isHeld } = view.header;
  if (!part || part.over || Boolean(part.key) === Boolean(isHeld)) return;
  const of = part.key ? `${part.code} ${JSON.stringify([title, items])}` : part.held;
  if (!of || shared.of === of) return;
  shared.of = of;
  view.problem = "";
  try {
    if (part.key) await send("hold", { lesson: { title, items } });
    else shared.lesson = await fetched(part);
  } catch (/** @type {any} */ problem) {
    if (problem.status >= 400 && problem.status < 500) latest.problem = problem.message;
    else shared.of = ""; // tried again with the next news
  }
  if (latest.root.isConnected) draw(latest);
}

/** The lesson that a class holds, as its students have it. @param {{ code: string, student: string }} part */
async function fetched({ code, student }) {
  const at = new URL("class/lesson", ROOT);
  at.search = `${new URLSearchParams({ code, as: student })}`;
  const answer = await fetch(at);
  if (answer.status !== 200) throw new Error(answer.statusText);
  const { title, items } = await answer.json();
  return {
    title,
    items: items.map((/** @type {Partial<Item> | null} */ each) => each && { ...EMPTY, ...each }),
  };
}

/** The address of a step, with the lesson itself. @param {View} view @param {number} at */
function addressOf(view, at) {
  const [path, query = ""] = lessonOf(view).items[at].address.split("?");
  const choices = new URLSearchParams(query);
  for (const [name, word] of Object.entries(view.header.choices)) choices.set(name, word);
  choices.set("lesson_step", `${at + 1}`);
  return `${path}?${choices}`;
}

/** What the bar stands in on the page. @param {View} view @returns {HTMLElement} */
const placeOf = ({ root }) =>
  /** @type {ShadowRoot} */ (root.getRootNode()).host.closest("[data-testid=stElementContainer]") ||
  root;

/** Go to a step; false where there is none. @param {View} view @param {number} to */
function walk(view, to) {
  if (!lessonOf(view).items[to]) return false;
  view.want = to;
  draw(view);
  go(addressOf(view, to));
  return true;
}

/** What other views hear of a step: `of` names it, by its lesson and its place. @param {Lesson} lesson @param {number} at @param {(step: number) => boolean} by */
function stepOf({ id = "", is_own: isOwn, title, minutes = 0, items }, at, by) {
  const { says, number, rest, ...item } = items[at];
  const after = items[at + 1];
  const next = after && {
    heading: after.heading,
    picture: after.picture,
    says: after.says + after.number + after.rest,
  };
  const about = { title, minutes, at, of: `${id} ${at}`, isOwn, n: items.length, next };
  return { ...item, ...about, says: says + number + rest, by };
}

/** @param {View} view */
function draw(view) {
  const { items, title } = lessonOf(view);
  const want = Math.min(view.want, items.length - 1);
  /** @type {Item} */
  const item = items[want];
  view.root.hidden = !item;
  if (!item) return redraw(view, []); // the class's lesson is on its way
  const by = (/** @type {number} */ step) => walk(view, want + step);
  const said = item.says + item.number + item.rest;
  bus.tell({ steps: stepOf(lessonOf(view), want, by) });
  if (view.sought !== item) until(view, "sight", bring(placeOf(view), item.panel));
  view.sought = item;
  const says = make("p", { class: "says", dir: "auto" }, ...lettered(item.says));
  if (item.number) says.append(make("b", "number", item.number));
  says.append(...lettered(item.rest));
  const dots = items.map((/** @type {Item | null} */ one, /** @type {number} */ at) =>
    make("button", {
      class: "dot",
      title: one?.heading,
      "aria-label": `${at + 1}. ${one?.heading ?? say("kept")}`,
      ...(one ? {} : { disabled: "" }),
      "aria-current": at === want ? "step" : undefined,
      data: { focus: `dot ${at}` },
      onclick: () => walk(view, at),
    }),
  );
  const known = dots.filter((_, at) => items[at]);
  rove(known, { current: want, columns: 1, go: (at) => walk(view, at) });
  const step = (
    /** @type {number} */ one,
    /** @type {string} */ label,
    /** @type {string} */ name,
  ) =>
    make(
      "button",
      {
        class: one > 0 ? "go main" : "go",
        "aria-label": say(name),
        title: say(name),
        data: { focus: name },
        onclick: () => by(one),
        ...(items[want + one] ? {} : { disabled: "" }),
      },
      label,
    );
  const speaks = !view.header.alone || bus.now.lesson; // a reader alone has no class
  const told = [
    item.question && opening(view, `question ${want}`, item.question, item.answer),
    speaks && item.note && opening(view, `note ${want}`, say("note"), item.note),
    speaks && item.done && make("p", "done", say("done", { when: item.done })),
    LINK.test(item.link || "") && leading(`${new URL(`${item.link}`, ROOT)}`),
    speaks && !view.header.of_class && speaking(),
  ].filter(Boolean);
  redraw(view, [
    make(
      "header",
      "",
      make("span", "name", title),
      make("span", "where", `${want + 1} / ${items.length}`),
      make("div", "dots", ...dots),
      step(-1, "‹", "before"),
      step(1, "›", "next"),
      make(
        "button",
        {
          class: "end",
          title: say("end"),
          "aria-label": say("end"),
          onclick: () => view.send("end", true),
        },
        "×",
      ),
    ),
    make("h2", { dir: "auto" }, ...lettered(item.heading)),
    says,
    ...(view.guess && item.address.includes("flow_beam=end")
      ? [make("p", { class: "says", dir: "auto" }, view.guess)]
      : []),
    ...ownFormula(item),
    ...(told.length ? [make("div", "told", ...told)] : []),
    ...(view.problem ? [make("p", { class: "problem", role: "alert" }, view.problem)] : []),
    view.says,
  ]);
  view.says.textContent = say("step", {
    at: want + 1,
    n: items.length,
    heading: item.heading,
    says: said,
  });
}

/** A formula of a step: typeset, or the line of it where a class has sent that. @param {Item} item */
const ownFormula = ({ formula, typeset }) =>
  typeset ? typesetAlone(typeset) : formula ? [make("p", "says", formula)] : [];

/** The way to the page that a step speaks of; the step stays. @param {string} href */
const leading = (href) =>
  Object.assign(make("a", { href, data: { focus: "link" } }, say("worksheet")), {
    target: "_blank",
  });

/** The press that opens the speaker's window, which the presenter hears. */
const speaking = () =>
  make(
    "button",
    {
      class: "small",
      type: "button",
      data: { focus: "speaker" },
      onclick: () => bus.tell({ speaker: (bus.now.speaker || 0) + 1 }),
    },
    say("speaker"),
  );

/** What opens at a press and stays as it was left. @param {View} view @param {string} name @param {string} label @param {string} inside */
function opening(view, name, label, inside) {
  view.open ||= {};
  const details = make(
    "details",
    { ...(view.open[name] ? { open: "" } : {}) },
    make("summary", { data: { focus: name }, dir: "auto" }, ...lettered(label)),
    inside && make("p", { dir: "auto" }, ...lettered(inside)),
  );
  details.addEventListener("toggle", () => (view.open[name] = details.open));
  return details;
}
