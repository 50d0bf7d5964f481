// @ts-check
// Which formulas stand beside a picture, and which of them have their numbers in it.

/** @typedef {import("./formula.js").Formula} Formula */
/** @typedef {{ framed?: number[][], figures?: any[] }} Figure */

/** Whether a figure has a frame around a number to which a formula comes. @param {Figure} figure @returns {boolean} */
const hasFrame = ({ framed = [], figures = [] }) => framed.length > 0 || figures.some(hasFrame);

/**
 * The formulas beside a frame of a slider: of one that has its own these, the last with numbers where they
 * stand in its picture; none of one whose formulas are null.
 * @param {Formula[]} formulas @param {any} [frame] @returns {Formula[]}
 */
export function besideFrame(formulas, frame) {
  if (frame?.formulas === null) return [];
  const shown = frame?.formulas || [];
  if (!shown.length) return formulas;
  const inPicture = [...frame.figures, frame.beside || {}].some(hasFrame);
  return formulas
    .filter(({ id }) => shown.includes(id))
    .map((one) =>
      inPicture && one.id === shown[shown.length - 1] ? one : { ...one, numbers: [] },
    );
}

/** A figure without the frames of what formulas come to. @param {Figure} figure @returns {Figure} */
const unframed = ({ figures, ...figure }) => ({
  ...figure,
  framed: [],
  ...(figures && { figures: figures.map(unframed) }),
});

/** A figure as it stands on the page: its frames are drawn while the formulas that come to them are in sight. @param {{ header: any, more?: any }} view @param {any} figure */
export const inReach = ({ header, more }, figure) =>
  header.formulas.length && !header.first && more && !more.open ? unframed(figure) : figure;
