// @ts-check
// This window's part in a class: what its browser keeps of it, the line on which it hears of it, and
// the address that teacher and students share.

import { announce, isRunning, within } from "./optimistic_updates.js";
import { bus } from "./bus.js";
import { ROOT, forget, keep, part, send, setAside } from "./class_part.js";
import { sentences } from "./sentences.js";

const say = sentences("class");

export { ROOT, forget, keep, part, send };
export { offered, spelled, unfinished, wayIn } from "./class_part.js";

/**
 * @typedef {import("./class_part.js").Part} Part
 * @typedef {{ at: string, number: number, open: boolean, revealed: boolean, question: any, tally?: any[],
 *   picture?: string, of?: string, stays?: boolean, many?: number, here?: number, mine?: number | string | null, over?: boolean }} Seen what the server says of the class
 */

const SOON = 80; // ms after a change of the address, in which others of the same step may follow
const LATER = 700; // ms in which a page that was just opened writes what it shows
const DESK = "/classroom"; // where a teacher prepares; a class is not led there
// Students' pages come one after another, each so many ms of the server's time. Where they are more
// than a few, the teacher's picture stands in for a page until its student presses it; where none
// comes within so many ms, their pages come after all.
const [A_PAGE, FEW, NO_PICTURE] = [45, 8, 10_000];
const LOOKS = [2, 10]; // at a page: once when it seems to be there, and again where more has come to it
const ANEW = 2500; // ms between two looks at what a page shows that no address brings
const NOTHING = new Uint8Array(); // of a page that is no picture
const AGAIN = [500, 1000, 2000, 4000, 8000]; // ms between tries of what did not arrive
const BEHIND = 2000; // ms after which a page that has not come is worth a word
const UNANSWERED = 15_000; // ms after which a page that has not come is requested once more
const SILENCE = 50_000; // ms without a sign of life, which comes every 20 s, after which a line is lost
const MODIFIERS = ["Shift", "Control", "Alt", "Meta"]; // keys that do nothing by themselves
const AROUND = "[data-testid=stHeader], [data-testid=stSidebar]"; // a page
const STATE = "data-test-connection-state"; // Streamlit's word for its own connection

/** What is true in this window. `goal`: the address that was requested and whose page has not begun;
 * `waits`: that page is not requested until its student presses the teacher's picture, or a time is
 * over; `holds`: the page on screen holds what the class went on to; `before`: the address last seen of a page that a class is led to; `subject`: text and model on
 * screen, null where no address can carry them; `defaults` and `texts`: what an address with choices means that
 * says no text and model, by its page where that is another text; `openings`: the same of a bare address.
 * @type {{ line?: EventSource, sent: string, gone: string, acted: boolean, moving: boolean,
 *   picture?: Promise<any>, timer: any, turn: any, late: any, silent: any, goal: string, waits: boolean, holds: boolean,
 *   by: "replaceState" | "pushState", before: string,
 *   shown: string, resumed: boolean, defaults: Record<string, string>,
 *   texts: Record<string, string>, openings: Record<string, Record<string, string>>,
 *   subject: Record<string, string> | null }} */
const own = {
  sent: "",
  gone: "",
  acted: false,
  moving: false,
  timer: 0,
  turn: 0,
  late: 0,
  silent: 0,
  goal: "",
  waits: false,
  holds: false,
  by: "pushState",
  before: "",
  shown: "",
  resumed: false,
  defaults: {},
  texts: {},
  openings: {},
  subject: {},
};

/** Offer a class in this window no more. @param {string} code */
export function putAside(code) {
  setAside(code);
  tell({});
}

/** Take part from here on, or with null no longer. @param {Part | null} next */
export function takePart(next) {
  if (!next) reach(); // on from what is on screen
  keep(next);
  own.line?.close();
  own.line = undefined;
  own.sent = own.gone = own.shown = own.goal = "";
  own.resumed = own.waits = false;
  clearTimeout(own.turn);
  tell({});
  if (next) open();
}

/** Lead a class that runs, from where it is. @param {Part} next */
export function resume(next) {
  takePart(next);
  own.resumed = true;
}

/** A new class, which begins where this window is. Rejects with words for the reader. */
export async function start() {
  const made = await send("start");
  const at = place("");
  if (at) await send("move", { code: made.code, key: made.key, at });
  takePart(made);
  own.sent = at;
}

/** What this window says of the class: to every view in it. @param {Record<string, any>} more */
function tell(more) {
  const kept = part();
  bus.tell({ lesson: kept && { ...(more.fresh ? {} : bus.now.lesson), ...kept, ...more } });
}

function open() {
  const kept = part();
  if (!kept || own.line) return;
  const at = new URL("class/news", ROOT);
  at.search = `${new URLSearchParams({ code: kept.code, as: kept.watch || kept.student || "" })}`;
  const line = (own.line = new EventSource(at));
  // Packets may be lost without a word; then the browser itself would wait for minutes.
  const lives = () => {
    clearTimeout(own.silent);
    own.silent = setTimeout(() => {
      if (own.line !== line) return;
      line.close();
      own.line = undefined;
      tell({ lost: true });
      open();
    }, SILENCE);
  };
  lives();
  line.onopen = lives;
  line.addEventListener("beat", lives);
  line.onmessage = (event) => {
    lives();
    heard(JSON.parse(event.data));
  };
  line.onerror = () => {
    tell({ lost: true });
    if (line.readyState !== EventSource.CLOSED || own.line !== line) return;
    own.line = undefined; // what the browser gives up is asked for again here
    setTimeout(open, AGAIN[2]);
  };
}

/** @param {Seen} seen */
function heard(seen) {
  if (seen.over) {
    own.line?.close();
    clearTimeout(own.silent);
    forget(part()?.code || "");
    tell({ over: true, question: null, lost: false });
    return;
  }
  const last = bus.now.lesson || {};
  const mine = "mine" in seen ? seen.mine : last.number === seen.number ? last.mine : null;
  tell({ ...seen, tally: seen.tally, mine, lost: false });
  const { code, key } = part() || {};
  if (key && code && seen.question && !seen.open)
    import("./class_record.js").then(({ note }) => note(code, seen)); // for who leads a class alone
  if (!part()?.key) return follow();
  if (!seen.at) own.sent = own.shown = ""; // the class was made anew: it is nowhere yet
  const resumed = own.resumed && seen.at;
  own.resumed = false;
  if (!resumed) return publish(0);
  own.sent = seen.at;
  go(seen.at);
}

/** Where this window is, as the class calls it. */
export const here = () => `/${location.pathname.slice(ROOT.pathname.length)}${location.search}`;

/** The same, as soon as another address is requested. */
export const where = () => {
  const { goal, waits } = own;
  return goal && !waits ? `/${goal.slice(`${ROOT}`.length)}` : here();
};

/** The desk's address with text and model on screen: a bare one would mean those of a first visit. */
export const desk = () => `${DESK}?${new URLSearchParams(own.subject || {})}`;

/** Whether Streamlit's own connection stands. */
const connected = () => document.querySelector(`[${STATE}]`)?.getAttribute(STATE) === "CONNECTED";

/**
 * Where the class of this window's teacher is led: here. From the desk it is led on only where text or
 * model are others by now, on the same page. "" where no address can carry the text.
 * @param {string} [last] where the class was led last, "" for a new one
 */
function place(last = own.sent || bus.now.lesson?.at || "") {
  const { subject } = own;
  if (!subject || !where().startsWith(DESK)) return subject ? where() : "";
  const fits = (/** @type {string} */ at) =>
    Object.entries(subject).every(([name, value]) => explicit(at).searchParams.get(name) === value);
  if (last && fits(last)) return last;
  const page = (last || own.before).split("?")[0] || "/";
  // The desk has yet to write text and model into its own address, right after a step to it.
  const whole = `${page}${location.search}`;
  return fits(whole) ? whole : `${page}?${new URLSearchParams(subject)}`;
}

/** An address with what goes without saying said. @param {string} at */
function explicit(at) {
  const to = new URL(at.replace(/^\/+/, ""), ROOT);
  const tab = to.searchParams.get("tab");
  const path = `/${to.pathname.slice(ROOT.pathname.length)}`;
  const page = tab ? `${path}?tab=${tab}` : path;
  const text = own.texts[page];
  const isBare = [...to.searchParams.keys()].every((name) => name === "tab");
  const meant = isBare
    ? (own.openings[page] ?? own.openings["/"])
    : { ...own.defaults, ...(text && { text }) };
  for (const [name, value] of Object.entries(meant))
    if (!to.searchParams.has(name)) to.searchParams.set(name, value);
  to.searchParams.sort();
  return to;
}

/**
 * Go to an address of the app as its own links do, without loading the page anew.
 * @param {string} at
 * @param {"replaceState" | "pushState"} [by] pushState: Back leads back
 */
export function go(at, by = "pushState") {
  const to = explicit(at);
  if (to.origin !== location.origin || !to.pathname.startsWith(ROOT.pathname)) return;
  if (`${to}` === `${explicit(here())}` && !own.goal) return;
  clearTimeout(own.turn);
  Object.assign(own, { acted: false, waits: false, goal: `${to}`, by });
  travel();
}

// Streamlit drops a step that it learns of while its connection is broken: such a step is made when
// the connection stands again, and one whose page did not begin is made once more.
function travel() {
  clearTimeout(own.late);
  const { goal, by, waits } = own;
  if (!goal || waits) return;
  own.late = setTimeout(() => {
    tell({ behind: Boolean(own.goal) });
    own.late = setTimeout(() => own.goal && (isRunning() || travel()), UNANSWERED);
  }, BEHIND);
  if (!connected()) return tell({ behind: true });
  if (goal !== `${explicit(here())}`) history[by](history.state, "", goal);
  dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
}

/** The step of a lesson that was requested and whose page has not begun, from 0; undefined where none was. */
export function requestedStep() {
  const step = own.goal && new URL(own.goal).searchParams.get("lesson_step");
  return step ? Number(step) - 1 : undefined;
}

/** A run of the page has begun for this address. @param {string} at */
function began(at) {
  const { goal, waits } = own;
  if (goal && `${explicit(at)}` !== goal) return;
  clearTimeout(own.late);
  clearTimeout(own.turn);
  own.goal = "";
  own.waits = false;
  // A run of the page before may have written its own address over this one.
  if (goal && !waits && `${explicit(here())}` !== goal)
    history.replaceState(history.state, "", goal);
  if (bus.now.lesson?.behind) tell({ behind: false });
}

/** Streamlit's connection is there, or is not. */
function linked() {
  if (!part()) return;
  const cut = !connected();
  if (Boolean(bus.now.lesson?.cut) !== cut) tell({ cut });
  if (!cut) travel();
}

/** To where the class is, where this window has not been led there yet. */
function follow() {
  const kept = part();
  const { at, of, picture, many = 1 } = bus.now.lesson || {};
  if (!kept?.student || kept.alone || !at) return;
  const isNew = own.gone !== at;
  const isKnown = of === at; // whether the teacher's window has a picture there
  if (isNew) {
    own.gone = at;
    own.waits = many > FEW && !isAt(at);
    if (own.waits) own.goal = `${explicit(at)}`;
    own.holds = isWithin(here(), at);
    if (own.holds) announce(explicit(at));
  }
  if (!isNew && !(own.waits && isKnown)) return;
  clearTimeout(own.turn);
  if (own.waits && isKnown && picture) return;
  const wait = own.waits && !isKnown ? NO_PICTURE : 0;
  own.turn = setTimeout(
    () => part()?.student && !part()?.alone && go(at, "replaceState"),
    wait + Math.random() * A_PAGE * (many - 1),
  );
}

/** True while this window's own page waits until its student presses the picture that stands in for it. */
export const waits = () => own.waits;

/** Request the page that waits. */
export function reach() {
  if (own.waits) go(own.gone, "replaceState");
}

/** Request the page in a while, for a picture that is gone, unless another one comes before. */
export function reachLater() {
  clearTimeout(own.turn);
  own.turn = setTimeout(reach, NO_PICTURE);
}

/** What is shown already goes to where the class is. @param {string} at */
export const lead = (at) => announce(explicit(at));

/** True where this window is at an address of the class. @param {string} at */
export const isAt = (at) => `${explicit(here())}` === `${explicit(at)}`;

/** True for two addresses of the class that are one page, text and picture. @param {string} one @param {string} other */
export const isWithin = (one, other) => within(explicit(one), explicit(other));

/**
 * The picture of the class that a student's window may show until its own page is there: its name,
 * undefined where there is none.
 * @param {any} lesson
 */
export function pictureOf(lesson) {
  const { student, alone, over, picture, of, at, stays } = lesson || {};
  const isWanted = own.waits || !own.holds || stays;
  const fits = isWanted && student && !alone && !over && picture && of && at;
  return fits && isWithin(of, at) ? picture : undefined;
}

/** The bytes of a picture. @param {string} name @returns {Promise<Uint8Array>} */
export async function fetched(name) {
  const kept = part();
  const at = new URL("class/picture", ROOT);
  at.search = `${new URLSearchParams({ code: kept?.code || "", as: kept?.student || "", name })}`;
  const answer = await fetch(at);
  if (answer.status !== 200) throw new Error(say("gone_on"));
  return new Uint8Array(await answer.arrayBuffer());
}

/** Let the class see what this window shows at an address, once it does; nothing, where that is no picture. @param {string} at */
async function show(at) {
  own.shown = at;
  const { code = "", key = "" } = part() || {};
  const still = () => own.shown === at && within(explicit(here()), explicit(at));
  const { atRest, isOfWindow, taken } = await import("./class_snapshot.js"); // for who leads a class alone
  const to = new URL("class/show", ROOT);
  to.search = `${new URLSearchParams({ code, at })}`;
  const headers = { "Content-Type": "application/octet-stream", "X-Headlight-Key": key };
  const sent = (/** @type {Uint8Array} */ body) =>
    (own.picture = fetch(to, { method: "POST", headers, body: /** @type {any} */ (body) }).catch(
      () => {},
    ));
  let last = -1;
  for (const looks of LOOKS) {
    if (!(await atRest(still, looks))) {
      if (own.shown === at) own.shown = ""; // it was left: where it comes back, it is shown anew
      return;
    }
    const body = (await taken()) || NOTHING;
    await own.picture; // one at a time, so that they arrive in their order
    if (!still()) return;
    if (body.length === last) continue;
    // A page that turns to another one is empty for a moment.
    if (body === NOTHING && (last >= 0 || looks !== LOOKS.at(-1))) continue;
    last = body.length;
    await sent(body);
  }
  to.searchParams.set("stays", "1");
  let before = "";
  for (; still(); await new Promise((done) => setTimeout(done, ANEW))) {
    const body = isOfWindow() && (await taken());
    if (!body || `${body}` === before || !still()) continue;
    before = `${body}`;
    await sent(body);
  }
}

/** Look around alone, or come back. @param {boolean} alone */
export function wander(alone) {
  const kept = part();
  if (!kept?.student || !!kept.alone === alone) return;
  if (alone) reach(); // on from what is on screen
  keep({ ...kept, alone });
  own.gone = "";
  if (alone) clearTimeout(own.turn);
  tell({ behind: false });
  follow();
}

/** Tell the class where its teacher is, after so many ms. @param {number} wait @param {number} [tries] */
function publish(wait, tries = 0) {
  clearTimeout(own.timer);
  own.timer = setTimeout(async () => {
    const at = place();
    if (!part()?.key || bus.now.lesson?.over) return;
    tell({ unfit: !at });
    if (at && at === own.sent && at === here() && at !== own.shown) show(at).catch(() => {});
    if (!at || at === own.sent) return;
    if (own.moving) return publish(SOON, tries); // one at a time, so that they arrive in their order
    own.moving = true;
    try {
      await send("move", { at });
      own.sent = at;
      if (at === here()) show(at).catch(() => {}); // students' own pages are on their way
    } catch (/** @type {any} */ problem) {
      if (problem.status && problem.status < 500) return; // the class has ended: its line says so
      publish(AGAIN[Math.min(tries, AGAIN.length - 1)], tries + 1);
    } finally {
      own.moving = false;
    }
  }, wait);
}

/** True for what is done to a page, and not to the links around it. @param {Event} event */
const isOfPage = (event) =>
  !event.composedPath().some((each) => each instanceof Element && each.matches(AROUND));

/** Its reader does something in this window. @param {boolean} [ofPage] to its page, or to the picture that stands in for it */
export function acted(ofPage = true) {
  if (own.waits && ofPage) reach();
  else own.acted = true;
}

/** The address has changed. @param {string} page the one before @param {string} search what it showed */
function moved(page, search) {
  const kept = part();
  // A page that was just opened has yet to write what it shows, where the last one had something to write.
  const bare = page !== location.pathname && !location.search && search;
  if (!here().startsWith(DESK)) own.before = here();
  if (kept?.key) publish(bare ? LATER : SOON);
  else if (kept?.student && own.acted) wander(true);
}

/**
 * From here on this window takes its part, and follows or leads.
 * @param {{ defaults: Record<string, string>, texts: Record<string, string>,
 *   openings: Record<string, Record<string, string>>, subject: Record<string, string> | null, at: string }} header what an address means that does not
 *   say it, text and model on screen, and the address of the page's run
 * @param {(event: Event) => boolean} outside true for what a reader does to the app itself
 */
export function takesPart({ defaults, texts, openings, subject, at }, outside) {
  const first = !Object.keys(own.defaults).length;
  Object.assign(own, { defaults, texts, openings, subject });
  began(at);
  if (first) {
    if (!here().startsWith(DESK)) own.before = here();
    const watch = { subtree: true, attributeFilter: [STATE] };
    new MutationObserver(linked).observe(document.body, watch);
    addEventListener("storage", () => tell({}));
    for (const name of /** @type {const} */ (["pushState", "replaceState"])) {
      const change = history[name].bind(history);
      history[name] = (state, unused, url) => {
        const { pathname, search } = location;
        change(state, unused, url);
        moved(pathname, search);
      };
    }
    addEventListener("popstate", (event) => {
      if (!event.isTrusted) return;
      own.goal = ""; // the reader's Back is the last wish
      own.waits = false;
      moved("", "");
    });
    const acts = (/** @type {Event} */ event) => {
      const key = /** @type {KeyboardEvent} */ (event).key;
      if (outside(event) && !MODIFIERS.includes(key)) acted(isOfPage(event));
    };
    for (const act of ["pointerdown", "keydown"]) addEventListener(act, acts, true);
    tell({});
    open();
  } else if (part()?.key) publish(SOON);
}
