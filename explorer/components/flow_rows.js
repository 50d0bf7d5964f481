// @ts-check
// The rows of the whole machine: the tokens' lines with their labels, which a press chooses or takes out.

import { DARK, DARKEN, END, isAsked, isEnd, share } from "./beam_figure.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./flow_figure.js").Flow} Flow */
/** @typedef {import("./flow_figure.js").Plan} Plan */

const say = sentences("flow");
export const BELOW = 1.9; // letters from the chosen row to the words below it

/** All rows of all bands: their labels. @param {Pick<Flow, "bands">} figure */
export const labelsOf = ({ bands }) => bands.flatMap((/** @type {any} */ band) => band.rows);

/** The row of a band's selected token. @param {Flow} figure @param {number} band */
export const chosenRow = ({ bands }, band) =>
  labelsOf({ bands: bands.slice(0, band) }).length + bands[band].selected;

/** A point: so far along the layers and along the tokens. @param {Plan} plan @param {number} along @param {number} across */
export const point = (plan, along, across) => (plan.turned ? [across, along] : [along, across]);

/** A curve from one point to another, along the layers at both ends. @param {Pen} pen @param {Plan} plan @param {number[]} from @param {number[]} to @param {string} stroke @param {Record<string, any>} style */
export function curve(pen, plan, [a, b], [c, d], stroke, style) {
  const middle = (a + c) / 2;
  const points = [
    [a, b],
    [middle, b],
    [middle, d],
    [c, d],
  ].map(([along, across]) =>
    point(plan, along, across)
      .map((each) => each.toFixed(1))
      .join(" "),
  );
  pen.path(`M${points[0]}C${points.slice(1).join(" ")}`, stroke, style);
}

/** The row of a word that was written behind the text of another flow, -1 where none was. @param {Flow} from @param {Flow} to */
export function writtenRow({ bands: [before] }, { bands: [after] }) {
  const n = after.rows.length - 1;
  const isLonger = n >= 1 && before.rest < 0 && after.rest < 0 && before.rows.length === n;
  return isLonger && before.rows.every((/** @type {string} */ row, i) => row === after.rows[i])
    ? n
    : -1;
}

/** The edits of a line of them. @param {string | undefined} line */
export const linesOf = (line) => (line ? line.split(",") : []);

/** The edits of the run without some, or with these too. @param {Flow} figure @param {string} line of these */
export function toggled({ edits }, line) {
  const [now, lines] = [edits, line].map(linesOf);
  const isOut = lines.every((each) => now.includes(each));
  const left = now.filter((each) => !lines.includes(each));
  return [...left, ...(isOut ? [] : lines)].join(",");
}

/** Whether a head is out, also where that has been asked for and is not there yet. @param {Flow} figure @param {number} layer @param {import("./flow_figure.js").FlowAttention} attention @param {number} head */
export const isHeadOut = ({ wanted }, layer, { removed, name }, head) =>
  wanted === undefined
    ? removed.includes(head)
    : linesOf(wanted).includes(`ZeroHead:${layer}:${head}:${name}`);

/** The colour of what comes from a row: that of its word, if it has one. @param {Pen} pen @param {Flow} figure @param {number} row */
export const hueOf = ({ look }, { hues }, row) =>
  hues?.[row] === undefined ? undefined : look.categorical[hues[row]];

export const GAP = "▢"; // stands for the word that is asked for

/** Whether the word in focus is one that is hidden, and the light has not come to the end. @param {Flow} figure */
export const isHidden = (figure) => figure.asks[2] === "hidden" && !figure.level && !isEnd(figure);

const NIGHT = "#0a0c12"; // darker than a dark page

/** How far along the layers the light has come, and from where on it is dark: nowhere in the end, on a level that is opened and on paper. @param {Pen} pen @param {Flow} figure @param {Plan} plan @returns {[number, number]} */
export function lightEdge(pen, figure, plan) {
  const [from, to] = plan.edge;
  if (figure.level || isEnd(figure)) return [to, Infinity];
  const edge = figure.current < 0 ? from : plan.ends[figure.current];
  return [edge, isAsked(figure) || pen.isPaper ? Infinity : edge];
}

/** The dark before the beam, under the lines of each band. @param {Pen} pen @param {Flow} figure @param {Plan} plan */
export function night(pen, figure, plan) {
  const { letter } = pen;
  const [, edge] = lightEdge(pen, figure, plan);
  figure.bands.forEach((_, band) => {
    const own = figure.layers.flatMap((layer, at) => (layer.band === band ? [at] : []));
    const from = Math.max(edge, plan.starts[own[0]]);
    const to = plan.ends[own[own.length - 1]];
    if (from >= to) return;
    const [x, y] = point(plan, from, plan.rows[plan.firsts[band]] - 0.9 * letter);
    const [u, v] = point(plan, to, plan.foots[band]);
    pen.rect(x, y, u - x, v - y, { rx: 8, fill: NIGHT, class: "flow-night" });
  });
}

/** Every row's line with its label. A press on a line chooses its word, on its label takes the word out. @param {Pen} pen @param {Flow} figure @param {Plan} plan */
export function streams(pen, figure, plan) {
  const { letter, look } = pen;
  const [from, to] = plan.edge;
  const [edge, unlit] = lightEdge(pen, figure, plan);
  const out = linesOf(figure.wanted ?? figure.edits);
  const before = figure.from?.wanted ?? figure.from?.edits;
  const wasOut = before === undefined ? out : linesOf(before);
  const dark = share(figure.from?.ms, 0, DARKEN);
  figure.bands.forEach((/** @type {any} */ band, /** @type {number} */ at) => {
    const first = plan.firsts[at];
    const few = figure.zoom?.few ?? 0;
    const one = (/** @type {string} */ name, /** @type {number} */ row) => {
      const isUnknown = row === band.selected && isHidden(figure);
      const label = isUnknown ? GAP : name;
      const across = plan.rows[first + row];
      const chosen = row === band.selected;
      const isRest = row === band.rest;
      const hue = chosen ? look.ink : hueOf(pen, figure, first + row);
      const lines = linesOf(band.outs?.[row]);
      const isIn = (/** @type {string[]} */ edits) =>
        lines.length > 0 && lines.every((each) => edits.includes(each));
      const isOut = isIn(out);
      const before = Number(isIn(wasOut));
      const gone = before + (Number(isOut) - before) * dark; // how far it is dark
      const ends = (/** @type {number} */ a, /** @type {number} */ b) => [
        point(plan, a, across),
        point(plan, b, across),
      ];
      const line = () => {
        const light = (chosen ? 0.35 : hue ? 0.6 : 0.22) * (1 - gone);
        const style = {
          "stroke-width": chosen ? 1.2 : 0.13 * letter,
          "stroke-linecap": "round",
        };
        const lit = ends(from, Math.min(unlit, to));
        if (gone < 1)
          pen.line(lit, hue ?? look.ink, {
            ...style,
            "stroke-opacity": light,
            "stroke-dasharray": isRest ? "2 6" : undefined,
          });
        if (gone > 0)
          pen.line(lit, look.ink, {
            ...style,
            class: "flow-dark",
            "stroke-opacity": 0.3 * gone,
            "stroke-dasharray": "2 6",
          });
        if (unlit < to)
          pen.line(ends(unlit, to), DARK.ink, {
            ...style,
            "stroke-opacity": 0.28 * (1 - (figure.zoom?.open ?? 0)),
          });
        if (chosen && edge > from)
          pen.line(ends(from, edge), look.ink, {
            "stroke-width": 0.33 * letter,
            "stroke-linecap": "round",
          });
      };
      const isPressed = !isRest && band.choice;
      pen.select = [band.choice];
      if (isPressed && !chosen && figure.level === 0)
        pen.target({ select: [band.places[row]], label, name: "rail", double: true }, () => {
          line();
          pen.line(ends(from, to), look.ink, {
            "stroke-width": 0.6 * letter,
            "stroke-opacity": 0,
          });
        });
      else line();
      const [x, y] = point(plan, from - 0.6 * letter, across);
      if (
        chosen &&
        figure.says &&
        at === figure.bands.length - 1 &&
        !plan.turned &&
        !isAsked(figure)
      )
        pen.text(x, y + BELOW * letter, figure.says, {
          size: 0.85,
          alpha: 0.75,
          anchor: "end",
        });
      const isComing = at === 0 && figure.from?.written === row; // its word is on the way there
      const style = {
        bold: Boolean(hue),
        fill: isOut ? undefined : hue,
        alpha: isComing ? 0.01 : isRest || isOut ? 0.7 : undefined,
      };
      const room = 0.2 * (to - from) + 4 * letter;
      const draw = () => {
        if (plan.turned) pen.text(x, y, label, { ...style, turn: -90, room: 7 * letter });
        else pen.text(x, y, label, { ...style, anchor: "end", room });
        if (plan.turned) return;
        const wide = Math.min(room, pen.width(label, style));
        if (hue && !chosen)
          mark(pen, figure.hues?.[first + row] ?? 0, [x - wide - 0.7 * letter, y], hue);
        if (gone > 0)
          pen.line(
            [
              [x - wide - 2, y],
              [x - wide - 2 + gone * (wide + 4), y],
            ],
            look.ink,
            { "stroke-width": 1.5 },
          );
      };
      if (isAsked(figure)) return;
      const part = `token ${at}.${band.places[row]}`;
      if (isRest || !(band.choice || lines.length)) return draw();
      if (figure.level || !lines.length) {
        pen.select = [band.choice];
        return pen.target(
          { select: [band.places[row]], label, pressed: chosen, name: "token", part },
          draw,
        );
      }
      pen.select = ["edits", "flow_beam"];
      const told = `${label}, ${say(isOut ? "is_out" : "is_read")}`;
      pen.target(
        {
          select: [toggled(figure, band.outs[row]), END],
          label: told,
          pressed: isOut,
          name: "token",
          part,
        },
        draw,
      );
    };
    band.rows.forEach((/** @type {string} */ label, /** @type {number} */ row) => {
      // On the way to a level of one row the others go to it, and are gone there.
      if (row === band.selected || band.rows.length === 1 || !few) one(label, row);
      else
        pen.put(
          "g",
          { opacity: (1 - few).toFixed(2) },
          pen.apart(() => one(label, row)),
        );
    });
  });
}

/** The shape that stands for a word beside its colour: a disc, a square, a triangle. @param {Pen} pen @param {number} hue @param {number[]} place @param {string} fill */
function mark(pen, hue, [x, y], fill) {
  const r = 0.28 * pen.letter;
  if (hue === 0) pen.circle(x, y, r, { fill });
  else if (hue === 1) pen.rect(x - r, y - r, 2 * r, 2 * r, { fill });
  else
    pen.path(`M${x} ${y - r}l${1.1 * r} ${2 * r}h${-2.2 * r}z`, "none", {
      fill,
    });
}

/** What the second stream reads of the first; nothing of it above `top`. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {number} top */
export function memory(pen, figure, plan, top) {
  const { letter, look } = pen;
  const at = figure.layers.findIndex((/** @type {any} */ layer) => layer.band === 1);
  const along = (plan.ends[at - 1] + plan.starts[at]) / 2;
  const [low, high] = [plan.rows[0] - 0.6 * letter, plan.rows[plan.firsts[1] - 1] + 0.6 * letter];
  const [x, y] = point(plan, along - 0.4 * letter, low);
  const [u, v] = point(plan, along + 0.4 * letter, high);
  pen.rect(x, y, u - x, v - y, { rx: 4, fill: look.ink, "fill-opacity": 0.3 });
  if (!plan.turned)
    pen.text((x + u) / 2, Math.max(y - 0.8 * letter, top + 0.5 * letter), figure.between, {
      anchor: "middle",
      size: 0.85,
      alpha: 0.85,
    });
}
