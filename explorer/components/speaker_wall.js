// @ts-check
// What the window on the wall tells its speaker's window: the slide with note, question and answer, the step
// that comes, the clock, and the votes of its class. A window of this browser hears it on a channel; a phone
// through the class, which hands it to whoever has the teacher's word. Keys come back on both ways.

import { bus, listen } from "./bus.js";
import { start } from "./class_client.js";
import { CHANNEL, ROOT, keep, part } from "./class_part.js";
import { press } from "./class_step.js";

/**
 * A slide: its headline, what stands below it, and its picture as SVG, "" where it is none that can be sent, null
 * while it is drawn. `asks`, `words` and `rows`: a question in its place, what is offered and how it was answered;
 * `beside`: a question with its answers; `training`: what a live training does on a press; `dark`: the wall is black.
 * @typedef {{ head: string, caption: string, svg: string | null, paper: string, ink: string, dark: boolean,
 *   asks: string, words?: string[], rows?: any[], beside?: any, training?: string }} Slide
 * What a speaker's window shows. `on`: the wall presents; `began`: when the clock began, in ms.
 * @typedef {{ wall: string, on: boolean, began: number, slide?: Slide, steps?: any, lesson?: any,
 *   phone?: { code: string, watch: string } }} Shown
 */

const KEPT = "headlight speaker"; // in this window's store: it has a speaker's window, and when its clock began
// What is told of it; with its word the speaker's window strikes what was typed.
const OF_CLASS = "code watch here number open revealed question tally over".split(" ");
const AGAIN = 1000; // ms after which what did not arrive is sent once more

const wall = `${Math.random()}`; // this window among those of its browser
/** @type {{ channel?: BroadcastChannel, act: (key: string) => void, told: string, pressed?: number, code: string, sending: boolean, unsent: boolean }} */
const own = {
  act: () => {},
  told: "",
  code: "",
  sending: false,
  unsent: false,
};

/** When the clock of a lesson began, undefined where it did not yet. @returns {{ title: string, at: number } | undefined} */
function clock() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) || "null")?.began;
  } catch {
    return undefined;
  }
}

/** True for another lesson than the one whose clock runs. @param {any} steps */
const isOther = (steps) => Boolean(steps && clock()?.title !== steps.title);

/** The clock begins now. */
const begin = () =>
  sessionStorage.setItem(
    KEPT,
    JSON.stringify({
      began: { title: bus.now.steps?.title || "", at: Date.now() },
    }),
  );

/** True where this window has had a speaker's window. */
export const isSpoken = () => sessionStorage.getItem(KEPT) !== null;

/** From here on the speaker's window is told what this one shows, and its keys are pressed here. @param {(key: string) => void} act */
export function speak(act) {
  own.act = act;
  if (own.channel) return;
  if (!isSpoken()) begin();
  own.channel = new BroadcastChannel(CHANNEL);
  own.channel.onmessage = ({ data }) => {
    if (data.asks) own.channel?.postMessage(shown());
    else if (data.press && data.wall === wall) pressed(data.press);
  };
  addEventListener("pagehide", () => own.channel?.postMessage({ wall, gone: true }));
  listen(({ lesson }) => {
    far(lesson);
    tell();
  });
  tell();
}

/** What is shown now. @returns {Shown} */
function shown() {
  const { slide, steps, lesson, presenter } = bus.now;
  const { by, ...told } = steps || {};
  const { code = "", watch = "", phone } = part() || {};
  const about = lesson?.key && OF_CLASS.map((name) => [name, lesson[name]]);
  return {
    wall,
    on: Boolean(presenter),
    began: isOther(steps) ? 0 : clock()?.at || 0,
    slide: presenter ? slide : undefined,
    steps: steps && told,
    lesson: about && Object.fromEntries(about),
    phone: phone && watch ? { code, watch } : undefined,
  };
}

/** Tell what is new. */
function tell() {
  const { steps, presenter } = bus.now;
  if (presenter && isOther(steps)) begin();
  const next = shown();
  const told = JSON.stringify(next);
  if (told === own.told) return;
  own.told = told;
  own.channel?.postMessage(next);
  if (next.phone) relay();
}

/** Tell the class, which hands it to a phone: one thing at a time, and the last one in any case. */
async function relay() {
  own.unsent = true;
  if (own.sending) return;
  own.sending = true;
  while (own.unsent) {
    own.unsent = false;
    const { code = "", key = "" } = part() || {};
    const { phone, lesson, ...told } = shown(); // the class itself says what is voted
    const whole = new Blob([JSON.stringify(told)]).stream();
    const zipped = new Response(whole.pipeThrough(new CompressionStream("gzip")));
    const to = new URL("class/speak", ROOT);
    to.search = `${new URLSearchParams({ code })}`;
    const headers = {
      "Content-Type": "application/octet-stream",
      "X-Headlight-Key": key,
    };
    const init = { method: "POST", headers, body: await zipped.arrayBuffer() };
    const status = await fetch(to, init).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status && status < 500) continue;
    own.unsent = true;
    await new Promise((done) => setTimeout(done, AGAIN));
  }
  own.sending = false;
}

/** The keys that a phone pressed since the last news of the class. @param {any} lesson */
function far(lesson) {
  if (!lesson?.key || lesson.pressed === undefined) return;
  // What was pressed before this window was there is not pressed once more.
  const isNew = own.code !== lesson.code || own.pressed === undefined;
  const n = isNew ? 0 : lesson.pressed - /** @type {number} */ (own.pressed);
  Object.assign(own, { code: lesson.code, pressed: lesson.pressed });
  if (n > 0) for (const key of lesson.presses.slice(-n)) pressed(key);
}

/** @param {string} key */
function pressed(key) {
  const { lesson } = bus.now;
  const leads = lesson?.key && !lesson.over;
  const still = () => {};
  if (key === "0") {
    begin();
    tell();
  } else if (key === "c" || key === "h") {
    const there = leads ? Promise.resolve() : start();
    there
      .then(() => key === "h" && keep({ .../** @type {any} */ (part()), phone: true }))
      .then(tell)
      .catch(still);
  } else if ("vart".includes(key)) press(key);
  else own.act(key);
}
