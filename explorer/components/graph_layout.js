// @ts-check
// Where the nodes of a graph of tokens stand, and the ways between them.

/**
 * Places of the nodes: hears[query] and speaks[key], each { x, y, anchor }; the same where queries and
 * keys are one text.
 * @param {any} header
 * @param {number} width
 * @returns {any}
 */
export function arrange(header, width) {
  const n = header.labels.length;
  if (header.sources) {
    const most = Math.max(n, header.sources.length);
    const pitch = Math.max(20, Math.min(38, 660 / most));
    const height = most * pitch + 20;
    const column = (list, x, anchor) =>
      list.map((_, at) => ({ x, y: 10 + ((at + 0.5) * (height - 20)) / list.length, anchor }));
    return {
      apart: true,
      height,
      font: Math.min(19, pitch * 0.62),
      hears: column(header.labels, width * 0.68, "start"),
      speaks: column(header.sources, width * 0.32, "end"),
    };
  }
  if (header.layout === "circle") {
    const around = Math.max(width, (n * 22) / Math.PI + 200);
    const radius = Math.max(60, Math.min(around, 860) / 2 - 92, (n * 17) / (2 * Math.PI));
    const size = 2 * radius + 184;
    const places = header.labels.map((_, at) => {
      const angle = (2 * Math.PI * at) / n - Math.PI / 2;
      const [x, y] = [Math.cos(angle), Math.sin(angle)];
      return {
        x: size / 2 + radius * x,
        y: size / 2 + radius * y,
        angle,
        anchor: x < -0.01 ? "end" : "start",
      };
    });
    const font = Math.max(11, Math.min(19, ((2 * Math.PI * radius) / n) * 0.62));
    return {
      round: true,
      height: size,
      width: size,
      font,
      centre: size / 2,
      hears: places,
      speaks: places,
    };
  }
  const pitch = Math.max(20, Math.min(42, 720 / n));
  const places = header.labels.map((_, at) => ({
    x: width / 2,
    y: 14 + (at + 0.5) * pitch,
    anchor: "middle",
  }));
  return { height: n * pitch + 28, font: Math.min(20, pitch * 0.6), hears: places, speaks: places };
}

/** The path of an edge, from the key's side to the query's. @param {any} scene @param {number} query @param {number} key */
export function pathOf(scene, query, key) {
  const [to, from] = [scene.hears[query], scene.speaks[key]];
  if (scene.apart) {
    const middle = (from.x + to.x) / 2;
    return `M${from.x + 8} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${to.x - 8} ${to.y}`;
  }
  if (scene.round) return chord(scene.centre, from, to);
  // Arcs: what comes from earlier tokens on the right, from later ones on the left, from itself a small
  // loop on the right.
  const side = key <= query ? 1 : -1;
  const start = scene.edge + 6;
  if (query === key) return `M${to.x + start} ${to.y - 4}c16 -9 16 17 0 8`;
  const share = Math.abs(query - key) / Math.max(6, scene.hears.length - 1);
  const far = Math.min(scene.room - 4, 14 + scene.room * share ** 0.75);
  const [x, out] = [to.x + side * start, to.x + side * (start + far * 1.33)];
  return `M${x} ${from.y}C${out} ${from.y} ${out} ${to.y} ${x} ${to.y}`;
}

function chord(centre, from, to) {
  if (from === to) {
    const [x, y] = [Math.cos(to.angle), Math.sin(to.angle)];
    return `M${to.x} ${to.y}c${-26 * x - 14 * y} ${-26 * y + 14 * x} ${-26 * x + 14 * y} ${-26 * y - 14 * x} 0 0`;
  }
  const pulled = (a, b) => centre + ((a + b) / 2 - centre) * 0.35;
  return `M${from.x} ${from.y}Q${pulled(from.x, to.x)} ${pulled(from.y, to.y)} ${to.x} ${to.y}`;
}
