// @ts-check
// Attention as a graph: nodes are tokens, an edge goes from a key to the query that listens to it. The
// layout never leaves the order of the text.

import { arrange, pathOf } from "./graph_layout.js";
import style from "./graph.css.js";
import { rove } from "./keys.js";
import { fitted, hear, make, mount } from "./mount.js";
import { spokenLine } from "./number_format.js";
import { offer, FONT, node, paper, tag, written } from "./svg_export.js";
import { cut, listed, named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

export default mount("graph", style, (view) => {
  const { header } = view;
  if (!view.same) draw(view);
  // The sentence beside the graph says whose messages are open.
  hear(view, ({ matrix }) => matrix?.picture === header.token && view.hold(matrix.row));
});

/** The graph for a width in pixels. @param {View} view @param {import("./theme.js").Look} look */
function picture({ header, blocks }, look, width, font) {
  const scene = arrange(header, width);
  const side = header.sources ? width * 0.3 : Math.min(width * 0.3, 170);
  const most = Math.max(4, Math.floor((scene.round ? 80 : side) / (scene.font * 0.58)));
  const long = Math.max(...header.labels.map((label) => Math.min(most, [...label].length)));
  scene.edge = (long * scene.font * 0.58) / 2 + 8;
  scene.room = width / 2 - scene.edge - 14;
  const top = blocks.weights.length ? blocks.weights[0] : 1;
  const edges = Array.from(blocks.weights, (weight, at) => {
    const [query, key] = [blocks.queries[at], blocks.keys[at]];
    const share = weight / top;
    const line = node("path", {
      d: pathOf(scene, query, key),
      "stroke-width": (0.75 + 4.25 * share).toFixed(2),
      opacity: (0.2 + 0.6 * share).toFixed(2),
      "marker-end": "url(#tip)",
    });
    return { query, key, weight, line, calm: 0.2 + 0.6 * share };
  });
  const loudest = Math.max(...blocks.out, 1e-9);
  const size = (at) => Math.sqrt(Math.max(0, blocks.out[at]) / loudest);
  const token = (label, place, at, kind, loud) => {
    const { x, y, anchor, angle = 0 } = place;
    const away = (scene.round ? 14 : 10) + 4 * loud;
    const [dx, dy] = scene.round
      ? [Math.cos(angle) * away, Math.sin(angle) * away]
      : [{ middle: 0, start: away, end: -away }[anchor] ?? 0, 0];
    const turned = scene.round && header.labels.length > 24; // so many names stand like a sun's rays
    const turn = (angle * 180) / Math.PI + (anchor === "end" ? 180 : 0);
    const name = node(
      "text",
      {
        x: x + dx,
        y: y + dy,
        "text-anchor": scene.round && !turned && Math.abs(dx) < 6 ? "middle" : anchor,
        "dominant-baseline": "central",
        "font-size": scene.font.toFixed(1),
        fill: look.ink,
        direction: "ltr",
        "unicode-bidi": "isolate",
        transform: turned ? `rotate(${turn} ${x + dx} ${y + dy})` : undefined,
      },
      cut(label, most),
    );
    const plate = { fill: look.primary, class: "plate" };
    const high = scene.font * 1.44;
    const back =
      anchor === "middle"
        ? node("rect", {
            ...plate,
            x: x - scene.edge,
            y: y - high / 2,
            width: 2 * scene.edge,
            height: high,
            rx: 5,
            "fill-opacity": (0.5 * loud).toFixed(2),
          })
        : node("circle", {
            ...plate,
            cx: x,
            cy: y,
            r: (3.5 + 8 * loud).toFixed(1),
            stroke: look.paper,
            "stroke-width": 1.5,
          });
    return node("g", { "data-at": at, class: `node ${kind}` }, back, name);
  };
  const heard = header.labels.map((label, at) =>
    token(label, scene.hears[at], at, "query", header.sources ? 0.25 : size(at)),
  );
  const spoken = (header.sources || []).map((label, at) =>
    token(label, scene.speaks[at], at, "key", size(at)),
  );
  const tip = node(
    "marker",
    {
      id: "tip",
      viewBox: "0 0 8 8",
      refX: 6.5,
      refY: 4,
      markerWidth: 9,
      markerHeight: 9,
      markerUnits: "userSpaceOnUse",
      orient: "auto",
    },
    node("path", { d: "M0 0L8 4L0 8z", fill: look.primary }),
  );
  const [wide, height] = [scene.width || width, scene.height];
  const svg = node(
    "svg",
    { width: wide, height, viewBox: `0 0 ${wide} ${height}`, "font-family": font },
    node("defs", {}, tip),
    // The strongest on top.
    node("g", { fill: "none", stroke: look.primary }, ...edges.map(({ line }) => line).reverse()),
    ...spoken,
    ...heard,
  );
  return { svg, edges, heard, spoken, height, width: wide };
}

const REST =
  "An edge goes from a token to the one that listens to it. Point at a token to see its messages; click it to open them.";

/** @param {View} view */
function draw(view) {
  const { header, blocks, look } = view;
  const scroll = make("div", "sheet");
  const line = spokenLine("value");
  offer(view, "Picture", (on) => sheet(view, on));
  view.root.replaceChildren(scroll, line);
  /** @type {ReturnType<typeof picture>} */
  let now;
  let stop = (at) => {};
  const show = (kind, at) => {
    now.edges.forEach(({ line: edge, calm, ...ends }) => {
      const mine = ends[kind] === at;
      edge.setAttribute("opacity", `${at < 0 ? calm : mine ? Math.max(0.7, calm) : 0.1}`);
    });
    if (at < 0) return line.replaceChildren(REST);
    const mine = now.edges.filter((edge) => edge[kind] === at);
    const sources = header.sources || header.labels;
    const [own, others, other] =
      kind === "query" ? [header.labels, sources, "key"] : [sources, header.labels, "query"];
    if (!mine.length) return line.replaceChildren(named(own[at]), " has no edge above the rule.");
    line.replaceChildren(
      named(own[at]),
      kind === "query" ? " listens to " : " is heard by ",
      ...listed(
        [...mine.keys()].slice(0, 5),
        (i) => others[mine[i][other]],
        (i) => mine[i].weight.toFixed(2),
      ),
      mine.length > 5 ? ` and ${mine.length - 5} more` : "",
    );
  };
  view.hold = (at) => {
    view.held = at >= 0 && at < header.labels.length ? at : -1;
    now.heard.forEach((group, i) => {
      group.setAttribute("aria-pressed", i === view.held);
      group.classList.toggle("held", i === view.held);
    });
    stop(Math.max(0, view.held));
    view.root.dataset.row = view.held;
    show("query", view.held);
  };
  fitted(view, scroll, () => {
    const width = Math.max(300, Math.round(scroll.clientWidth) - 2);
    now = picture(view, look, width, look.font);
    now.svg.setAttribute("role", "group");
    now.svg.setAttribute(
      "aria-label",
      `${header.title}: ${header.labels.length} tokens, ${blocks.weights.length} edges. Arrow keys move from token to token, Enter opens its messages. The table has the same numbers.`,
    );
    now.heard.forEach((group, at) => {
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", `Token ${at}, ${header.labels[at]}`);
      group.onclick = () => {
        view.hold(at);
        view.send("row", at);
      };
      group.onmouseenter = group.onfocus = () => show("query", at);
      group.onmouseleave = group.onblur = () => show("query", view.held ?? -1);
      group.onkeydown = (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        group.onclick();
      };
    });
    stop = rove(now.heard);
    now.spoken.forEach((group, at) => {
      group.onmouseenter = () => show("key", at);
      group.onmouseleave = () => show("query", view.held ?? -1);
    });
    scroll.replaceChildren(now.svg);
    view.hold(view.held ?? -1);
  });
}

/** @param {View} view @param {import("./theme.js").Look} look */
function sheet(view, look) {
  const { header } = view;
  const drawn = picture(view, look, 760, FONT);
  const width = Math.max(800, drawn.width + 40);
  return paper(look, { title: header.title, caption: header.caption, width }, (top) => [
    tag("g", { transform: `translate(20 ${top})` }, written(drawn.svg.childNodes)),
    top + drawn.height + 20,
  ]);
}
