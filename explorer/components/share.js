// @ts-check
// The Share menu: the address to copy, the headline as a picture card, and a loop of the flow.

import { decode } from "./codec.js";
import { coloured } from "./flow_player.js";
import { loop } from "./loop_export.js";
import { make, mount, redraw } from "./mount.js";
import { video, videoKind, webp, withSource } from "./moving_files.js";
import { resolved, sheet } from "./panel_layout.js";
import style from "./share.css.js";
import { sentences } from "./sentences.js";
import { address, file, pixels, save, shown } from "./svg_export.js";

/** @typedef {import("./mount.js").View} View */
const say = sentences("share");
const PNG = "image/png";

export default mount("share", style, (view) => {
  if (view.same) return;
  const { card, flow } = view.blocks;
  const { link, why } = view.header;
  const parts = [card && pictured(paneled(view, card))];
  if (flow) parts.push(moving(view, paneled(view, flow)));
  else parts.push(why ? make("p", "", why) : asking(view));
  redraw(view, [...parts, copying(link)].filter(Boolean));
});

/** A panel as a view that is drawn into files, which carry the address. @param {View} view @param {Uint8Array} data */
function paneled({ header: address, look }, data) {
  const { header, blocks } = decode(data);
  const figures = resolved(header.figures, blocks);
  return /** @type {View} */ (/** @type {any} */ ({ header, figures, look, address }));
}

/** @param {string} label @param {() => void} onclick */
const button = (label, onclick) =>
  make("button", { class: "small", onclick, data: { focus: label } }, label);

/** The press that copies the address. @param {string} link */
function copying(link) {
  const copy = button(say("copy"), async () => {
    const done = await navigator.clipboard?.writeText(link).then(
      () => true,
      () => false,
    );
    copy.textContent = say(done ? "copied" : "by_hand");
  });
  copy.setAttribute("aria-live", "polite");
  return make("div", "row", copy);
}

/** The picture card with the presses that take it along. @param {View} card */
function pictured(card) {
  const svg = sheet(card, card.look);
  const { file: stem, finding } = card.header;
  const name = (/** @type {string} */ kind) => `${stem}.${kind.toLowerCase()}`;
  const files = {
    PNG: async () => withSource(await pixels(svg, 1), card.address.link),
    SVG: async () => file(svg),
  };
  const buttons = Object.entries(files).map(([kind, made]) =>
    button(say("download", { what: say("card"), kind }), async () =>
      save(await made(), name(kind)),
    ),
  );
  const trial = { files: [new File([], name("PNG"), { type: PNG })] };
  if (navigator.canShare?.(trial))
    buttons.push(
      button(say("send"), async () => {
        const sent = new File([await files.PNG()], name("PNG"), { type: PNG });
        await navigator.share({ files: [sent], text: finding }).catch(() => {}); // the reader may turn back
      }),
    );
  const picture = shown(svg.replace(/^<svg[^>]*>|<\/svg>$/g, ""), {
    viewBox: "0 0 1200 630",
    role: "img",
    "aria-label": finding,
    class: "card",
  });
  return make("div", "part", picture, make("div", "row", ...buttons));
}

/** The press that asks for the loop. @param {View} view */
function asking(view) {
  const ask = button(say("loop"), () => {
    ask.textContent = say("making");
    view.send("loop", true);
  });
  return make("div", "row", ask);
}

/** The loop with the presses that take it along; another press stops it. @param {View} view @param {View} flow */
function moving(view, flow) {
  let svg = loop(flow, flow.look);
  const picture = make("img", { alt: say("moving"), src: address(svg) });
  coloured(flow).then(() => (picture.src = address((svg = loop(flow, flow.look)))));
  const held = make("details", { open: "" }, make("summary", "", say("moving")), picture);
  const kind = videoKind();
  /** @type {[string, string, () => Promise<Blob>][]} */
  const files = [
    ["SVG", "svg", async () => file(svg)],
    ["WebP", "webp", () => webp(svg, flow.address.link)],
  ];
  if (kind) files.push([say("video"), kind.replace("video/", ""), () => video(svg, kind)]);
  const buttons = files.map(([name, ending, made]) => {
    const label = say("loop_file", { kind: name });
    const take = button(label, async () => {
      take.disabled = true;
      take.textContent = say("making");
      const content = await made();
      take.disabled = false;
      take.textContent = label;
      if (view.root.isConnected) save(content, `${flow.header.file}-loop.${ending}`);
    });
    return take;
  });
  return make("div", "part", held, make("div", "row", ...buttons));
}
