// @ts-check
// A sentence with votes: its words in one line or several, a line from a pronoun to the word that each
// head says, and each head with its word. A word is told by its colour, by the end of its lines and by name.

import { make, OF_TEXT } from "./mount.js";
import { isLeftwards, visual } from "./tokens.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figure_types").SentenceVotes} SentenceVotes */
/** @typedef {import("./figure_types").VoteLine} VoteLine */
/** A word as it stands: its middle is `left` + `wide` / 2. @typedef {{ at: number, text: string, wide: number, spaced: boolean, left: number, line: number }} Word */
/**
 * A line of a vote: where it leaves the pronoun and where it ends, along the line of words; how it goes
 * there, over the words between, to the next line, or around the lines between; its order from within, of
 * one over words how high it rises, and how far straight; how much room its end has.
 * @typedef {{ vote: VoteLine, to: Word, way: "over" | "next" | "around", from: number, end: number, order: number, lift: number, room: number }} Route
 */
/** What is set, `high` and `wide` in all; `aside`: how far it is from the middle of its room. @typedef {{ high: number, wide: number, aside?: number, draw: (x: number, y: number) => void }} Laid */

const [LARGE, LARGER, LEAST, SMALL] = [2.15, 2.6, 1.5, 1]; // letters of type: of one side, of two, of one line at least, of several at least
const BESIDE = 52; // letters of width from which the heads stand beside the sentence
const BARRED = 19; // letters of width of a head with its bar
const HEADS = 0.31; // of the width, for the heads beside a sentence
const POSSESSIVE = /(?<=[\p{L}\p{N}])['’]s?$/u; // of a noun, which is told without it
const SPACE = 0.38; // type sizes between words, and around the pronoun in its box
const BOX = 0.26;
const LINE = 1.55; // type sizes of a line of words
const [STROKE, WIDEST] = [0.165, 0.36]; // of a line of a vote: in type sizes, and at most in letters
const [BETWEEN, APART, ENDS] = [1.75, 4.6, 4.8]; // strokes between lines as they leave, over each other, and at their ends
const [LOW, HIGH, SLOPE] = [1.4, 3.4, 0.25]; // type sizes that a line rises, at least and at most, and of its length
const [NEXT, TRACK] = [2.3, 2.2]; // type sizes between two lines of words that are joined, and strokes of a way around

/** A noun as it is told. @param {string} label */
const nounOf = (label) => label.replace(POSSESSIVE, "");

/** How wide a line is beside words of a type. @param {Pen} pen @param {number} type */
const strokeOf = (pen, type) => Math.min(STROKE * type, WIDEST * pen.letter);

/** @param {{ look: import("./theme.js").Look }} pen @param {number} noun */
const colour = ({ look }, noun) =>
  [look.primary, look.categorical[1], look.categorical[2]][Math.min(noun, 2)];

/** The title of a picture of votes: words of the sentence slanted in the place of quotation marks, those that are said in their colours. @param {{ look: import("./theme.js").Look }} view @param {SentenceVotes} figure @param {string} title */
export const titleOfVotes = (view, { labels, votes }, title) =>
  title.split(/“([^”]*)”/).map((part, at) => {
    if (at % 2 === 0) return part;
    const vote = votes.find(({ word }) => nounOf(labels[word]) === part);
    const vars = { noun: vote ? colour(view, vote.noun) : "inherit" };
    return make("span", { ...OF_TEXT, class: "notranslate said", vars }, part);
  });

/** Give the words of a headline the colours that they have in the picture of votes. @param {{ look: import("./theme.js").Look }} view @param {SentenceVotes} figure @param {any} headline */
export const tint = (view, { labels, votes }, headline) =>
  headline.querySelectorAll(".notranslate").forEach((/** @type {HTMLElement} */ one) => {
    const vote = votes.find(({ word }) => `“${nounOf(labels[word])}”` === one.textContent);
    one.style.color = vote ? colour(view, vote.noun) : "inherit";
  });

/** @param {Pen} pen @param {SentenceVotes} figure @param {import("./figures.js").Box} box @returns {number} */
export function sentencevotes(pen, figure, { x, y, width, height }) {
  const { letter } = pen;
  const most = pen.least && height ? height : Infinity;
  if (figure.sides.length) return between(pen, figure, { x, y, width, height: most });
  const isBeside = width >= BESIDE * letter;
  const wide = isBeside ? HEADS * width : width;
  const own = isBeside ? width - wide - 2 * letter : width;
  const heads = headsOf(pen, figure, figure.votes, wide, isBeside);
  const room = isBeside ? most : most - heads.high - letter;
  const laid = sentence(pen, figure, [figure.votes, []], own, { largest: LARGE, most: room });
  if (!isBeside) {
    heads.draw(x, y + laid.high + letter);
    laid.draw(x, y);
    return laid.high + letter + heads.high;
  }
  const high = Math.max(laid.high, heads.high);
  heads.draw(x + width - wide, y + (high - heads.high) / 2);
  laid.draw(x, y + (high - laid.high) / 2);
  return high;
}

/** Two sides: in one line of words the lines of one are above it and those of the other below; else each has the sentence. @param {Pen} pen @param {SentenceVotes} figure @param {{ x: number, y: number, width: number, height: number }} box */
function between(pen, figure, { x, y, width, height }) {
  const { letter } = pen;
  const votes = [0, 1].map((side) => figure.votes.filter((each) => each.side === side));
  const rows = votes.map((of) => chips(pen, figure, of));
  const wide = rows.map((_, side) => namesOf(pen, figure.sides[side]));
  const left = Math.max(0.34 * width, Math.max(...wide) + 1.5 * letter);
  const isBeside = rows.every((row) => left + row.wide <= width);
  const titles = votes.map((of, side) => {
    const heads = isBeside ? rows[side] : headsOf(pen, figure, of, width, false);
    return sideOf(pen, figure.sides[side], heads, { width, left: isBeside ? left : 0 });
  });
  const rest = titles[0].high + titles[1].high + 2 * letter;
  const options = { largest: LARGER, most: height - rest, oneLine: true };
  const level = sentence(pen, figure, votes, width, options);
  if (level.high) {
    titles[0].draw(x, y);
    const top = y + titles[0].high + letter;
    titles[1].draw(x, top + level.high + letter);
    level.draw(x + (level.aside ?? 0), top);
    return rest + level.high;
  }
  let top = y;
  votes.forEach((of, side) => {
    const most = (height - rest) / 2;
    const own = sentence(pen, figure, [of, []], width, { largest: LARGE, most });
    titles[side].draw(x, top);
    top += titles[side].high + 0.6 * letter;
    own.draw(x, top);
    top += own.high + (side ? 0 : 1.6 * letter);
  });
  return top - y;
}

const NAME = { size: 1.3, bold: true };
const AFTER = 0.7; // letters between the name of a side and what it is

/** The width of the name of a side and what it is. @param {Pen} pen @param {string[]} side */
const namesOf = (pen, [name, about]) =>
  pen.width(name, NAME) + AFTER * pen.letter + pen.width(about);

/** The name of a side, what it is, and its heads: beside these, from `left` on, or below where that is 0. @param {Pen} pen @param {string[]} side @param {Laid} heads @param {{ width: number, left: number }} place @returns {Laid} */
function sideOf(pen, side, heads, { width, left }) {
  const { letter } = pen;
  const [name, about] = side;
  const lines = left || namesOf(pen, side) <= width ? [] : pen.lines(about, width);
  const title = (1.9 + 1.3 * lines.length) * letter;
  const high = left ? Math.max(title, heads.high) : title + 0.4 * letter + heads.high;
  const draw = (/** @type {number} */ x, /** @type {number} */ y) => {
    const middle = y + (left ? high / 2 : 0.9 * letter);
    pen.text(x, middle, name, { ...NAME, room: width });
    const after = x + pen.width(name, NAME) + AFTER * letter;
    if (!lines.length) pen.text(after, middle, about, { alpha: 0.75 });
    lines.forEach((line, at) =>
      pen.text(x, middle + (1.6 + 1.3 * at) * letter, line, { alpha: 0.75 }),
    );
    if (left) heads.draw(x + left, y + (high - heads.high) / 2);
    else heads.draw(x, y + title + 0.4 * letter);
  };
  return { high, wide: width, draw };
}

// ---- the heads -----------------------------------------------------------------------------------

/** Heads with their words: one below the other with the bars of their tests, or side by side. @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine[]} votes @param {number} width @param {boolean} isColumn @returns {Laid} */
function headsOf(pen, figure, votes, width, isColumn) {
  const { letter } = pen;
  const gap = 0.55 * letter;
  const fit = (width - gap * (votes.length - 1)) / votes.length;
  const isRow = !isColumn && fit >= 6.5 * letter;
  const [wide, high] = isRow ? [fit, 3.9 * letter] : [width, 2.9 * letter];
  const note = figure.bar ? pen.lines(figure.bar, width, { size: 0.9 }) : [];
  const rows = isRow ? 1 : votes.length;
  const all = rows * (high + gap) - gap;
  const draw = (/** @type {number} */ x, /** @type {number} */ y) => {
    listed(pen, figure, votes, (vote, at) => {
      const place = isRow ? [x + at * (wide + gap), y] : [x, y + at * (high + gap)];
      if (isRow) stacked(pen, figure, vote, [...place, wide, high]);
      else barred(pen, figure, vote, [...place, wide, high]);
    });
    note.forEach((line, at) =>
      pen.text(x, y + all + (0.9 + 1.25 * at) * letter, line, { size: 0.9, alpha: 0.75 }),
    );
  };
  return { high: all + (note.length ? 0.4 + 1.25 * note.length : 0) * letter, wide: width, draw };
}

/** Heads with their words in one row, each as wide as it needs. @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine[]} votes @returns {Laid} */
function chips(pen, figure, votes) {
  const { letter } = pen;
  const names = votes.map(({ word, noun }) => named(pen, nounOf(figure.labels[word]), noun));
  const wide = votes.map(({ head }, at) => names[at] + pen.width(head) + 2.6 * letter);
  const gap = 0.7 * letter;
  const draw = (/** @type {number} */ x, /** @type {number} */ y) =>
    listed(pen, figure, votes, (vote, at) => {
      const left = x + wide.slice(0, at).reduce((sum, each) => sum + each + gap, 0);
      frame(pen, [left, y, wide[at], 2.5 * letter], vote.noun);
      const middle = y + 1.25 * letter;
      name(
        pen,
        left + 1.2 * letter,
        middle,
        nounOf(figure.labels[vote.word]),
        vote.noun,
        names[at],
      );
      pen.text(left + wide[at] - 0.8 * letter, middle, vote.head, { anchor: "end", alpha: 0.75 });
    });
  const all = wide.reduce((sum, each) => sum + each + gap, -gap);
  return { high: 2.5 * letter, wide: all, draw };
}

/** A list of votes as a reader of the screen has it, each one to be pressed: what is seen, and then what it means. @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine[]} votes @param {(vote: VoteLine, at: number) => void} draw */
function listed(pen, figure, votes, draw) {
  const item = (/** @type {VoteLine} */ vote, /** @type {number} */ at) => {
    if (!vote.key) return draw(vote, at);
    const seen = [nounOf(figure.labels[vote.word]), vote.head, vote.number].filter(Boolean);
    const label = `${seen.join(" ")}: ${vote.says}`;
    pen.target({ select: [vote.key], label }, () => draw(vote, at));
  };
  const one = (/** @type {VoteLine} */ vote, /** @type {number} */ at) =>
    pen.put(
      "g",
      { role: "listitem" },
      pen.apart(() => item(vote, at)),
    );
  pen.put(
    "g",
    { role: "list" },
    pen.apart(() => votes.forEach(one)),
  );
}

const TRIANGLE = 0.95; // letters that the sign of a third word takes

/** The width of a word with its sign. @param {Pen} pen @param {string} word @param {number} noun */
const named = (pen, word, noun) =>
  pen.width(word, { bold: true, size: 1.05 }) + (noun > 1 ? TRIANGLE * pen.letter : 0);

/** The word that a head says. @param {Pen} pen @param {number} x @param {number} y @param {string} word @param {number} noun @param {number} room */
function name(pen, x, y, word, noun, room) {
  const { letter } = pen;
  const fill = colour(pen, noun);
  const left = noun > 1 ? TRIANGLE * letter : 0;
  if (left) {
    const [a, b] = [x + 0.7 * letter, y + 0.32 * letter];
    pen.path(`M${x} ${b}L${a} ${b}L${(x + a) / 2} ${b - 0.65 * letter}z`, "none", { fill });
  }
  pen.text(x + left, y, word, { bold: true, size: 1.05, fill, room: room - left + 1 });
}

/** The frame of a head, with the colour of its word at its left, or above. @param {Pen} pen @param {number[]} box @param {number} noun @param {boolean} [isAbove] */
function frame(pen, [x, y, width, height], noun, isAbove) {
  const band = 0.4 * pen.letter;
  pen.rect(x, y, width, height, { fill: colour(pen, noun), rx: 7 });
  const [dx, dy] = isAbove ? [0, band] : [band, 0];
  const inside = { fill: pen.look.paper, rx: 5 };
  pen.rect(x + dx, y + dy, width - dx, height - dy, inside);
  pen.rect(x + dx, y + dy, width - dx, height - dy, { class: "row", fill: "transparent", rx: 5 });
  pen.rect(x, y, width, height, { fill: "none", stroke: pen.look.border, rx: 7 });
}

/** A head in a row of its own, with the bar of its tests. @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine} vote @param {number[]} box */
function barred(pen, figure, { word, noun, head, share, number }, [x, y, width, height]) {
  const { letter, look } = pen;
  frame(pen, [x, y, width, height], noun);
  const middle = y + height / 2;
  const left = x + 1.4 * letter;
  const isBar = share !== null && width >= BARRED * letter;
  const told = isBar && number ? Math.max(pen.width(number), 1.8 * letter) + 0.5 * letter : 0;
  const right = x + width - 1.2 * letter - told;
  const wide = isBar ? 0.42 * width - told : 0;
  const about = right - (wide ? wide + letter : 0);
  const of = pen.width(head);
  const beside = Math.min(about - of, Math.max(x + 0.29 * width, left + 6 * letter));
  const room = (head ? beside - 0.5 * letter : about) - left;
  name(pen, left, middle, nounOf(figure.labels[word]), noun, room);
  pen.text(beside, middle, head, { alpha: 0.75 });
  if (!isBar) return;
  const bar = 0.48 * letter;
  pen.rect(right - wide, middle - bar / 2, wide, bar, { fill: look.border, rx: bar / 2 });
  const own = { fill: look.ink, "fill-opacity": 0.65, rx: bar / 2 };
  pen.rect(right - wide, middle - bar / 2, share * wide, bar, own);
  if (told) pen.text(right + told, middle, number, { anchor: "end", alpha: 0.75 });
}

/** A head below its word, for a narrow place. @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine} vote @param {number[]} box */
function stacked(pen, figure, { word, noun, head, number }, [x, y, width, height]) {
  const { letter } = pen;
  frame(pen, [x, y, width, height], noun, true);
  const left = x + 0.8 * letter;
  name(pen, left, y + 1.5 * letter, nounOf(figure.labels[word]), noun, width - 1.4 * letter);
  pen.text(left, y + 2.85 * letter, head || number, { size: 0.95, alpha: 0.75 });
  const right = { size: 0.95, alpha: 0.75, anchor: /** @type {const} */ ("end") };
  if (head && number) pen.text(x + width - 0.8 * letter, y + 2.85 * letter, number, right);
}

// ---- the sentence --------------------------------------------------------------------------------

/**
 * A sentence with votes above it, and below it where it is one line: in the largest type in which it is
 * one line, else in lines. oneLine: 0 high where it is more than one. most: pixels of height.
 * @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine[][]} votes above and below @param {number} width
 * @param {{ largest: number, most: number, oneLine?: boolean }} options
 * @returns {Laid}
 */
function sentence(pen, figure, votes, width, { largest, most, oneLine }) {
  for (let size = largest; size > LEAST - 0.01; size -= 0.05) {
    const words = measured(pen, figure, size);
    const lines = broken(words, width, SPACE * pen.type(size));
    if (lines.length > 1) continue;
    const laid = set(pen, figure, votes, lines, { size, width, gutter: 0 });
    if (laid.high <= most) return laid;
  }
  if (oneLine) return { high: 0, wide: 0, draw: () => {} };
  for (let size = LEAST; ; size -= 0.1) {
    const laid = inLines(pen, figure, votes, { size, width, gutter: 0 });
    if (laid.high <= most || size <= SMALL) return laid;
  }
}

/** A sentence in lines, beside them room for the ways around some of these. @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine[][]} votes @param {{ size: number, width: number, gutter: number }} at @returns {Laid} */
function inLines(pen, figure, votes, { size, width, gutter }) {
  const type = pen.type(size);
  const words = measured(pen, figure, size);
  const lines = broken(words, width - gutter, SPACE * type);
  const { line } = words[figure.pronoun];
  const far = votes[0].filter(({ word }) => Math.abs(words[word].line - line) > 1).length;
  const needs = far ? (far + 0.5) * TRACK * strokeOf(pen, type) : 0;
  if (needs > gutter) return inLines(pen, figure, votes, { size, width, gutter: needs });
  return set(pen, figure, votes, lines, { size, width, gutter });
}

/** The words of a sentence in a type. @param {Pen} pen @param {SentenceVotes} figure @param {number} size @returns {Word[]} */
function measured(pen, { labels, spaced, pronoun, votes }, size) {
  const said = new Set(votes.map(({ word }) => word));
  return labels.map((text, at) => {
    const bold = at === pronoun || said.has(at);
    const around = at === pronoun ? 2 * BOX * pen.type(size) : 0;
    const wide = pen.width(text, { size, bold }) + around;
    return { at, text, wide, spaced: spaced[at], left: 0, line: 0 };
  });
}

/** Words in lines of at most so many pixels: a sign stays with the word that it follows. @param {Word[]} words @param {number} width @param {number} gap */
function broken(words, width, gap) {
  /** @type {Word[][]} */
  const lines = [[]];
  let taken = 0;
  words.forEach((word, i) => {
    let [whole, after] = [word.wide, i + 1];
    while (word.spaced && after < words.length && !words[after].spaced)
      whole += words[after++].wide;
    const before = taken && word.spaced ? gap : 0;
    if (taken && taken + before + (whole <= width ? whole : word.wide) > width) {
      lines.push([]);
      taken = 0;
    }
    word.line = lines.length - 1;
    word.wide = Math.min(word.wide, width);
    lines[lines.length - 1].push(word);
    taken += (taken && word.spaced ? gap : 0) + word.wide;
  });
  return lines;
}

/** Words in their lines, with the lines of the votes. @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine[][]} votes @param {Word[][]} lines @param {{ size: number, width: number, gutter: number }} at @returns {Laid} */
function set(pen, figure, votes, lines, { size, width, gutter }) {
  const type = pen.type(size);
  const stroke = strokeOf(pen, type);
  const gap = SPACE * type;
  const isRight = isLeftwards(figure.labels);
  let wide = 0;
  for (const line of lines) {
    const seen = visual(line, isRight);
    const before = (/** @type {Word} */ word, /** @type {number} */ i) =>
      i && later(seen[i - 1], word).spaced ? gap : 0;
    const whole = seen.reduce((sum, word, i) => sum + before(word, i) + word.wide, 0);
    let left = isRight ? width - whole : gutter;
    seen.forEach((/** @type {Word} */ word, /** @type {number} */ i) => {
      left += before(word, i);
      word.left = left;
      left += word.wide;
    });
    wide = Math.max(wide, gutter + whole);
  }
  const all = lines.flat();
  const pronoun = all[figure.pronoun];
  const sides = votes.map((of, side) => routed(pen, figure, of, all, side === 1, { type, stroke }));
  const [above, below] = sides.map(({ zones }) => zones);
  /** @type {number[]} */
  const tops = []; // of each line of words
  let high = 0;
  lines.forEach((_, at) => {
    high += above(at);
    tops.push(high);
    high += LINE * type;
  });
  high += lines.length === 1 ? below(1) : above(lines.length);
  const draw = (/** @type {number} */ x, /** @type {number} */ y) => {
    const level = (/** @type {number} */ line) => y + tops[line];
    sides.forEach(({ draw }) => draw(x, level, gutter));
    for (const word of all) written(pen, figure, word, [x, level(word.line), size, type]);
  };
  return { high, wide, aside: ((isRight ? -1 : 1) * (width - wide)) / 2, draw };
}

/** Of two words beside each other the one that is read after the other. @param {Word} one @param {Word} other */
const later = (one, other) => (one.at > other.at ? one : other);

/** A word in its place; the pronoun in a box, a word that is said in its colour. @param {Pen} pen @param {SentenceVotes} figure @param {Word} word @param {number[]} place left, top, type in letters and in pixels */
function written(pen, figure, { at, text, wide, left }, [x, y, size, type]) {
  const vote = figure.votes.find(({ word }) => word === at);
  const isPronoun = at === figure.pronoun;
  const key = figure.keys[at];
  const middle = y + (LINE * type) / 2;
  const style = { size, bold: isPronoun || vote !== undefined };
  const draw = () => {
    if (isPronoun || key)
      pen.rect(x + left, y + 0.06 * type, wide, (LINE - 0.12) * type, {
        class: "row",
        fill: "transparent",
        stroke: isPronoun ? pen.look.ink : "none",
        "stroke-width": 2,
        rx: 6,
      });
    const fill = vote ? colour(pen, vote.noun) : undefined;
    pen.text(x + left + wide / 2, middle, text, {
      ...style,
      anchor: "middle",
      fill,
      room: wide + 1,
    });
  };
  if (!key) return draw();
  pen.target({ select: [key], label: text, pressed: isPronoun, name: "word" }, draw);
}

// ---- the lines of the votes ----------------------------------------------------------------------

/**
 * How the votes of a side go: the height that they need in the gap above each line of words, and what
 * draws them.
 * @param {Pen} pen @param {SentenceVotes} figure @param {VoteLine[]} votes @param {Word[]} words @param {boolean} isBelow
 * @param {{ type: number, stroke: number }} sizes
 */
function routed(pen, figure, votes, words, isBelow, { type, stroke }) {
  const pronoun = words[figure.pronoun];
  const centre = (/** @type {Word} */ { left, wide }) => left + wide / 2;
  const middle = centre(pronoun);
  /** @type {Route[]} */
  const routes = votes.map((vote) => {
    const to = words[vote.word];
    const lines = Math.abs(to.line - pronoun.line);
    const way = !lines ? "over" : lines === 1 ? "next" : "around";
    return { vote, to, way, from: 0, end: centre(to), order: 0, room: 0, lift: 0 };
  });
  const far = (/** @type {Route} */ { to }) => Math.abs(centre(to) - middle);
  const by =
    (/** @type {(route: Route) => number} */ key) =>
    (/** @type {Route} */ a, /** @type {Route} */ b) =>
      key(a) - key(b);
  const over = routes.filter(({ way }) => way === "over").sort(by(far));
  const isLeft = (/** @type {Route} */ { to }) => centre(to) < middle;
  const groups = [over.filter(isLeft), over.filter((each) => !isLeft(each))];
  const [up, down] = [-1, 1].map((sign) =>
    routes
      .filter(({ to, way }) => way !== "over" && Math.sign(to.line - pronoun.line) === sign)
      .sort(by(({ to }) => centre(to)))
      .sort(by(({ to, way }) => (way === "next" ? 1e6 : -sign * to.line))),
  );
  // As they leave: lines to the left, those to other lines of words, lines to the right.
  leave([...groups[0], ...up, ...[...groups[1]].reverse()]);
  leave(down);
  for (const word of new Set(routes.map(({ to }) => to))) arrive(word);
  let peak = 0;
  for (const group of groups) {
    let last = 0;
    group.forEach((route, i) => {
      const own = SLOPE * Math.abs(route.end - route.from);
      const rise = Math.max(LOW * type, Math.min(HIGH * type, own));
      route.order = last ? Math.max(rise, last + APART * stroke) : rise;
      if (i) clear(route, group[i - 1], stroke);
      last = route.order;
    });
    peak = Math.max(peak, last);
  }
  const arcs = peak ? peak + 1.2 * stroke : 0;
  const track = TRACK * stroke;
  const around = (/** @type {Route[]} */ list) => list.filter(({ way }) => way === "around");
  for (const list of [up, down]) {
    around(list).forEach((each, at) => (each.order = at));
    const next = list.filter(({ way }) => way === "next");
    const left = next.filter(({ from, end }) => end < from);
    for (const one of [left, next.filter((each) => !left.includes(each)).reverse()])
      one.forEach((each, at) => (each.order = at - (one.length - 1) / 2));
  }
  const gap = (/** @type {number} */ line) => {
    let need = 0;
    if (line === (isBelow ? 1 : pronoun.line)) need += arcs;
    for (const [list, own] of /** @type {[Route[], number][]} */ ([
      [up, pronoun.line],
      [down, pronoun.line + 1],
    ])) {
      if (line === own && list.length) {
        need += around(list).length * track + 0.5 * type;
        if (list.some(({ way }) => way === "next")) need += NEXT * type;
      }
      const ends = around(list).filter(({ to }) => to.line + (list === up ? 1 : 0) === line);
      if (ends.length) need += ends.length * track + 1.1 * type;
    }
    return need || (line ? 0.15 * type : 0);
  };

  /** Lines leave the pronoun side by side. @param {Route[]} list */
  function leave(list) {
    const step = Math.min(BETWEEN * stroke, pronoun.wide / Math.max(1, list.length));
    list.forEach((route, at) => (route.from = middle + (at - (list.length - 1) / 2) * step));
  }

  /** Lines end at a word side by side: one over others ends beyond them. @param {Word} word */
  function arrive(word) {
    const list = routes.filter(({ to }) => to === word);
    list.sort(by(({ from }) => from));
    if (list[0].way === "over") list.reverse();
    const step = Math.max(2.8 * stroke, Math.min(ENDS * stroke, word.wide / list.length));
    list.forEach((route, at) => {
      route.end = centre(word) + (at - (list.length - 1) / 2) * step;
      route.room = step;
    });
  }

  /** @param {number} x @param {(line: number) => number} level @param {number} gutter */
  function draw(x, level, gutter) {
    const foot = LINE * type;
    for (const route of [...routes].sort(by(({ vote }) => -vote.noun))) {
      const { vote, to, way } = route;
      const [a, b] = [x + route.from, x + route.end];
      const sign = to.line > pronoun.line || isBelow ? 1 : -1; // down, or up
      const leaves = level(pronoun.line) + (sign > 0 ? foot : 0);
      const isUnder = way === "over" ? isBelow : sign < 0; // it ends under its word
      const ends = level(to.line) + (isUnder ? foot : 0) + (isUnder ? 1 : -1) * 0.35 * stroke;
      let d = `M${a} ${leaves}`;
      if (way === "over") {
        const { lift, order } = route;
        const control = (sign * (8 * order - lift)) / 6;
        d += lift ? `V${leaves + sign * lift}` : "";
        d += `C${a} ${leaves + control} ${b} ${ends + control} ${b} ${ends}`;
      } else if (way === "next") {
        const passed = arcs * +(sign < 0) + around(sign < 0 ? up : down).length * track;
        const start = leaves + sign * passed;
        const [near, far] = [1, -1].map(
          (each) => (ends - start) * (0.62 + each * SPREAD * route.order),
        );
        d += `V${start}C${a} ${start + near} ${b} ${ends - far} ${b} ${ends}`;
      } else {
        const list = around(sign < 0 ? up : down);
        const first = leaves + sign * (arcs * +(sign < 0) + (route.order + 0.7) * track);
        const there = list.filter((each) => each.to.line === to.line);
        const last = ends - sign * (there.indexOf(route) * track + 0.9 * type);
        const side = x + gutter - (list.length - route.order) * track + 0.2 * track;
        d += bent([a, leaves], [a, first], [side, first], [side, last], [b, last], [b, ends]);
      }
      const style = { "stroke-width": stroke.toFixed(1), "stroke-linecap": "round" };
      const line = () => {
        pen.path(d, colour(pen, vote.noun), style);
        end(b, ends, isUnder ? -1 : 1, route);
        if (pen.screen) pen.path(d, "transparent", { "stroke-width": (3 * stroke).toFixed(1) });
      };
      if (vote.key) pen.target({ select: [vote.key], label: vote.says, double: true }, line);
      else line();
    }
  }

  /** The end of a line at its word: an arrow, of a third word a triangle. @param {number} x @param {number} y @param {number} sign 1 where it points down @param {Route} route */
  function end(x, y, sign, { vote, room }) {
    const wide = Math.min(1.9 * stroke, 0.46 * room);
    const fill = colour(pen, vote.noun);
    const back = y - sign * 1.25 * wide;
    const d = `M${x - wide} ${back}L${x} ${y}L${x + wide} ${back}`;
    const style = { "stroke-width": (0.7 * stroke).toFixed(1), "stroke-linecap": "round" };
    pen.path(vote.noun > 1 ? `${d}z` : d, fill, vote.noun > 1 ? { ...style, fill } : style);
  }

  return { zones: gap, draw };
}

/** Points of a line over words: how far it is from where it leaves, and how high. @param {Route} route */
function pointsOf({ from, end, order, lift }) {
  const long = Math.abs(end - from);
  const control = (8 * order - lift) / 6; // so that it is `order` high half way
  return [...Array(SAMPLES + 1).keys()].map((i) => {
    const t = i / SAMPLES;
    const high = lift * (1 - t) ** 3 + 3 * control * t * (1 - t);
    return [long * t * t * (3 - 2 * t), high];
  });
}

/** Have a line stay beyond the one under it, which may be much shorter: it goes straight up at first, or rises higher. @param {Route} route @param {Route} under @param {number} stroke */
function clear(route, under, stroke) {
  const apart = Math.abs(route.from - under.from);
  const inner = pointsOf(under).map(([x, y]) => [x + apart, y]);
  const isBeyond = () => {
    const outer = pointsOf(route);
    return inner.every(([x, y]) => {
      const next = outer.findIndex((each) => each[0] >= x);
      if (next < 1) return next === 0;
      const [[a, b], [c, d]] = [outer[next - 1], outer[next]];
      return b + ((d - b) * (x - a)) / (c - a || 1) >= y + 1.2 * stroke * Math.min(1, y / stroke);
    });
  };
  for (let more = 0; more < 4; more++, route.order += stroke)
    for (const share of [0, 0.2, 0.4, 0.6, 0.8]) {
      route.lift = share * under.order;
      if (isBeyond()) return;
    }
}

const SAMPLES = 48; // points of a line by which two are compared
const SPREAD = 0.16; // of the height between two lines of words, between lines that go from one to the other
const CORNER = 7; // pixels of a bend

/** A way along level and upright lines with round bends, after its first point. @param {...number[]} points */
function bent(...points) {
  let d = "";
  points.slice(1).forEach(([x, y], i) => {
    const [a, b] = points[i];
    const next = points[i + 2];
    if (!next) return (d += `L${x} ${y}`);
    const near = (/** @type {number} */ from, /** @type {number} */ to) =>
      to + Math.max(-CORNER, Math.min(CORNER, (from - to) / 2));
    d += `L${near(a, x)} ${near(b, y)}Q${x} ${y} ${near(next[0], x)} ${near(next[1], y)}`;
  });
  return d;
}
