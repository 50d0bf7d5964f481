// @ts-check
// Directions as arrows on a sphere, with the angles between them.

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** @typedef {import("./figure_types").Sphere} Sphere */

// How the sphere is seen: turned to the left and tilted, in degrees.
const [TURNED, TILTED] = [-12, 58].map((each) => (each * Math.PI) / 180);

/** Arrows on a sphere, seen from the side, and arcs of the great circles between their ends. @param {Pen} pen @param {Sphere} figure @param {Box} box */
export function sphere(pen, { arrows, arcs }, { x, y, width, height = Infinity }) {
  const { letter, look } = pen;
  const aside = Math.max(...arrows.map(({ label }) => pen.width(label, { bold: true }))) + letter;
  const reach = Math.max(
    3 * letter,
    Math.min(10 * letter, width / 2 - aside, height / 2 - (2 + 0.7 * arcs.length) * letter),
  );
  const middle = [x + width / 2, y + reach + 1.6 * letter];
  /** Right, down, and towards the eye. @param {number[]} point */
  const seen = ([a, b, c]) => {
    const [right, far] = [
      a * Math.cos(TURNED) - b * Math.sin(TURNED),
      a * Math.sin(TURNED) + b * Math.cos(TURNED),
    ];
    return [
      middle[0] + reach * right,
      middle[1] - reach * (c * Math.cos(TILTED) + far * Math.sin(TILTED)),
      c * Math.sin(TILTED) - far * Math.cos(TILTED),
    ];
  };
  const flat = (/** @type {number[]} */ point) => seen(point).slice(0, 2);
  const round = [...Array(73).keys()].map((at) => (at * Math.PI) / 36);
  const equator = round.map((angle) => seen([Math.cos(angle), Math.sin(angle), 0]));
  pen.circle(middle[0], middle[1], reach, {
    fill: look.ink,
    "fill-opacity": 0.05,
    stroke: look.border,
  });
  equator.slice(1).forEach((to, at) =>
    pen.line([equator[at].slice(0, 2), to.slice(0, 2)], look.ink, {
      "stroke-opacity": to[2] > 0 ? 0.5 : 0.2,
    }),
  );
  const colours = [look.ink, look.categorical[1], look.primary];
  arcs.forEach(({ start, end, text }, which) => {
    const [from, to] = [arrows[start].at, arrows[end].at];
    const points = [...Array(25).keys()].map((at) => {
      const mixed = from.map((each, axis) => each + ((to[axis] - each) * at) / 24);
      const size = Math.hypot(...mixed) || 1;
      return mixed.map((each) => each / size);
    });
    pen.line(points.map(flat), colours[end % 3], {
      "stroke-width": 2,
      "stroke-dasharray": "5 3",
    });
    const angle = `${arrows[start].label} → ${arrows[end].label}: ${text}`;
    pen.text(middle[0], middle[1] + reach + (1.8 + 1.4 * which) * letter, angle, {
      anchor: "middle",
      bold: arrows[end].selected,
      fill: colours[end % 3],
    });
  });
  const lowest = [-Infinity, -Infinity]; // the last name on the left and on the right
  const names = arrows.map((each, which) => ({ ...each, which, end: flat(each.at) }));
  for (const { label, selected, which, end } of names.sort((a, b) => a.end[1] - b.end[1])) {
    const [right, down] = end;
    const fill = colours[which % 3];
    pen.line([middle, end], fill, { "stroke-width": letter / 5 });
    pen.circle(right, down, letter / 3.2, { fill });
    const isLeft = right < middle[0];
    const side = isLeft ? 0 : 1;
    lowest[side] = Math.max(down, lowest[side] + 1.4 * letter);
    pen.text(right + (isLeft ? -0.7 : 0.7) * letter, lowest[side], label, {
      anchor: isLeft ? "end" : "start",
      bold: selected,
      fill,
      halo: true,
    });
  }
  return 2 * reach + (3.2 + 1.4 * arcs.length) * letter;
}
