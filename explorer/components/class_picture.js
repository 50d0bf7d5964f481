// @ts-check
// The frame in which this window draws a class's picture: a page without an origin, at an address of its
// own with a policy of its own. What is drawn there reaches neither this window nor the network; the
// frame stays, and each picture takes the place of the one before it.

import { letter, make } from "./mount.js";
import { sentences } from "./sentences.js";
import { variables } from "./theme.js";

const say = sentences("class");

const PAGE = "class_frame.html"; // beside this module
const LONGEST = 10_000; // ms that a frame may take for an answer
const MOST_TOKENS = 60;

/** @typedef {{ name: string, done: (what: any) => void, fail: (why: Error) => void }} Waiting */

export class PictureFrame {
  /** @param {HTMLElement} root what it stands beside @param {Record<"acted" | "reach" | "lost", () => void>} hears when its reader does something in it, wants the page, or it is no such page any more */
  constructor(root, hears) {
    const { port1: port, port2: its } = new MessageChannel();
    this.root = root;
    this.port = port;
    this.hears = hears;
    /** @type {Waiting | undefined} */
    this.waiting = undefined;
    /** @type {Record<string, string>} what the frame was told last */
    this.told = {};
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.title = say("shown");
    frame.src = `${new URL(PAGE, import.meta.url)}`;
    let isNew = true;
    frame.onload = () => {
      if (!isNew) return hears.lost(); // it went elsewhere
      isNew = false;
      frame.contentWindow?.postMessage("", "*", [its]); // which has no origin to name
    };
    port.onmessage = ({ data }) => this.heard(data);
    this.box = make("div", "shown", frame);
    this.hide();
    root.after(this.box);
    this.place();
  }

  /** @param {any} said by a page that may run a stranger's script */
  heard(said) {
    const { act } = said || {};
    if (act === "acted" || act === "reach") return this.hears[act]();
    const { waiting } = this;
    if (!waiting || said?.name !== waiting.name) return;
    this.waiting = undefined;
    if (said.failed) waiting.fail(new Error(say("gone_on")));
    else waiting.done(Array.isArray(said.made) ? said.made.slice(0, MOST_TOKENS).map(String) : []);
  }

  /** Ask the frame for something of a picture. Rejects where it does not do it. @param {string} name @param {any[]} what @returns {Promise<string[]>} */
  asked(name, ...what) {
    this.waiting?.fail(new Error(say("gone_on")));
    return new Promise((done, fail) => {
      this.waiting = { name, done, fail };
      setTimeout(fail, LONGEST, new Error(say("unreachable")));
      this.port.postMessage(what);
    });
  }

  /** Make a picture, to be shown later: what its views show. @param {string} name @param {Uint8Array} packed */
  make(name, packed) {
    this.dress();
    return this.asked(name, "picture", name, packed);
  }

  /** Lie over the page, and over nothing else; the frame is as high as the window, which views measure. */
  place() {
    const main = /** @type {HTMLElement} */ (document.querySelector("[data-testid=stMain]"));
    const { left, top, width } = main.getBoundingClientRect();
    const header = document.querySelector("[data-testid=stHeader]");
    const bar = header?.getBoundingClientRect().bottom || 0;
    const above = `${Math.max(bar, top)}px`;
    Object.assign(this.box.style, { left: `${left}px`, top: above, width: `${width}px` });
    this.tell("put", { top: above });
  }

  /** Show the picture that was made last. @param {string} name @param {boolean} isSame scrolled as the one before it */
  async show(name, isSame) {
    this.place();
    delete this.told.news; // a new picture has heard none
    if (this.box.style.visibility) Object.assign(this.box.style, { visibility: "", opacity: "0" });
    await this.asked(name, "show", name, isSame);
    this.box.style.opacity = "";
  }

  /** Nothing is shown, until another picture is. */
  hide() {
    this.box.style.visibility = "hidden";
    this.port.postMessage(["clear"]);
  }

  /** Say something to the frame, unless it was told so last. @param {string} what @param {any[]} how */
  tell(what, ...how) {
    const told = JSON.stringify(how);
    if (this.told[what] === told) return;
    this.told[what] = told;
    this.port.postMessage([what, ...how]);
  }

  /** Take the frame away. */
  end() {
    this.port.close();
    this.box.remove();
  }

  /** Let the frame look as this window does. */
  dress() {
    const { colorScheme } = getComputedStyle(this.root);
    this.tell("look", variables(this.root), colorScheme, letter());
  }
}
