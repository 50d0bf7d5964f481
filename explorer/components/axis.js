// @ts-check
// Axes of curves: where ticks stand, and how a value becomes a place.

/**
 * A step of 1, 2 or 5 times a power of ten, of which at most about so many fit.
 * @param {number} span
 * @param {number} most
 * @param {number[]} [steps]
 * @returns {number}
 */
export function nice(span, most, steps = [1, 2, 5, 10]) {
  const rough = span / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * /** @type {number} */ (steps.find((step) => step * power >= rough * 0.999));
}

/**
 * Round values from low to high.
 * @param {number} low
 * @param {number} high
 * @param {boolean} [log]
 */
export function ticks(low, high, log = false) {
  const list = [];
  if (log) {
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const each of high / low > 200 ? [1] : [1, 2, 5]) {
        const value = each * 10 ** power;
        if (value >= low * 0.999 && value <= high) list.push(+value.toPrecision(6));
      }
    return list;
  }
  const within = (/** @type {number} */ step) =>
    Math.floor(high / step) - Math.ceil(low / step) + 1;
  const rough = nice(high - low, 3); // three numbers tell an axis, where they fit
  const size = within(rough) < 3 ? nice(high - low, 4, [1, 2, 2.5, 5, 10]) : rough;
  for (let at = Math.ceil(low / size - 1e-9); at * size <= high + size * 1e-9; at++)
    list.push(+(at * size).toPrecision(10));
  return list;
}

/**
 * From a value to a place between `from` and `to`.
 * @param {number} low
 * @param {number} high
 * @param {number} from
 * @param {number} to
 * @param {boolean} [log] then what lies under `low` stands at it
 * @returns {(value: number) => number}
 */
export function scale(low, high, from, to, log = false) {
  const share = log
    ? (/** @type {number} */ value) => Math.log(Math.max(value, low) / low) / Math.log(high / low)
    : (/** @type {number} */ value) => (value - low) / (high - low || 1);
  return (value) => from + (to - from) * share(value);
}

/** Ticks whose texts do not touch: every second, third, ... of them. @param {any[][]} all @param {(value: number) => number} place @param {number} pitch */
export function apart(all, place, pitch) {
  const step = all.length > 1 ? Math.abs(place(all[1][0]) - place(all[0][0])) : Infinity;
  const skip = Math.max(1, Math.ceil(pitch / step));
  return all.filter((_, at) => at % skip === 0);
}

/** One scale for both axes: distances compare in every direction. @param {number[]} x @param {number[]} y @param {number} shape */
export function even(x, y, shape) {
  const [wide, high] = [x[1] - x[0] || 1, y[1] - y[0] || 1];
  const [axis, span] = wide / high < shape ? [x, high * shape - wide] : [y, wide / shape - high];
  axis[0] -= span / 2;
  axis[1] += span / 2;
}

/** Where the frames of a slider lie on it, and its ends: on the axis of a chart that follows it, else each as far from the next. @param {any[]} figures @param {any} slider @returns {[number[], number, number]} */
export function placesOf(figures, { frames, choice }) {
  const all = figures.flatMap((one) => [one, ...(one.figures || [])]);
  const chart = all.find((one) => choice && one.follows === choice && one.x_range);
  if (!chart) return [[...frames.keys()], 0, frames.length - 1];
  const [low, high] = chart.x_range;
  const place = scale(low, high, 0, 1, chart.log_x);
  return [frames.map((/** @type {any} */ { x }, /** @type {number} */ at) => place(x ?? at)), 0, 1];
}

/** Which of some numbers is nearest to one. @param {number[]} numbers @param {number} to */
export function nearest(numbers, to) {
  const off = numbers.map((each) => Math.abs(each - to));
  return off.indexOf(Math.min(...off));
}

const FEW = 12; // frames that are walked through by buttons too

/** Whether a figure is a few frames that are no sequence in time. @param {any} one */
export const isWalked = (one) => one.kind === "steps" && one.frames.length <= FEW && !one.plays;

/** Move what a chart marks to a place: its guide, with a name where it had one, and a point on its first curve. @param {any} chart @param {number} x @param {string} name */
export function guide(chart, x, name) {
  chart.guides = [[x, chart.guides[0]?.[1] ? name : ""]];
  const [curve, point] = chart.series;
  if (point?.shape !== "points" || point.x.length > 1) return;
  chart.series[1] = { ...point, x: [x], y: [curve.y[nearest([...curve.x], x)]] };
}
