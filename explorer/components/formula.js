// @ts-check
// Formulas, typeset as MathML: their symbols, and on a press the numbers of the text below them.

import { besideFrame } from "./panel_layout.js";
import { MATH, attribute, known } from "./allowed.js";
import { make, scrolledByKeys } from "./mount.js";
import { sentences } from "./sentences.js";

/** An element of MathML: its name, its attributes, and its parts or its text. @typedef {[string, Record<string, string>, any]} Node */
/** @typedef {{ id: string, title: string, lines: Node[], stays?: boolean, numbers: Node[], symbols: [Node, string][] }} Formula */

const say = sentences("formula");
const NAMESPACE = "http://www.w3.org/1998/Math/MathML";

/** @param {Node} node @param {string[]} focus symbols that are spoken of @returns {Element} */
function math([tag, attributes, inside], focus) {
  const element = document.createElementNS(NAMESPACE, known(tag, MATH.elements));
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, attribute(name, value, MATH));
  if (tag === "math") element.setAttribute("translate", "no");
  element.classList.toggle("notranslate", tag === "math");
  element.classList.toggle("focus", focus.includes(attributes["data-symbol"]));
  element.append(
    ...(typeof inside === "string"
      ? [inside]
      : inside.map((/** @type {Node} */ each) => math(each, focus))),
  );
  return element;
}

/** @param {Node} node @param {string[]} focus */
function line(node, focus) {
  const element = math(node, focus);
  scrolledByKeys(element);
  return element;
}

/** @typedef {{ focus?: string[], filled?: boolean, explained?: boolean, flat?: boolean }} How */

/** The rows of a table of math, each as a line of its own; a line that has none is one. @param {Node} node @returns {Node[]} */
const rowsOf = ([tag, attributes, inside]) =>
  inside[0]?.[0] === "mtable"
    ? inside[0][2].map((/** @type {Node} */ row) => [tag, attributes, [["mtable", {}, [row]]]])
    : [[tag, attributes, inside]];

/**
 * Formulas as elements: `filled` with their numbers below their symbols; `focus`: symbols that are spoken
 * of; `explained`: with the meaning of each symbol; `flat`: numbers beside their symbols.
 * @param {Formula[]} formulas @param {How} how
 */
export function typeset(formulas, { focus = [], filled, explained, flat }) {
  return formulas.map(({ id, title, lines, stays, numbers, symbols }) => {
    const rows = filled && numbers.length ? [...(stays ? lines : []), ...numbers] : lines;
    const means = (/** @type {[Node, string]} */ [symbol, text]) => [
      make("dt", "", math(symbol, focus)),
      make("dd", "", text),
    ];
    return make(
      "div",
      {
        class: "formula",
        role: "group",
        data: { formula: id },
        "aria-label": title,
      },
      ...(flat ? rows.flatMap(rowsOf) : rows).map((each) => line(each, focus)),
      explained && make("dl", "", ...symbols.flatMap(means)),
    );
  });
}

/** A formula that has no title, no numbers and no symbols that are explained. @param {Node} line @returns {HTMLElement[]} */
export const typesetAlone = (line) =>
  typeset([{ id: "own", title: "", lines: [line], numbers: [], symbols: [] }], {});

/**
 * Formulas with the buttons that put numbers in and explain symbols. Returns the element, and what draws
 * those beside a frame in it.
 * @param {Formula[]} formulas @param {How} memory of what was pressed @param {() => void} [after] a press
 * @returns {[HTMLElement, (how?: How, frame?: any) => void]}
 */
export function formulaBox(formulas, memory, after) {
  const list = make("div", "list");
  let [how, shown] = [{}, formulas];
  const draw = () => {
    list.replaceChildren(...typeset(shown, { ...how, ...memory }));
    box.hidden = !shown.length;
  };
  const toggle = (/** @type {"filled" | "explained"} */ name) => {
    const press = () => {
      memory[name] = !memory[name];
      button.setAttribute("aria-pressed", `${memory[name]}`);
      draw();
      after?.();
    };
    const button = make(
      "button",
      {
        class: "small",
        type: "button",
        "aria-pressed": `${Boolean(memory[name])}`,
        data: { focus: name },
        onclick: press,
      },
      say(name),
    );
    return button;
  };
  const buttons = [
    formulas.some(({ numbers }) => numbers.length) && toggle("filled"),
    toggle("explained"),
  ];
  const box = make("div", "formulas", list, make("div", "buttons", ...buttons));
  return [
    box,
    (next = {}, frame) => {
      [how, shown] = [next, besideFrame(formulas, frame)];
      draw();
    },
  ];
}
