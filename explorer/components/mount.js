// @ts-check
// A view on the page: elements, their style, what they know between two drawings, and their end.

import { HTML, attribute, known, setStyles, word } from "./allowed.js";
import { bus, listen } from "./bus.js";
import { covers } from "./cover.js";
import { onScreen } from "./theme.js";
import { decode } from "./codec.js";

/**
 * What a view knows. `same`: this drawing would show what the last one showed. `before`: the last
 * drawing's header. `send`: tells Python, `keep`: for good. Whatever else a view remembers stands beside it.
 * @typedef {Record<string, any> & { root: HTMLElement, header: any, blocks: Record<string, any>,
 *   look: import("./theme.js").Look, same: boolean, fresh: boolean, before: any,
 *   send: (name: string, value: any) => void, keep: (name: string, value: any) => void }} View
 */

/**
 * An element with its attributes and what is in it. `on...` are handlers, `data` the dataset,
 * `style` properties of its style, `vars` custom ones; undefined is left out. What a text has in quotation
 * marks is marked as `worded` does. Raises TypeError for a name that no view has and for an object where a
 * word is meant.
 * @template {keyof HTMLElementTagNameMap & import("./allowed.js").Of<typeof HTML.elements>} Tag
 * @param {Tag} tag
 * @param {string | import("./allowed.js").Attributes} [attributes] or the class alone
 * @param {...any} inside elements and texts
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes = {}, ...inside) {
  const element = document.createElement(known(tag, HTML.elements));
  put(element, typeof attributes === "string" ? { class: attributes } : attributes);
  const there = inside.filter((each) => each !== undefined && each !== null && each !== false);
  element.append(...there.flatMap((each) => (typeof each === "string" ? worded(each) : [each])));
  return element;
}

/** What stands on a word of a text or of a model: no browser translates it, and it turns nothing beside it. */
export const OF_TEXT = { class: "notranslate", translate: "no", dir: "auto" };

const QUOTED = /(“[^”]*”)/;

/** A sentence as nodes, in which what stands in quotation marks is of a text or a model. @param {string} sentence @returns {(HTMLElement | string)[]} */
export const worded = (sentence) =>
  QUOTED.test(sentence)
    ? sentence.split(QUOTED).map((part, at) => {
        if (at % 2 === 0) return part;
        const word = put(document.createElement("span"), OF_TEXT);
        word.textContent = part;
        return word;
      })
    : [sentence];

/**
 * Set what `make` sets.
 * @template {HTMLElement} Kind
 * @param {Kind} element
 * @param {import("./allowed.js").Attributes} attributes
 * @returns {Kind}
 */
export function put(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    if (name === "data")
      for (const [key, text] of Object.entries(value)) element.dataset[key] = word(text);
    else if (name === "style") setStyles(element.style, value);
    else if (name === "vars")
      for (const [key, size] of Object.entries(value))
        element.style.setProperty(`--${key}`, word(size));
    // A function is of this code: no bytes hold one. What it returns would stop what a key does.
    else if (typeof value === "function")
      /** @type {any} */ (element)[name] = (/** @type {Event} */ event) => void value(event);
    else if (name === "hidden") element.hidden = value;
    else if (value !== "" || name !== "class")
      element.setAttribute(name, attribute(name, value, HTML));
  }
  return element;
}

/** @type {WeakMap<Element, View>} */
const views = new WeakMap();

/** The view that draws in an element. @param {Element | null | undefined} root */
export const viewOf = (root) => (root ? views.get(root) : undefined);

/**
 * The function that Streamlit calls, for the view whose place has the class `name`.
 * @param {string} name
 * @param {string} style
 * @param {(view: View) => void} draw
 */
export function mount(name, style, draw) {
  /** @type {WeakMap<Element, View>} */
  const all = new WeakMap();
  return (/** @type {any} */ { data, parentElement, setTriggerValue, setStateValue, aside }) => {
    // Streamlit fetches code before it calls it, and calls it although its place has left the page
    // meanwhile: nobody would see that drawing, and no colour of the theme reaches it.
    if (!parentElement.isConnected) return () => {};
    const view = all.get(parentElement) || /** @type {any} */ ({ ends: {} });
    all.set(parentElement, view);
    if (!parentElement.querySelector("style.own"))
      parentElement.prepend(make("style", "own", style));
    view.name = name;
    view.root = parentElement.querySelector(`.${name}`);
    view.root.onpointerdown = () => press(view);
    views.set(view.root, view);
    view.aside = aside;
    view.send = teller(view, setTriggerValue);
    view.keep = teller(view, setStateValue);
    view.show = (/** @type {Uint8Array} */ bytes) => show(view, bytes, draw);
    // What was fetched ahead and drawn is not drawn again.
    view.brought = data;
    const drawn =
      view.prefetched &&
      view.data === view.prefetched &&
      alike(view.prefetched, data) &&
      view.look.key === onScreen(view.root).key;
    setPrefetched(view);
    if (drawn) view.data = data;
    else if (view.pressed) view.due = () => view.brought === data && view.show(data);
    else view.show(data);
    // A cleanup may belong to a drawing that another has replaced: only what left the page ends.
    return () => setTimeout(() => view.root.isConnected || ended(view));
  };
}

/**
 * What tells Python. While the server is not reached Streamlit drops what it is told: the last of that is told
 * once more when it is.
 * @param {View} view @param {(name: string, value: any) => void} tell
 */
const teller = (view, tell) => (/** @type {string} */ name, /** @type {any} */ value) => {
  tell(name, value);
  if (bus.now.lost) onceBack(view, () => tell(name, value));
};

/** Call `then` when the server is reached again. @param {View} view @param {() => void} then */
export function onceBack(view, then) {
  const heard = (/** @type {Record<string, any>} */ { lost }) => {
    if (lost) return;
    until(view, "lost", () => {});
    then();
  };
  until(view, "lost", listen(heard));
}

const LONGEST_PRESS = 500; // ms that a drawing waits for

/**
 * A pointer is down inside the view: what comes meanwhile is drawn when it is up, since a browser
 * counts no press on a mark that is replaced before its end.
 * @param {View} view
 */
function press(view) {
  const end = () => {
    clearTimeout(longest);
    removeEventListener("pointerup", up);
    view.pressed = false;
    view.due?.();
    view.due = undefined;
  };
  const up = () => setTimeout(end); // after the click
  const longest = setTimeout(end, LONGEST_PRESS);
  view.pressed = true;
  addEventListener("pointerup", up);
}

/** @param {View} view @param {Uint8Array} data @param {(view: View) => void} draw */
function show(view, data, draw) {
  view.before = view.header;
  view.fresh = view.data !== data;
  if (view.fresh) Object.assign(view, { data, ...decode(data) });
  if (!view.aside) latest.set((view.called = view.header.panel || view.name), view);
  const look = onScreen(view.root);
  view.recoloured = view.look !== undefined && view.look.key !== look.key; // the theme is another one
  view.same = view.before?.token === view.header.token && view.look?.key === look.key;
  view.look = look;
  draw(view);
  until(view, "cover", covers(view));
  if (view.header.token !== undefined) view.root.dataset.token = view.header.token;
  hostOf(view.root).dataset.drawn = ""; // page.css holds its room until then
  rankTitles();
}

/** Make the first title of the page its heading of level 1, whatever view it stands in. */
function rankTitles() {
  const main = document.querySelector("[data-testid=stMain]");
  if (!main) return;
  const titles = [...latest.values()]
    .map(({ root }) => ({ place: hostOf(root), title: root.querySelector("h2") }))
    .filter(({ place, title }) => title && main.contains(place))
    .sort((a, b) => (a.place.compareDocumentPosition(b.place) & 4 ? -1 : 1));
  const without = !main.querySelector("h1");
  for (const [at, { title }] of titles.entries())
    if (without && at === 0) title?.setAttribute("aria-level", "1");
    else title?.removeAttribute("aria-level");
}

/** Where a view stands in the document. @param {Element} root @returns {HTMLElement} */
export const hostOf = (root) => /** @type {any} */ (root.getRootNode()).host ?? root;

/** What Tab would reach first of the page's pictures and cards; a picture itself where nothing in one is pressed. @returns {HTMLElement | undefined} */
export function firstMark() {
  const panels = [...latest.values()].filter(
    ({ name, root }) => (name === "panel" || name === "cards") && root.isConnected,
  );
  const places = panels.map(({ root }) => ({ root, place: hostOf(root) }));
  places.sort((a, b) => (a.place.compareDocumentPosition(b.place) & 4 ? -1 : 1));
  const mark = places
    .map(({ root }) => root.querySelector('.figure [tabindex="0"], .card'))
    .find(Boolean);
  const still = places.map(({ root }) => root.querySelector(".figure")).find(Boolean);
  if (!mark && still) /** @type {any} */ (still).tabIndex = -1;
  return /** @type {any} */ (mark || still);
}

/** @type {Map<string, View>} the view of each name that was drawn last; of panels the panel's name */
const latest = new Map();

/**
 * Draw the view of a name, or of a panel, from bytes that Streamlit will bring, unless they are there already.
 * @param {string} name
 * @param {Uint8Array} data
 */
export function showSooner(name, data) {
  const view = latest.get(name);
  if (!view?.root.isConnected || view.header.token === decode(data).header.token) return;
  view.show(data);
  setPrefetched(view, data);
}

// The document says whether any view is ahead of its page, whose words are of the text before.
/** @param {View} view @param {Uint8Array} [data] */
function setPrefetched(view, data) {
  if (view.prefetched === data) return;
  view.prefetched = data;
  const any = [...latest.values()].some(({ prefetched }) => prefetched);
  document.documentElement.toggleAttribute("data-headlight-ahead", any);
}

/** True while Streamlit has not brought these bytes. @param {string} name @param {Uint8Array} data */
export const isPrefetched = (name, data) => latest.get(name)?.prefetched === data;

/**
 * Draw what Streamlit brought last, where it brings nothing more: what it has brought it leaves out.
 * @param {string} name
 */
export function takeBack(name) {
  const view = latest.get(name);
  if (!view?.prefetched) return;
  setPrefetched(view);
  view.show(view.brought);
}

/** @param {Uint8Array} one @param {Uint8Array} other */
const alike = (one, other) =>
  one.length === other.length && one.every((byte, at) => byte === other[at]);

/**
 * What a view is called with where Streamlit is not there to call it.
 * @param {Uint8Array} data
 * @param {ParentNode} parentElement
 * @param {(name: string, value: any) => void} tell
 */
export const called = (data, parentElement, tell) => ({
  data,
  parentElement,
  setTriggerValue: tell,
  setStateValue: tell,
  aside: true,
});

/**
 * What is to happen when the view is gone, or when the same is asked for again under this name.
 * @param {View} view
 * @param {string} name
 * @param {() => void} end
 */
export function until(view, name, end) {
  view.ends[name]?.();
  view.ends[name] = end;
}

/** @param {View} view */
function ended(view) {
  for (const end of Object.values(view.ends)) end();
  view.ends = {};
  if (latest.get(view.called) === view) latest.delete(view.called);
  setPrefetched(view);
}

/**
 * Hear the news of other views, and what is true already.
 * @param {View} view
 * @param {(now: Record<string, any>) => void} handler
 */
export function hear(view, handler) {
  until(view, "news", listen(handler));
  handler(bus.now);
}

/**
 * Call `fit` whenever the width of an element is another than it was.
 * @param {View} view
 * @param {HTMLElement} element
 * @param {number} width
 * @param {() => void} fit
 */
export function resized(view, element, width, fit) {
  const observer = new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    fit();
  });
  observer.observe(element);
  until(view, "size", () => observer.disconnect());
}

const rooms =
  globalThis.ResizeObserver &&
  new ResizeObserver((seen) =>
    seen.forEach(({ target }) =>
      target.scrollWidth > target.clientWidth
        ? target.setAttribute("tabindex", "0")
        : target.removeAttribute("tabindex"),
    ),
  );

/** Let an element be scrolled by keys while it is wider than its place. @param {Element} element */
export const scrolledByKeys = (element) => rooms?.observe(element);

/**
 * Put new parts in the place of the old ones; the focus stays where it was, and so do boxes that
 * were scrolled.
 * @param {View} view
 * @param {any[]} parts
 * @param {string[]} [boxes] selectors of those that keep their place
 */
export function redraw(view, parts, boxes = []) {
  const { root } = view;
  const focus = focused(root)?.dataset.focus;
  const places = boxes.map((box) => root.querySelector(box));
  const scrolled = places.map((box) => box && [box.scrollLeft, box.scrollTop]);
  root.replaceChildren(...parts);
  boxes.forEach((box, at) => {
    const to = scrolled[at];
    if (to) root.querySelector(box)?.scrollTo(to[0], to[1]);
  });
  if (focus)
    /** @type {HTMLElement | null} */ (
      root.querySelector(`[data-focus="${CSS.escape(focus)}"]`)
    )?.focus({ preventScroll: true });
}

/** What inside the view has the focus. @param {HTMLElement} root @returns {HTMLElement | undefined} */
export function focused(root) {
  const tree = /** @type {ShadowRoot | Document} */ (root.getRootNode());
  const element = /** @type {HTMLElement | null} */ (tree.activeElement);
  return element && root.contains(element) ? element : undefined;
}

/** The size of the page's letters, in pixels. */
export const letter = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

/** Whether a reader wants no movement. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
