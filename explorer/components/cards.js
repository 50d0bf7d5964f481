// @ts-check
// Cards in rows, each with a small picture, that lead to what they name.

import { cardPicture } from "./card_pictures.js";
import { go } from "./class_client.js";
import { make, mount, redraw } from "./mount.js";
import style from "./cards.css.js";

/** @typedef {import("./mount.js").View} View */
/**
 * A card: its name, what it says, a line below, and where it leads; without an address a press tells
 * Python its id, and one that is not `is_there` leads nowhere.
 * @typedef {{ id: string, title: string, says: string, foot: string, to: string,
 *   is_there: boolean, picture: import("./card_pictures.js").Picture }} Card
 */
/** @typedef {{ name: string, look: "tall" | "tall large" | "flat", shown: number, more: string, links: { label: string, to: string }[], cards: Card[] }} Group */

export default mount("cards", style, (view) => {
  if (view.same) return;
  view.open ||= new Set();
  redraw(
    view,
    view.header.groups.map((group, at) => section(view, group, at)),
  );
});

/** @param {View} view @param {Group} group @param {number} at */
function section(view, group, at) {
  const { name, look, shown, more, links, cards } = group;
  const list = (/** @type {Card[]} */ some) =>
    make("ol", { role: "list" }, ...some.map((each) => make("li", "", card(view, each))));
  const rest = cards.slice(shown);
  const folded = make(
    "details",
    {
      open: view.open.has(name) ? "" : undefined,
      ontoggle: () => (folded.open ? view.open.add(name) : view.open.delete(name)),
    },
    make("summary", { data: { focus: `more ${name}` } }, more),
    list(rest),
  );
  return make(
    "section",
    { class: look, "aria-label": name },
    make(
      "header",
      "",
      make(at ? "h3" : "h2", "", name),
      ...links.map(({ label, to }) => {
        const data = { focus: `link ${label}` };
        if (to) return lead(make("a", { href: `.${to}`, data }, label), to);
        const press = () => view.send("pick", "");
        return make("button", { type: "button", class: "link", data, onclick: press }, label);
      }),
    ),
    list(cards.slice(0, shown)),
    rest.length > 0 && folded,
  );
}

/** A link that is followed without loading the page anew. @template {HTMLAnchorElement} Link @param {Link} link @param {string} to */
function lead(link, to) {
  link.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return link;
}

const MATRIX = /W_([A-Z]+)/;

/** A title, in which the name of a matrix has its index below the line. @param {string} title */
const titled = (title) =>
  title
    .split(MATRIX)
    .map((part, at) => (at % 2 ? make("span", "", "W", make("sub", "", part)) : part));

/** @param {View} view @param {Card} of */
function card(view, of) {
  const { id, title, says, foot, to, is_there, picture } = of;
  const inside = [
    make("div", { class: "picture", "aria-hidden": "true" }, cardPicture(picture)),
    make(
      "div",
      "about",
      make("strong", "", ...titled(title)),
      says && make("span", { dir: "auto" }, says),
      foot && make("span", "foot", foot),
    ),
  ];
  const data = { focus: `card ${id}` };
  if (!is_there) return make("div", "card none", ...inside);
  if (to) return lead(make("a", { class: "card", href: `.${to}`, data }, ...inside), to);
  const press = () => view.send("pick", id);
  return make("button", { type: "button", class: "card", data, onclick: press }, ...inside);
}
