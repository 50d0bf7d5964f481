// @ts-check
// Which formulas stand beside a picture, and which of them have their numbers in it.

/** @typedef {import("./formula.js").Formula} Formula */
/** @typedef {{ framed?: number[][], figures?: any[] }} Figure */

/** Whether a figure has a frame around a number to which a formula comes. @param {Figure} figure @returns {boolean} */
const hasFrame = ({ framed = [], figures = [] }) => framed.length > 0 || figures.some(hasFrame);

/**
 * The formulas beside a frame of a slider: of one that has its own these, the last with numbers where they
 * stand in its picture.
 * @param {Formula[]} formulas @param {any} [frame] @returns {Formula[]}
 */
export function besideFrame(formulas, frame) {
  const shown = frame?.formulas || [];
  if (!shown.length) return formulas;
  const inPicture = [...frame.figures, frame.beside || {}].some(hasFrame);
  return formulas
    .filter(({ id }) => shown.includes(id))
    .map((one) =>
      inPicture && one.id === shown[shown.length - 1] ? one : { ...one, numbers: [] },
    );
}
