// @ts-check
// The page on which a student joins: at a press the code is sent, and the window goes where the class is.
// A link alone joins nobody.

import { keep, ROOT, send } from "./class_part.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("form"));
const says = /** @type {HTMLElement} */ (document.querySelector("[role=alert]"));
const field = /** @type {HTMLInputElement} */ (document.querySelector("#code"));

form.onsubmit = async (event) => {
  event.preventDefault();
  says.textContent = "Joining …";
  try {
    const { code, student, at } = await send("join", { code: field.value });
    keep({ code, student });
    location.replace(new URL(at.replace(/^\/+/, ""), ROOT));
  } catch (/** @type {any} */ problem) {
    says.textContent = problem.message;
    field.select();
  }
};
(field.value ? form.querySelector("button") : field)?.focus();
