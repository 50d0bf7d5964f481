// @ts-check
// Sentences of explorer/wording/sentences/browser.toml, as templates with named slots.

import browser from "./browser.toml.js";

/**
 * The sentences of a part: `text("joined", { n: 2 })` fills the slots of one.
 * @param {string} part
 * @returns {(name: string, slots?: Record<string, unknown>) => string}
 */
export const sentences = (part) => (name, slots) =>
  browser[part][name].replace(/{(\w+)}/g, (_, slot) => `${slots?.[slot]}`);
