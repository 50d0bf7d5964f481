// @ts-check
// A file that is dropped anywhere on the page: the app opens it as its own fields do, and no browser leaves
// the page for it.

import { go } from "./class_client.js";
import { decoded } from "./file_upload.js";
import { make } from "./mount.js";
import { rootOf } from "./presenter_pictures.js";
import { sentences } from "./sentences.js";

const say = sentences("dropped");
const FIELD = "[data-testid=stFileUploaderDropzone]"; // which takes what is dropped on it by itself
const TEXT = /\.(txt|text|md|csv|tsv)$/i;
const LESSONS = "/learn"; // the address of the tab that opens one
const [LOOKS, BETWEEN] = [600, 100]; // at a page that is on its way, and ms between two
const TOLD = 8000; // ms that a sentence stands

/** The field of the text. @typedef {{ longest: number, draw: (text: string) => void }} Field */
/** @type {Field | undefined} */
let field;

/** Take what is dropped on the page. @param {Field} ofText */
export function takeDrops(ofText) {
  const isFirst = !field;
  field = ofText;
  if (!isFirst) return;
  const isFile = (/** @type {DragEvent} */ event) =>
    event.dataTransfer?.types.includes("Files") &&
    !(/** @type {Element} */ (event.composedPath()[0]).closest?.(FIELD));
  addEventListener("dragover", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
  });
  addEventListener("drop", async (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    const [file, ...others] = event.dataTransfer?.files || [];
    if (!file) return;
    await open(file, /** @type {Field} */ (field));
    if (others.length) tell(say("several", { name: file.name }));
  });
}

/** @param {File} file @param {Field} field */
async function open(file, { longest, draw }) {
  if (/\.npz$/i.test(file.name)) return openRecording(file);
  if (/\.json$/i.test(file.name)) return openLesson(file);
  const isText = TEXT.test(file.name) || file.type.startsWith("text/");
  const most = 4 * (longest + 1); // bytes: no character takes more
  const text = isText ? decoded(await file.slice(0, most).arrayBuffer(), file.size > most) : null;
  if (text === null || text.includes("\0")) return tell(say("other", { name: file.name }));
  draw(text.trim());
}

/** @param {File} file */
async function openRecording(file) {
  const input = () => document.querySelector(`${FIELD} input[type=file]`);
  if (!input()) {
    const menu = () => document.querySelector(".st-key-model_menu button");
    const button = () => document.querySelector(".st-key-open-recording button");
    // What is in the menu comes piece by piece: it is whole when its run has ended.
    const isRunning = () => document.querySelector("[data-test-script-state=running]");
    const isWhole = () => document.querySelector(".st-key-models") && !isRunning();
    press(menu());
    if (!(await there(() => button() || isWhole()))) return tellLate(file);
    if (!button()) {
      press(menu());
      return tell(say("no_recordings"));
    }
    press(button());
  }
  give(await there(input), file);
}

/** @param {File} file */
async function openLesson(file) {
  const input = () => {
    const place = document.querySelector(
      ".st-key-lesson_file [data-testid=stBidiComponentIsolated]",
    );
    return place && rootOf(/** @type {HTMLElement} */ (place))?.querySelector("input[type=file]");
  };
  if (!input()) {
    const now = [...new URLSearchParams(location.search)];
    const kept = now.filter(([name]) => ["text", "model"].includes(name));
    go(`${LESSONS}?${new URLSearchParams([...kept, ["my_lesson", "1"]])}`);
  }
  give(await there(input), file);
}

const press = (/** @type {Element | null} */ one) =>
  /** @type {HTMLElement | null} */ (one)?.click();

/** What `find` finds when it is there, undefined where it does not come. @template T @param {() => T} find */
async function there(find) {
  for (let tries = 0; tries < LOOKS; tries++) {
    const found = find();
    if (found) return found;
    await new Promise((done) => setTimeout(done, BETWEEN));
  }
}

/** Give a file to a field as if it had been chosen there, or say that none came. @param {Element | null | undefined} input @param {File} file */
function give(input, file) {
  if (!input) return tellLate(file);
  const list = new DataTransfer();
  list.items.add(file);
  /** @type {HTMLInputElement} */ (input).files = list.files;
  input.dispatchEvent(new InputEvent("change", { bubbles: true }));
}

/** @param {File} file */
const tellLate = ({ name }) => tell(say("late", { name }));

/** @type {HTMLElement | undefined} */
let line;
let told = 0;

/** Say something at the foot of the window, for a while. @param {string} sentence */
function tell(sentence) {
  line ||= make("div", { id: "headlight-says", role: "status" });
  if (!line.isConnected) document.body.append(line);
  line.textContent = sentence;
  clearTimeout(told);
  told = setTimeout(() => line && (line.textContent = ""), TOLD);
}
