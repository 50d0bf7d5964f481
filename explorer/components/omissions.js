// @ts-check
// What of a figure is not drawn, and the words for it.

import { sentences } from "./sentences.js";

const say = sentences("omissions");

/**
 * What there are fewer of: each has a sentence of its name.
 * @typedef {"rows" | "columns" | "tokens" | "queries" | "keys" | "words" | "of_text" | "vectors" | "rotations" |
 *   "facts" | "steps" | "heads" | "names" | "row_names" |
 *   "column_names" | "places" | "points" | "curves" | "guesses" | "cut" | "numbers" | "cells" | "figures" | "untitled"} Part
 */
/**
 * Parts of which some are not drawn: so many of all are; figures and numbers by their titles.
 * @typedef {{ what: Part, shown: number, all: number, titles?: string[] }} Omitted
 */

/** What is not drawn, in words. On a slide a name without room is seen to be missing between its neighbours. @param {Omitted[]} omitted */
export const spokenOmissions = (omitted) => {
  const told = omitted
    .filter(({ what }) => what !== "names")
    .map(({ what, shown, all, titles = [] }) => {
      const names = titles.filter(Boolean).join("; ");
      return say(what === "figures" && !names ? "untitled" : what, { shown, all, titles: names });
    })
    .join(", ");
  return `${told.slice(0, 1).toUpperCase()}${told.slice(1)}`;
};

/** What is left out of so many parts. @param {...[Part, number, number]} all what, how many are shown, of how many @returns {Omitted[]} */
export const omitted = (...all) =>
  all.filter(([, shown, n]) => shown < n).map(([what, shown, all]) => ({ what, shown, all }));

/** Figures that are not drawn, of so many. @param {string[]} titles @param {number} all @returns {Omitted[]} */
export const figuresOmitted = (titles, all) =>
  titles.length ? [{ what: "figures", shown: all - titles.length, all, titles }] : [];
