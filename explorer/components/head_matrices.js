// @ts-check
// All heads of an attention as small pictures, layers below each other; while a word is selected each
// shows that word's row alone.

import { bus } from "./bus.js";
import { looksAhead, permitted } from "./codec.js";
import { ends, folded } from "./matrix_canvas.js";
import { hundredths, notAllowed, num } from "./number_format.js";
import { shade, wordAt } from "./theme.js";
import { calm, inSentence, named, strongest } from "./tokens.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** Heads as they came, what is made of them once, and whether all of them are listed.
 * @typedef {import("./figure_types").HeadMatrices & { images?: any, may: any, deep: number, ahead: any, all?: boolean, untitled?: boolean }} HeadMatrices */

const UNNAMED = ["no clear pattern", "text too short"];
const MANY = 96; // heads from which on those that rest on sinks are folded
const SHOWN = 45; // of the others, the strongest first
const BROAD = 20; // letters from which on the scale is long
const LOW = 0.72; // of its width, the height of a head that shows one row
const NARROW = 27; // letters: on a phone the words of the selected head alone are written

/** Unpack what came, once. @param {HeadMatrices} figure */
function unpack(figure) {
  if (figure.images) return figure;
  const [, , rows, columns] = figure.shape;
  const { tokens, keys, weights } = figure;
  const size = tokens.length ? tokens.length * keys.length : rows * columns;
  figure.images = {};
  const listed =
    weights.runs?.reduce((/** @type {number} */ sum, /** @type {number} */ run) => sum + run, 0) ??
    size;
  figure.may = permitted(weights.runs, listed);
  figure.deep = listed > size ? size : 0; // cells of a layer, where layers differ
  figure.ahead = looksAhead(figure.may, keys.length || columns, size);
  return figure;
}

/** The head on screen. @param {HeadMatrices} figure @returns {number[]} */
export const chosen = ({ follows, selected }) =>
  follows === "head" && bus.now.layer !== undefined ? [bus.now.layer, bus.now.head] : selected;

const SMALLEST = 0.7; // of their size, to which names of heads shrink where a word fits so

/** The layer and the head that come so many places after the chosen head, as words of an address. @param {any} grid @param {number} by */
export function headBeside(grid, by) {
  const [layers, heads] = grid.shape;
  const [layer, head] = chosen(grid);
  const to = (layer * heads + head + by + layers * heads) % (layers * heads);
  return [Math.floor(to / heads), to % heads].map(String);
}

/** The pronoun of a vote, and the nouns by the heads that say them, for the grid of all heads. @param {any} vote */
export function tellVote({ row: [at, rows, columns], votes, labels }) {
  const heads = votes.map((/** @type {any} */ { key, noun, word }) => {
    const said = new URLSearchParams(key);
    const [layer, head] = ["layer", "head"].map((name) => Number(said.get(name)));
    return { layer, head, noun, word: labels[word] };
  });
  bus.tell({ word: { axis: 0, at, rows, columns }, layer: -1, head: -1, votes: heads });
}

/** The vote of a head: the noun that it says, and its order; undefined for none. @param {HeadMatrices} figure @param {number} layer @param {number} head @returns {{ noun: number, word: string } | undefined} */
function voteOf({ follows }, layer, head) {
  const votes = follows === "head" ? bus.now.votes || [] : [];
  return votes.find((/** @type {any} */ one) => one.layer === layer && one.head === head);
}

/** The word that is selected, [axis, place], where the figure has it. @param {HeadMatrices} figure */
export function wordOf({ follows, tokens, keys }) {
  const { word } = bus.now;
  if (follows !== "head" || !word || word.rows !== tokens.length || word.columns !== keys.length)
    return null;
  return word.at >= 0 ? [word.axis, word.at] : null;
}

/** @param {HeadMatrices} figure */
const strip = (figure) => (figure.by_word ? wordOf(figure) : null);

// A byte b stands for peak x (b / 255)², as codec.thumbnails says.
const weightAt = ({ weights, shape }, at, cell) =>
  weights.peak[at] * (weights.cells[at * shape[2] * shape[3] + cell] / 255) ** 2;

/** The weights of the selected word in a head, folded as the cells are. @param {HeadMatrices} figure @param {number[]} word */
function rowOf(figure, [axis, place], at) {
  const [, , rows, columns] = figure.shape;
  const position = Math.floor(place / figure.fold);
  return axis
    ? Array.from({ length: rows }, (_, r) => weightAt(figure, at, r * columns + position))
    : Array.from({ length: columns }, (_, c) => weightAt(figure, at, position * columns + c));
}

/** The largest of these, exact where it came. @param {HeadMatrices} figure @param {number[]} word */
function largest({ weights, shape }, [axis, place], at, list, best) {
  const exact = axis ? weights.most_in : weights.most;
  return exact ? exact[at * (axis ? shape[3] : shape[2]) + place] : list[best];
}

/** The tokens behind one cell. @param {HeadMatrices} figure */
function behind({ fold }, list, k) {
  const [first, last] = [k * fold, Math.min(k * fold + fold, list.length) - 1];
  return first === last ? list[first] : `${list[first]} … ${list[last]}`;
}

/** The words that a row's weights are of. @param {HeadMatrices} figure @param {number[]} word */
const others = ({ tokens, words }, [axis]) => (axis ? tokens : words);

/** The place of the token of the selected word's largest weight in a head. @param {any} figure @param {number[]} word @param {number} at @returns {number} */
function mostAttended(figure, word, at) {
  const { weights, tokens, keys } = figure;
  const [axis, place] = word;
  const of = axis ? weights.best_in : weights.best;
  return of
    ? of[at * (axis ? keys : tokens).length + place]
    : strongest(rowOf(figure, word, at), 1)[0];
}

const [MEANING, FILLER, SINK] = [0, 1, 2];

/** What the selected word's largest weight in a head goes to; a head that votes for a word reads it, of which the pieces count together. @param {any} figure @param {number[] | null} word @param {number} at */
function reads(figure, word, at) {
  if (!word || word[0] || !figure.says?.meaning) return MEANING;
  const heads = figure.shape[1];
  if (voteOf(figure, Math.floor(at / heads), at % heads)) return MEANING;
  const best = mostAttended(figure, word, at);
  return figure.sinks.includes(best) ? SINK : figure.fillers.includes(best) ? FILLER : MEANING;
}

/** A sentence with its slots filled. @param {string} template @param {Record<string, any>} slots */
const filled = (template, slots) => template.replace(/<(\w+)>/g, (_, name) => slots[name]);

/** A head in words: its name, and the selected word's largest weight. @param {HeadMatrices} figure */
export function spoken(figure, at) {
  const [, heads] = figure.shape;
  const { names, scores, says, tokens, keys } = figure;
  const pattern =
    `${names[at]} ${scores[at] ?? ""}`.trim() + (isAblated(figure, at) ? ", taken out" : "");
  const name = `Layer ${Math.floor(at / heads)}, head ${at % heads}: ${pattern}`;
  const word = strip(figure);
  if (!word) return name;
  const list = rowOf(figure, word, at);
  const [best] = strongest(list, 1);
  const value = largest(figure, word, at, list, best);
  const [axis, place] = word;
  const own = (axis ? keys : tokens)[place];
  const other = others(figure, word)[mostAttended(figure, word, at)];
  const [row, column] = (axis ? [other, own] : [own, other]).map(inSentence);
  return `${name}. ${filled(says.largest, { weight: hundredths(value), row, column })}`;
}

/** The weight under the pointer, as nodes and texts. @param {HeadMatrices} figure @param {number} at the head @param {number[]} share of its picture, down and right */
export function pointed(figure, at, [down, right]) {
  unpack(figure);
  const [, heads, rows, columns] = figure.shape;
  const { fold, says, tokens, keys, quiet, may, ahead, deep } = figure;
  const from = deep * Math.floor(at / heads);
  const word = strip(figure);
  const place = (/** @type {number} */ share, /** @type {number} */ n) =>
    Math.min(n - 1, Math.floor(share * n));
  const position = word ? Math.floor(word[1] / fold) : -1;
  const cell = !word
    ? [place(down, rows), place(right, columns)]
    : word[0]
      ? [place(right, rows), position]
      : [position, place(right, columns)];
  const [r, c] = cell;
  const free =
    !may ||
    Array.from({ length: fold * fold }, (_, i) => [
      r * fold + Math.floor(i / fold),
      c * fold + (i % fold),
    ]).some(([q, k]) => k < keys.length && may[from + q * keys.length + k]);
  const most = fold > 1 ? "largest about " : "";
  const weight =
    quiet.includes(c) && fold === 1
      ? "hidden"
      : free
        ? most + weightAt(figure, at, r * columns + c).toFixed(3)
        : notAllowed(r, c, ahead);
  const slots = { layer: Math.floor(at / heads), head: at % heads, weight };
  const words = { row: named(behind(figure, tokens, r)), column: named(behind(figure, keys, c)) };
  return says.cell
    .split(/(<\w+>)/)
    .flatMap((part) => words[part.slice(1, -1)] ?? slots[part.slice(1, -1)] ?? part);
}

/** A head's weights as they are here, (query, key), each at most half a level off; undefined where cells are folded or tokens left out. @param {HeadMatrices} figure */
export function coarse(figure, layer, head) {
  const [layers, heads, rows, columns] = figure.shape;
  if (layer >= layers || head >= heads || figure.fold > 1 || figure.quiet.length) return undefined;
  const at = layer * heads + head;
  const bytes = figure.weights.cells.subarray(at * rows * columns, (at + 1) * rows * columns);
  const level = (/** @type {number} */ byte) => figure.weights.peak[at] * (byte / 255) ** 2;
  return {
    rows,
    weight: Float32Array.from(bytes, level),
    unknown: Float32Array.from(bytes, (byte) => level(byte + 0.5) - level(byte)),
  };
}

/** The heads that are drawn, null for all in their layers: those of one pattern, and of a model of many
 * heads those in which the selected word reads one that carries meaning, or else those that do not rest on
 * sinks, by the weight that it gives another token. The head on screen and those that vote are always among
 * them. @param {HeadMatrices} figure */
function someOf(figure) {
  const { names, only, strengths, follows, all: whole, shape, fold } = figure;
  const all = [...names.keys()];
  if (only) return all.filter((at) => names[at] === only);
  if (follows !== "head" || all.length < MANY || whole) return null;
  const word = strip(figure);
  const strength = (/** @type {number} */ at) => {
    if (!word) return strengths[at];
    const own = Math.floor(word[1] / fold);
    return Math.max(...rowOf(figure, word, at).filter((_, cell) => cell > 0 && cell !== own));
  };
  const telling = word ? all.filter((at) => reads(figure, word, at) === MEANING) : [];
  const awake = telling.length ? telling : all.filter((at) => names[at] !== "sink");
  const by = new Map(awake.map((at) => [at, strength(at)]));
  awake.sort((a, b) => (by.get(b) || 0) - (by.get(a) || 0));
  const [layer, head] = chosen(figure);
  const open = layer * shape[1] + head;
  const votes = all.filter((at) => voteOf(figure, Math.floor(at / shape[1]), at % shape[1]));
  return [...new Set([...(open >= 0 ? [open] : []), ...votes, ...awake])].slice(0, SHOWN);
}

/** Whether heads that read no word that carries meaning stand back. @param {HeadMatrices} figure @param {any} which */
function hasIdle(figure, which) {
  const word = strip(figure);
  if (which || figure.all || figure.follows !== "head" || !word) return false;
  return figure.names.some((_, at) => reads(figure, word, at) !== MEANING);
}

/** Whether a figure says itself what it is of. @param {any} figure */
export const hasHeading = ({ kind, says, title }) =>
  kind === "headmatrices" && Boolean(says?.all) && !title;

/** How many heads there are, and what their colours mean. @param {HeadMatrices} figure @param {any} which */
function heading(figure, which) {
  const { says, names, only, tokens, keys } = figure;
  const n = names.length;
  const word = strip(figure);
  if (hasIdle(figure, which) || (which && word && !word[0] && !only)) {
    const awake = names.filter((_, at) => reads(figure, word, at) === MEANING).length;
    return filled(says.meaning, { n: awake, heads: n });
  }
  const many = only
    ? filled(says.some, { n: which.length, heads: n, pattern: only })
    : which
      ? says.strongest
      : filled(says.all, { heads: n });
  if (!word) return many;
  return (
    many +
    filled(word[0] ? says.into : says.word, { word: calm((word[0] ? keys : tokens)[word[1]]) })
  );
}

/** @param {Pen} pen @param {HeadMatrices} figure @param {Box} box */
export function headmatrices(pen, figure, { x, y, width, height = Infinity }) {
  unpack(figure);
  const { letter, look } = pen;
  const { names, select, says, scale, log, back = [] } = figure;
  const [layers, heads, rows, columns] = figure.shape;
  const which = someOf(figure);
  const word = strip(figure);
  const strips = word && figure.follows === "head"; // a row has no height of its own
  const [down, across] = which ? [0, 0] : [2.2 * letter, 1.5 * letter];
  const bare = word && width < NARROW * letter;
  const [gap, label] = [(heads > 8 || pen.least ? 0.3 : 0.5) * letter, (bare ? 0.5 : 1.7) * letter];
  const lead = which ? 1.1 * letter : 0;
  const nameOf = (/** @type {number} */ at) => `L${Math.floor(at / heads)} H${at % heads}`;
  // Of heads in a list as many stand side by side as have room for their names.
  const widest = Math.max(0, ...(which || []).map((at) => pen.width(nameOf(at), { size: 0.75 })));
  const fitting = Math.floor((width + gap) / (widest + 2 * gap));
  const perLine = which && !pen.least ? Math.max(1, Math.min(heads, fitting)) : heads;
  const lines = which ? Math.ceil(which.length / perLine) : layers;
  const [low, full] = says?.all ? ends(scale, log) : [num(0, 2), num(1, 2)];
  const bold = { bold: true };
  const title = says?.all && !figure.untitled ? heading(figure, which) : "";
  const bar = bare || width < BROAD * letter ? 3 : 6;
  const beside = width - (bar + 3) * letter - pen.width(full, { size: 0.8 }); // what the colour scale leaves
  const titles = title ? pen.lines(title, Math.max(beside, 6 * letter), bold) : [];
  const legend = (2 + 1.3 * Math.max(0, titles.length - 1)) * letter;
  const room = (width - down) / perLine - gap;
  const idle = hasIdle(figure, which);
  const legendOf = (/** @type {string} */ counted) =>
    idle ? pen.lines(`${counted} ${says.pale}`, width, { size: 0.85 }) : [];
  const pale = legendOf(says?.words);
  let written = 0; // words below heads
  const notes = pale.length + (pen.least && says?.all ? 1 : 0); // how many weights a pixel stands for
  const most = (height - legend - across - 1.4 * letter * notes) / lines - label - lead;
  const wide = Math.max(
    1.2 * letter,
    Math.min(room, 9 * letter, strips ? room : Math.max(most, (pen.least ? 1.2 : 3.2) * letter)),
  );
  if (pen.least && wide > room + 0.5) pen.right = Infinity; // it would reach into what is beside it
  const high = strips
    ? Math.max(letter, Math.min(LOW * wide, most))
    : wide * Math.max(0.5, Math.min(2, rows / columns));
  const [left, top] = [x + down, y + legend + across];
  const headed = Math.max(0, ...titles.map((line) => pen.width(line, bold))) + width - beside;
  const right =
    x + Math.min(width, Math.max(down + perLine * (wide + gap) - gap, 12 * letter, headed));
  pen.scale(right, y + 0.7 * letter, look.one, low, full, bar);
  titles.forEach((line, at) => pen.text(x, y + (0.7 + 1.3 * at) * letter, line, bold));
  for (let head = 0; head < heads && !which; head++)
    pen.text(left + head * (wide + gap) + wide / 2, top - 0.7 * letter, `H${head}`, {
      size: 0.8,
      anchor: "middle",
      alpha: 0.75,
    });
  for (let layer = 0; layer < layers && !which; layer++)
    pen.text(x, top + layer * (high + label) + high / 2, `L${layer}`, { size: 0.8, alpha: 0.75 });
  const [openLayer, openHead] = chosen(figure);
  const fold = word ? 1 : Math.max(1, Math.ceil(Math.max(columns, rows) / wide));
  /** @type {Map<string, string[]>} the heads of a name that has no room below them */
  const unnamed = new Map();
  (which || [...names.keys()]).forEach((at, place) => {
    const [layer, head] = [Math.floor(at / heads), at % heads];
    const line = top + Math.floor(place / perLine) * (high + label + lead) + lead;
    const spot = left + (place % perLine) * (wide + gap);
    const vote = voteOf(figure, layer, head);
    const on = (openLayer === layer && openHead === head) || Boolean(vote);
    const ink = vote?.noun ? look.categorical[Math.min(vote.noun, 2)] : look.primary;
    const read = idle && !on ? reads(figure, word, at) : MEANING;
    const draw = () => {
      if (which)
        pen.text(spot, line - 0.55 * letter, nameOf(at), {
          size: 0.75,
          room: wide + gap,
          alpha: 0.75,
        });
      pen.rect(spot, line, wide, high, {
        class: "block thumb",
        fill: read === SINK ? "transparent" : look.paper, // is pressed anywhere in it
        stroke: look.border,
        ...(read === SINK && { "stroke-dasharray": "1.5 3" }),
      });
      const under = () => cellsOf(pen, figure, at, word, fold, [spot, line, wide, high]);
      if (read === SINK) return;
      if (read === FILLER) return pen.put("g", { opacity: 0.35 }, pen.apart(under));
      if (back[at]) pen.put("g", { opacity: 0.18 }, pen.apart(under));
      else under();
      if (idle && !on && read === MEANING)
        pen.rect(spot, line, wide, high, { fill: "none", stroke: look.ink, "stroke-width": 1 });
      if (on)
        pen.rect(spot - 2, line - 2, wide + 4, high + 4, {
          fill: "none",
          stroke: ink,
          "stroke-width": 3,
          rx: 3,
        });
      if (isAblated(figure, at))
        pen.line(
          [
            [spot, line + high],
            [spot + wide, line],
          ],
          look.primary,
        );
      if (bare) return;
      const style = {
        size: 0.8,
        room: wide + gap / 2,
        bold: on || Boolean(word),
        fill: on ? ink : undefined,
        alpha: back[at] ? 0.6 : undefined,
      };
      const caption = vote?.word ?? captionOf(figure, at, word);
      const isFile = !pen.screen && !pen.least;
      if (isFile && pen.width(caption, style) > style.room) {
        unnamed.set(caption, [...(unnamed.get(caption) || []), nameOf(at)]);
        return;
      }
      const isLong = !word && pen.width(caption, style) > style.room;
      const shown = isLong ? caption.split(" ")[0] : caption;
      if (pen.least && pen.width(shown, style) > style.room) {
        pen.shortened += 1; // a slide has no hint of the rest
        return;
      }
      const fits = Math.min(1, style.room / pen.width(shown, style)); // a little smaller, not cut
      const size = fits < SMALLEST ? style.size : style.size * fits;
      pen.text(spot, line + high + 0.62 * letter, shown, { ...style, size });
      written += 1;
    };
    const part = {
      select: [`${layer}`, `${head}`],
      label: spoken(figure, at),
      pressed: on,
      name: "cell",
    };
    if (select.length) pen.target(part, draw);
    else draw();
  });
  let foot = top + lines * (high + label + lead);
  const line = (/** @type {string} */ text, style = {}) => {
    pen.text(x, foot + 0.6 * letter, text, { size: 0.85, room: width, ...style });
    foot += 1.4 * letter;
  };
  for (const [name, list] of unnamed)
    pen
      .lines(`${name}: ${list.join(", ")}`, width, { size: 0.85 })
      .forEach((text) => line(text, { alpha: 0.75 }));
  const offers = pen.screen && !pen.least; // nothing is pressed on a slide
  const isNamed = (/** @type {number} */ at) => !UNNAMED.includes(names[at]);
  if (pen.isPaper && says?.all && !(which || [...names.keys()]).every(isNamed))
    pen.lines(says.unnamed, width, { size: 0.85 }).forEach((text) => line(text, { alpha: 0.75 }));
  if (which && !figure.only && !pen.screen && !pen.least)
    pen.omitted.push({ what: "heads", shown: which.length, all: names.length });
  if (offers && says?.all && !figure.only && names.length >= MANY) {
    const sinks = names.filter((/** @type {string} */ name) => name === "sink").length;
    const words = figure.all ? says.fewer : filled(says.more, { heads: names.length, sinks });
    pen.select = ["all"];
    pen.target({ select: ["all"], label: words, name: "more" }, () =>
      line(words, { fill: look.primary, bold: true }),
    );
  }
  (written ? pale : legendOf(says?.counted)).forEach((text) => line(text, { alpha: 0.75 }));
  if (offers && (idle || (figure.all && names.length < MANY))) {
    const words = idle ? says.whole : says.awake;
    pen.select = ["all"];
    pen.target({ select: ["all"], label: words, name: "more" }, () =>
      line(words, { fill: look.primary, bold: true }),
    );
  }
  if (figure.quiet?.length) line(says.faint, { alpha: 0.75 });
  if (says?.all && figure.fold * fold > 1)
    line(filled(says.folded, { fold: figure.fold * fold }), { alpha: 0.75 });
  return foot - y;
}

/** The cells of one head, as many to a pixel as have to share it. @param {Pen} pen @param {HeadMatrices} figure @param {number[]} box */
function cellsOf(pen, figure, at, word, fold, box) {
  if (pen.measures) return;
  const { weights, shape, scale, log, may, fold: before } = figure;
  const [, , rows, columns] = shape;
  const peak = weights.peak[at];
  const all = weights.cells.subarray(at * rows * columns, (at + 1) * rows * columns);
  const list = word && rowOf(figure, word, at);
  const levels = list
    ? Uint8Array.from(list, (weight) => Math.round(255 * Math.sqrt(weight / (peak || 1))))
    : folded(all, rows, columns, fold);
  const across = list ? list.length : Math.ceil(columns / fold);
  const full = (/** @type {number} */ cell) => {
    if (scale !== "row") return scale === "head" ? peak : 1;
    const from = cell - (cell % across);
    return (
      peak * (levels.subarray(from, from + across).reduce((a, b) => Math.max(a, b), 0) / 255) ** 2
    );
  };
  const cache = (figure.images[`${at} ${word} ${fold}`] ||= {});
  const free = (/** @type {number} */ cell) => word || before * fold > 1 || !may || may[cell];
  pen.cells(
    box,
    levels.length / across,
    across,
    (cell) =>
      free(cell)
        ? wordAt(pen.look.one, shade(peak * (levels[cell] / 255) ** 2, full(cell), log))
        : undefined,
    cache,
  );
}

/** @param {HeadMatrices} figure */
const isAblated = ({ ablated = [] }, at) => ablated.includes(at);

/** Below a head: that it is ablated, the token that gets most of the selected word, or the head's name. @param {HeadMatrices} figure */
function captionOf(figure, at, word) {
  if (isAblated(figure, at)) return "taken out";
  if (word) return others(figure, word)[mostAttended(figure, word, at)];
  return UNNAMED.includes(figure.names[at]) ? "" : figure.names[at];
}
