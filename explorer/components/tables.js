// @ts-check
// Rows below named columns, drawn by a pen: bars with their numbers, and tables of texts. Columns that
// have no room beside the others stand in a block below them, each with the names of its rows.

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** Bars, and of bars that are cut all rows, by whose scale they are drawn. @typedef {import("./figure_types").Bars & { scaled?: any[] }} Bars */
/** @typedef {import("./figure_types").TextTable} TextTable */

const LEAST = 2; // letters of a bar with the gap behind its number
const TEXT = 6; // letters of a text that may end in an ellipsis
const SMALL = 0.85; // the type of the names of columns, in letters
const [LINES, LINE] = [3, 1.1]; // of a cell of a table on a screen at most, and letters of height of each
const GAP = 0.8; // letters between two blocks
const FRAMED = 1.25; // letters of height of a frame around a number: it touches no digit

/** Whether a text is a number, which is never cut. @param {string} text */
const isNumber = (text) => /^\P{L}{0,3}\d/u.test(text) && text.length < 16;

/** Columns in blocks that fit a width, each block with at least one. @param {number[]} least what each needs @param {number} width */
function blocks(least, width) {
  /** @type {number[][]} */
  const all = [];
  let taken = Infinity;
  least.forEach((each, at) => {
    if (taken + each > width) [taken] = [0, all.push([])];
    all[all.length - 1].push(at);
    taken += each;
  });
  return all;
}

const sum = (/** @type {number[]} */ list) => list.reduce((a, b) => a + b, 0);

/** The names of columns in lines, on the last line where they have few; how high they are. @param {Pen} pen @param {string[]} names @param {number[][]} places x and width of each @param {number} y */
function heads(pen, names, places, y) {
  const style = { size: SMALL, alpha: 0.75 };
  const lines = names.map((name, at) => (name ? pen.lines(name, places[at][1], style) : []));
  const most = Math.max(0, ...lines.map(({ length }) => length));
  lines.forEach((list, at) =>
    list.forEach((line, row) =>
      pen.text(
        places[at][0],
        y + (0.5 + 1.1 * (most - list.length + row)) * pen.letter,
        line,
        style,
      ),
    ),
  );
  return most && (0.5 + 1.1 * most) * pen.letter;
}

/** Bars below named columns. @param {Pen} pen @param {Bars} figure @param {Box} box */
export function bars(
  pen,
  { columns, rows, high, shared, mark, header = "", wraps, select, scaled = rows, framed = [] },
  { x, y, width, height },
) {
  const { letter, look } = pen;
  const share = width < 30 * letter ? 0.5 : columns.length === 1 ? 0.68 : 0.4;
  const most = share * width;
  const named = rows.map((/** @type {any} */ row) => pen.width(row.label, { bold: row.selected }));
  const texts = columns.map((_, at) =>
    Math.max(0, ...rows.map((row) => pen.width(row.texts[at] ?? "", { bold: true }))),
  );
  const beside = Math.max(4 * letter, width - Math.max(0, ...texts) - (LEAST + 0.6) * letter);
  const names =
    Math.min(most, beside, Math.max(2 * letter, pen.width(header, { size: SMALL }), ...named)) +
    0.6 * letter;
  const all = blocks(
    texts.map((/** @type {number} */ each) => each + LEAST * letter),
    width - names,
  );
  const largest = columns.map((_, at) =>
    Math.max(1e-12, ...scaled.map((row) => Math.abs(row.values[at] || 0))),
  );
  const top = largest.map((each) => high ?? (shared ? Math.max(...largest) : each));
  const ends = columns.map((_, at) => {
    const one = high !== null || shared;
    if (one) return [scaled.some((row) => row.values[at] < 0) ? -top[at] : 0, top[at]];
    const begins = scaled.map((row) => (at === 0 && row.start) || 0);
    const all = scaled.flatMap((row, i) => [
      begins[i],
      begins[i] + (row.values[at] || 0),
      (at === 0 && row.outline) || 0,
    ]);
    return [Math.min(0, ...all), Math.max(0, ...all) || 1e-12];
  });
  const tight = pen.pitch(1.15) * letter;
  let down = y;
  all.forEach((list, which) => (down += block(list, which, down)));
  return down - y;

  /** @param {number[]} list @param {number} which @param {number} begin */
  function block(list, which, begin) {
    const n = list.length;
    const each = (width - names - sum(list.map((at) => texts[at]))) / n; // of a bar, and what follows
    // A number is nearer to its own bar than to the next.
    const gap = n > 1 ? Math.min(2.5 * letter, Math.max(letter, each / 2)) : letter;
    const track = Math.max(letter, each - gap);
    const starts = list.map(
      (_, i) => x + names + sum(list.slice(0, i).map((at) => texts[at])) + i * (track + gap),
    );
    const places = list.map((at, i) => [starts[i], track + texts[at] + 0.6 * gap]);
    const named = heads(
      pen,
      list.map((at) => columns[at]),
      places,
      begin,
    );
    const head = header ? Math.max(named, 1.6 * letter) : named;
    if (header)
      pen.text(x + names - 0.6 * letter, begin + head - 1.1 * letter, header, {
        size: SMALL,
        anchor: "end",
        alpha: 0.75,
        room: names - 0.6 * letter,
      });
    const left = height && height / all.length - head - 0.3 * letter;
    const pitch = Math.max(tight, Math.min(1.9 * letter, left ? left / rows.length : Infinity));
    let down = begin + head;
    rows.forEach((row, at) => {
      const style = { room: names - 0.6 * letter + 1, bold: row.selected };
      const name = pen.isPaper || wraps ? pen.lines(row.label, style.room, style) : [row.label];
      const high = pitch + (name.length - 1) * LINE * letter;
      const middle = down + high / 2;
      down += high;
      const draw = () => {
        if (pen.screen || row.selected)
          pen.rect(x, middle - high / 2, width, high, {
            class: "row",
            fill: row.selected ? look.primary : "transparent",
            "fill-opacity": 0.12,
            rx: 4,
          });
        name.forEach((line, i) => {
          const place = middle + (i - (name.length - 1) / 2) * LINE * letter;
          pen.text(x + names - 0.6 * letter, place, line, { anchor: "end", ...style });
        });
        list.forEach((column, i) => bar(row, [at, column], [starts[i], track], middle, pitch));
      };
      // As it is seen; a name that is cut is read whole behind it.
      const seen = name.length > 1 ? row.label : pen.cut(row.label, style.room, style);
      const whole = seen === row.label ? "" : `, ${row.label}`;
      const label = `${seen} ${row.texts.join(" ")}${whole}`;
      if (select.length && row.key !== null)
        pen.target({ select: [row.key], label, pressed: row.selected, double: which > 0 }, draw);
      else draw();
    });
    return down - begin + (which < all.length - 1 ? GAP : 0.3) * letter;
  }

  /** @param {any} row @param {number[]} cell its row and column @param {number[]} place @param {number} middle @param {number} pitch */
  function bar(row, [which, at], [left, track], middle, pitch) {
    const [value, begin] = [row.values[at], (at === 0 && row.start) || 0];
    const unit = track / (ends[at][1] - ends[at][0] || 1);
    const zero = left - ends[at][0] * unit;
    const length = Math.min(ends[at][1] - ends[at][0], Math.abs(value)) * unit;
    const thick = Math.min(pitch * 0.62, letter);
    const place = Math.max(left, zero + Math.min(begin, begin + value) * unit);
    if (ends[at][0] < 0)
      pen.line(
        [
          [zero, middle - pitch / 2],
          [zero, middle + pitch / 2],
        ],
        look.border,
      );
    if (Number.isFinite(value))
      pen.rect(place, middle - thick / 2, Math.max(length, value ? 1 : 0), thick, {
        fill: value < 0 ? look.categorical[1] : look.primary,
        "fill-opacity": row.selected || which === mark?.[0] ? 1 : 0.7,
        rx: 2,
      });
    if (at === 0 && row.outline !== null)
      pen.rect(zero, middle - thick / 2, row.outline * unit, thick, {
        fill: "none",
        stroke: look.categorical[1],
        "stroke-width": 1.5,
        "stroke-dasharray": "5 3",
      });
    const marked = mark && mark[0] === which && mark[1] === at;
    const outlined = at === 0 && row.outline !== null ? zero + row.outline * unit : left;
    const isFramed = framed.some(([row, column]) => row === which && column === at);
    // From the bar's own end, a frame too.
    const beside = Math.max(place + length, outlined, left) + (isFramed ? 0.6 : 0.4) * letter;
    pen.text(beside, middle, row.texts[at] ?? "", {
      bold: marked || row.selected,
      fill: marked ? look.primary : undefined,
      room: x + width - left - track - 0.3 * letter,
    });
    if (isFramed) {
      const wide = pen.width(row.texts[at] ?? "", { bold: true }) + 0.7 * letter;
      const high = Math.max(0.9 * pitch, FRAMED * letter); // rows of a slide stand closer
      pen.frame([beside - 0.35 * letter, middle - high / 2, wide, high]);
    }
  }
}

/** A table of texts. @param {Pen} pen @param {TextTable} figure @param {Box} box */
export function texttable(
  pen,
  { columns, rows, keys, selected, select, framed = [] },
  { x, y, width },
) {
  const { letter, look } = pen;
  const widest = (/** @type {number} */ at) =>
    Math.max(0, ...rows.map((/** @type {string[]} */ row) => pen.width(row[at], { bold: true })));
  const own = columns.map((/** @type {string} */ name, /** @type {number} */ at) => {
    const longest = Math.max(0, ...name.split(" ").map((word) => pen.width(word, { size: SMALL })));
    const isWhole = rows.every((/** @type {string[]} */ row) => !row[at] || isNumber(row[at]));
    const wish = Math.max(widest(at), pen.width(name, { size: SMALL })) + letter;
    const needs = Math.max(longest, isWhole ? widest(at) : Math.min(widest(at), TEXT * letter));
    return { wish, least: Math.min(width, needs + letter) };
  });
  const all = blocks(own.map(({ least }, at) => (at ? least : 0)).slice(1), width - own[0].least);
  const lists = all.length ? all.map((list) => [0, ...list.map((at) => at + 1)]) : [[0]];
  const pitch = (pen.least ? 1.35 : 1.7) * letter;
  let down = y;
  lists.forEach((list, which) => (down += block(list, which, down)));
  return down - y;

  /** @param {number[]} list @param {number} which @param {number} begin */
  function block(list, which, begin) {
    const wide = shares(
      list.map((at) => own[at]),
      width,
    );
    const total = sum(wide);
    const starts = wide.map((_, i) => x + sum(wide.slice(0, i)));
    const places = list.map((_, i) => [starts[i], wide[i] - 0.4 * letter]);
    const named = heads(
      pen,
      list.map((at) => columns[at]),
      places,
      begin,
    );
    const head = named && named + 0.2 * letter;
    if (head)
      pen.line(
        [
          [x, begin + head],
          [x + total, begin + head],
        ],
        look.border,
      );
    let top = begin + head;
    rows.forEach((row, at) => {
      const bold = at === selected;
      const cells = list.map((column, i) => linesOf(row[column], wide[i] - 0.4 * letter, bold));
      const most = Math.max(...cells.map(({ length }) => length));
      const high = pitch + (most - 1) * LINE * letter;
      const middle = top + high / 2;
      const draw = () => {
        pen.rect(x, top, total, high, {
          class: "row",
          fill: bold ? look.primary : "transparent",
          "fill-opacity": 0.12,
          rx: 4,
        });
        cells.forEach((lines, i) =>
          lines.forEach((line, n) =>
            pen.text(starts[i], middle + (n - (lines.length - 1) / 2) * LINE * letter, line, {
              bold,
            }),
          ),
        );
        for (const [, column] of framed.filter(([row]) => row === at)) {
          const i = list.indexOf(column);
          if (i >= 0)
            pen.frame([starts[i] - 0.3 * letter, top + 1, wide[i] - 0.2 * letter, high - 2]);
        }
      };
      const what = { select: [keys[at]].flat(), label: row.join(", "), pressed: bold };
      if (select.length) pen.target({ ...what, double: which > 0 }, draw);
      else draw();
      top += high;
    });
    return top - begin + (which < lists.length - 1 ? GAP : 0.4) * letter;
  }

  /** A cell in so many lines, the last one cut where it is longer. @param {string} text @param {number} room @param {boolean} bold */
  function linesOf(text, room, bold) {
    const lines = pen.lines(text, room, { bold });
    if (lines.length <= LINES || pen.isPaper) return lines;
    const rest = text
      .split(" ")
      .slice(
        lines
          .slice(0, LINES - 1)
          .join(" ")
          .split(" ").length,
      )
      .join(" ");
    return [...lines.slice(0, LINES - 1), pen.cut(rest, room, { bold })];
  }
}

/** How wide columns are: as they wish, or what they need and a share of the rest. @param {{ wish: number, least: number }[]} list @param {number} width */
function shares(list, width) {
  const [wish, least] = [sum(list.map((each) => each.wish)), sum(list.map((each) => each.least))];
  if (wish <= width) return list.map((each) => each.wish);
  const part = Math.max(0, (width - least) / (wish - least || 1));
  return list.map((each) => each.least + Math.max(0, each.wish - each.least) * part);
}
