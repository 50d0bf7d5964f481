// @ts-check
// A class goes on to another head or word: what a head's view makes of the grid's small pictures until
// the server's own numbers are there.

import { whole } from "./optimistic_updates.js";
import { bus } from "./bus.js";

/**
 * Take over the head and the word of an address. True where there is something else to draw.
 * @param {import("./mount.js").View} view
 * @param {Record<string, string>} asked
 */
export function moved(view, asked) {
  const { header, n, across, weight } = view;
  const [layer, head] = [whole(asked.layer, 1e3), whole(asked.head, 1e3)];
  const token = whole(asked.token, n);
  if (across || header.places.some(Boolean)) return false; // tokens are other ones than the address's
  if (layer >= 0 && head >= 0 && (layer !== header.layer || head !== header.head)) {
    const made = bus.now.coarse?.(layer, head);
    if (made?.rows !== header.queries.length || made.weight.length !== weight.length) return false;
    const title = `Layer ${layer}, head ${head}`;
    view.header = { ...header, layer, head, title, evidence: [] };
    view.note = `${title}, off the small picture: its own words and numbers follow.`;
    Object.assign(view, { weight: made.weight, unknown: made.unknown, hidden: null });
    const most = (/** @type {number} */ q) => Math.max(...made.weight.subarray(q * n, (q + 1) * n));
    view.full = header.queries.map((/** @type {string} */ _, /** @type {number} */ q) => most(q));
    view.peak = Math.max(...view.full);
    view.data = undefined; // whatever comes is drawn anew
    bus.tell({ layer, head });
  } else if (token === view.held[0]) return false;
  else if (token < 0 && asked.att_word !== "none") return false; // which word is held, the page says
  view.held = [token, token];
  view.cell = view.over = null;
  return true;
}
