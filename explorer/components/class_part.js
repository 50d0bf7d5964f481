// @ts-check
// What a browser keeps of its part in a class, and what it sends to the class.

import { sentences } from "./sentences.js";

const say = sentences("class");

/**
 * `key` and `watch` are a teacher's, `student` is a student's; `alone`: looks around by themselves; `phone`: a
 * phone shows the speaker what this window presents.
 * @typedef {{ code: string, key?: string, watch?: string, student?: string, ends?: number,
 *   alone?: boolean, phone?: boolean }} Part
 */

const NAME = "headlight class";
const ASIDE = "headlight class aside";
// A file holds this module in itself: it has no address of the app.
const OWN = import.meta.url;
export const ROOT = new URL("../../", /^(blob|data):/.test(OWN) ? document.baseURI : OWN);
/** The channel between the wall and a speaker's window of its browser. */
export const CHANNEL = `headlight speaker ${ROOT.pathname}`;

/** This window's part; undefined until it is read. @type {Part | null | undefined} */
let own;

/** A code as it is read out. @param {string} code */
export const spelled = (code) => `${code.slice(0, 3)}-${code.slice(3)}`;

/** The way into a class: the address that its code is typed at, and its own address as a QR code. @param {string} code */
export function wayIn(code) {
  const picture = codePicture(`${new URL(`join/${spelled(code)}`, ROOT)}`);
  return { address: `${location.host}${ROOT.pathname}join`, picture };
}

/** The address of a QR code that leads somewhere. @param {string} at */
export function codePicture(at) {
  const picture = new URL("class/code.svg", ROOT);
  picture.search = `${new URLSearchParams({ at })}`;
  return `${picture}`;
}

export const LINK = /^worksheet\/[\w-]+\?/; // the address of a page of this app that a step leads to
export const PICTURE = /^panel\/[\w.]+\?/; // the address of a picture of this app, below its own

/** @param {Storage} store @returns {Part | null} */
function stored(store) {
  try {
    const part = JSON.parse(store.getItem(NAME) || "null");
    return part && typeof part.code === "string" ? part : null;
  } catch {
    return null;
  }
}

/** The part that this window has. @returns {Part | null} */
export const part = () => (own === undefined ? (own = stored(sessionStorage)) : own);

/** The class that a teacher may go on with, from any window of this browser. @returns {Part | null} */
export function unfinished() {
  const left = stored(localStorage);
  return left?.key && (left.ends || 0) * 1000 > Date.now() ? left : null;
}

/** The same, unless this window has a part already or has put it aside. @returns {Part | null} */
export function offered() {
  const left = part() ? null : unfinished();
  return left && sessionStorage.getItem(ASIDE) !== left.code ? left : null;
}

/** Keep a part for the pages that this window opens; null for none. @param {Part | null} next */
export function keep(next) {
  own = next;
  if (next) sessionStorage.setItem(NAME, JSON.stringify(next));
  else sessionStorage.removeItem(NAME);
  if (next?.key) localStorage.setItem(NAME, JSON.stringify(next));
}

/** Offer a class in this window no more. @param {string} code */
export function setAside(code) {
  sessionStorage.setItem(ASIDE, code);
}

/** The class is over: no window of this browser goes on with it. @param {string} code */
export function forget(code) {
  if (stored(localStorage)?.code === code) localStorage.removeItem(NAME);
}

/**
 * Send something to the class. Rejects with words for the reader.
 * @param {string} what
 * @param {Record<string, any>} [fields]
 * @returns {Promise<any>}
 */
export async function send(what, fields = {}) {
  const { code, key, student } = part() || {};
  const answer = await fetch(new URL(`class/${what}`, ROOT), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code, key, student, ...fields }),
  }).catch(() => {
    throw new Error(say("unreachable"));
  });
  const made = await answer.json().catch(() => ({}));
  if (!answer.ok)
    throw Object.assign(new Error(made.problem || say("not_understood")), {
      status: answer.status,
    });
  return made;
}
