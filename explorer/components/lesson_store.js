// @ts-check
// The reader's own lessons in the store of their browser, each by its name: what the page has of one is written
// there, and what is there is told once. A lesson that another window has changed meanwhile is not written over:
// this window's stands beside it.

import { make, mount } from "./mount.js";
import style from "./lesson_order.css.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("lesson");

const KEY = "headlight lesson "; // before the name of a lesson in the store
/** What this window last read or wrote, by the name of the lesson. @type {Map<string, string>} */
const saw = new Map();

/** @param {string} name @returns {{ at: number, text: string } | undefined} */
function stored(name) {
  try {
    const { at, text } = JSON.parse(localStorage.getItem(KEY + name) || "");
    return typeof text === "string" && Number.isFinite(at) ? { at, text } : undefined;
  } catch {
    return undefined;
  }
}

/** All lessons, [name, text], the one that was written last at the end. */
function all() {
  const names = Object.keys(localStorage).filter((key) => key.startsWith(KEY));
  const found = names.flatMap((key) => {
    const name = key.slice(KEY.length);
    const one = stored(name);
    return one ? [{ name, ...one }] : [];
  });
  for (const { name, text } of found) saw.set(name, text);
  return found.sort((a, b) => a.at - b.at).map(({ name, text }) => [name, text]);
}

/** Write a lesson; the name that it has there. @param {string} name @param {string} text */
function save(name, text) {
  const there = stored(name);
  const known = saw.get(name);
  const isOther = there && known !== undefined && there.text !== known && there.text !== text;
  const own = isOther ? `${name}-${Math.random().toString(36).slice(2, 8)}` : name;
  if (there?.text !== text || isOther)
    localStorage.setItem(KEY + own, JSON.stringify({ at: Date.now(), text }));
  saw.set(own, text);
  return own;
}

export default mount("store", style, (view) => {
  const { name, text, forgotten, asks, is_read: isRead } = view.header;
  let problem = "";
  let own = name;
  try {
    for (const each of forgotten) localStorage.removeItem(KEY + each);
    if (name) own = save(name, text);
  } catch {
    problem = say("not_kept"); // the store is full, or closed
  }
  view.root.replaceChildren(...(problem ? [make("p", { role: "alert" }, problem)] : []));
  const renamed = own === name ? undefined : [name, own];
  if (!renamed && (isRead || view.told)) return;
  const lessons = problem ? [] : all();
  view.told = true;
  if (renamed || asks || lessons.some(([each]) => each !== name))
    view.send("read", { lessons, renamed });
});
