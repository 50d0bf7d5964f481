// @ts-check
// While a class is asked what the model predicts, every view that tells it is covered, in each of the
// class's windows, until the answer is shown.

import { bus, listen } from "./bus.js";
import { sentences } from "./sentences.js";

const say = sentences("class");

const GIVE_AWAY = ["pictures", "share"]; // views that hand out pictures of what is covered
const ON = "data-headlight-covered"; // on the document, for what is no view of ours

/** True while the class's question is about a prediction and its answer is not shown. @param {any} lesson */
export const isCovering = (lesson) =>
  Boolean(lesson?.question?.covers && !lesson.revealed && !lesson.over);

/**
 * Cover a view while that is so, if it tells a prediction.
 * @param {import("./mount.js").View} view
 * @returns {() => void} ends it
 */
export function covers(view) {
  const { root, header, name } = view;
  if (!header.predicts && !GIVE_AWAY.includes(name)) return () => {};
  const set = (/** @type {Record<string, any>} */ { lesson }) => {
    const on = isCovering(lesson);
    if (root.inert !== on) root.inert = on;
    root.classList.toggle("covered", on);
    if (on) root.dataset.cover = say("covered");
  };
  set(bus.now);
  const end = listen(set);
  return () => {
    end();
    root.inert = false;
    root.classList.remove("covered");
  };
}

/** The document says so too. @param {any} lesson */
export const coverPage = (lesson) =>
  document.documentElement.toggleAttribute(ON, isCovering(lesson));
