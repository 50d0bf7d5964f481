// @ts-check
// The pictures of a page, whatever draws them: which there are, how large they are, and the heading and
// the caption that they stand between.

/** @typedef {HTMLElement} Picture */

const FRAMES = ".sentence, .lesson_bar, .way, .presenter, .follow, .classroom, .questions"; // views that are no picture by themselves
const CONTROLS = ".board [aria-pressed]"; // heads to be switched

/** The pictures of a page from top to bottom: our own views, and tables of numbers. A picture in three dimensions is not among them: its plane is. @returns {Picture[]} */
export function pictures() {
  const main = document.querySelector("[data-testid=stMain]");
  const all = [
    ...(main?.querySelectorAll("[data-testid=stBidiComponentIsolated], .stDataFrame") || []),
  ];
  const shown = /** @type {Picture[]} */ (all).filter((each) => {
    if (is(each, FRAMES) || rootOf(each)?.querySelector(CONTROLS)) return false;
    const { width, height } = each.getBoundingClientRect();
    return width > 120 && height > 90;
  });
  const drawn = shown.filter((each) => !each.matches(".stDataFrame")); // tables where there is no other
  return drawn.length ? drawn : shown;
}

/** True where a picture is a view of a kind. @param {Picture | undefined} picture @param {string} kind */
export const is = (picture, kind) => Boolean(picture && rootOf(picture)?.matches(kind));

/** The element that a view draws in. @param {Picture} picture */
export const rootOf = (picture) =>
  /** @type {HTMLElement | null | undefined} */ (tree(picture)?.querySelector("div[class]"));

/** @param {Picture | undefined} picture */
export const tree = (picture) =>
  picture && [picture, ...picture.children].find((one) => one.shadowRoot)?.shadowRoot;

/** The size of what a view draws, which may be more than its box. @param {Picture} picture */
export function content(picture) {
  const own = /** @type {HTMLElement} */ (rootOf(picture));
  let [over, under] = [0, 0]; // what boxes that scroll would hide
  for (const each of own.querySelectorAll("*")) {
    const { overflowX, overflowY } = getComputedStyle(each);
    if (/auto|scroll/.test(overflowX)) over = Math.max(over, each.scrollWidth - each.clientWidth);
    if (/auto|scroll/.test(overflowY))
      under = Math.max(under, each.scrollHeight - each.clientHeight);
  }
  const { height } = own.getBoundingClientRect();
  return {
    width: own.scrollWidth + (over > 1 ? over : 0),
    height: Math.max(height, own.scrollHeight) + (under > 1 ? under : 0),
  };
}

const FOLLOWS = Node.DOCUMENT_POSITION_FOLLOWING;
const LONGEST = 150; // letters of a headline

/**
 * What a picture's part of the page finds: its heading where that has a number, else the first sentence
 * with one around the picture, else the heading. Without a picture, the title of the page.
 * @param {Picture | undefined} picture
 */
export function headline(picture) {
  const main = document.querySelector("[data-testid=stMain]");
  const heads = [...(main?.querySelectorAll("h1, h2, h3") || [])];
  const title = heads.find((each) => each.tagName === "H1");
  if (!picture) return title?.textContent?.trim() || document.title.split(" · ")[0];
  const above = heads.filter((each) => each.compareDocumentPosition(picture) & FOLLOWS).at(-1);
  const text = (above || title)?.textContent?.trim() || document.title.split(" · ")[0];
  if (/\d/.test(text)) return text;
  const next = heads.find((each) => picture.compareDocumentPosition(each) & FOLLOWS);
  const between = (/** @type {Element} */ each) =>
    (!above || above.compareDocumentPosition(each) & FOLLOWS) &&
    (!next || each.compareDocumentPosition(next) & FOLLOWS);
  const lines = [...(main?.querySelectorAll("[data-testid=stMarkdownContainer] p") || [])].filter(
    (each) => !each.closest("button, label, [data-testid=stCaptionContainer]") && between(each),
  );
  // What stands under it tells of it, before what leads up to it.
  const under = lines.filter((each) => picture.compareDocumentPosition(each) & FOLLOWS);
  const all = [...under, ...lines.filter((each) => !under.includes(each)).reverse()];
  const sentences = all.flatMap((each) =>
    (each.textContent || "").split(/(?<=[.!?])\s+(?=\p{Lu})/u),
  );
  const finds = (/** @type {string} */ each) =>
    /\d/.test(each) &&
    /\S+ \S+ \S+ \S+/.test(each) &&
    !/[=∂√]/.test(each) && // a formula says the same of every sentence
    each.length <= LONGEST;
  return sentences.find(finds)?.trim() || text;
}

/** The last words of a page without a picture, which say how it stands there. */
export function lastWords() {
  const main = document.querySelector("[data-testid=stMain]");
  const all = [...(main?.querySelectorAll("[data-testid=stMarkdownContainer] p") || [])];
  const said = all.filter((each) => !each.closest("button, label, a") && each.textContent?.trim());
  return said.at(-1)?.textContent?.trim() || "";
}

/** The first caption under a picture and above what comes next. @param {Picture} picture */
export function captionOf(picture) {
  const main = document.querySelector("[data-testid=stMain]");
  const after = (/** @type {Element} */ one) =>
    picture.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING &&
    !picture.contains(one);
  const stops = new Set([...pictures(), ...(main?.querySelectorAll("h1, h2, h3") || [])]);
  const all = [...(main?.querySelectorAll("[data-testid=stCaptionContainer], h1, h2, h3") || [])];
  const next = [...all, ...pictures()]
    .filter(after)
    .sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1))[0];
  const text = next && !stops.has(next) ? next.textContent?.trim() || "" : "";
  const end = text.search(/[.!?] /);
  return end > 0 ? text.slice(0, end + 1) : text;
}
