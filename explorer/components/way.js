// @ts-check
// The map under the frame: stops of the sentence's way, each a button with a bar as high as what was
// added there.

import { make, mount } from "./mount.js";
import { whole } from "./say.js";
import style from "./way.css.js";

export default mount("way", style, (view) => {
  const { header, root, send, fresh } = view;
  if (!fresh) return;
  const stops = header.stops.map((stop) => drawn(stop, () => send("goal", stop.goal)));
  const words = header.words.length ? [said(header, () => send("goal", "predictions"))] : [];
  root.replaceChildren(make("ol", { "aria-label": header.about }, ...stops, ...words));
});

const kinds = (...names) => names.filter(Boolean).join(" ");

function drawn({ label, says, lit, gap, bar }, onclick) {
  const height = `${Math.round(100 * Math.min(1, bar))}%`;
  const about = { type: "button", title: says, "aria-label": `${label}. ${says}`, onclick };
  const name = make("span", { class: "name", dir: bar < 0 ? "auto" : undefined }, label);
  const room = bar >= 0 && make("span", "room", make("span", { class: "bar", style: { height } }));
  const current = lit ? { "aria-current": "true" } : {};
  const button = make("button", { ...about, ...current }, room, name);
  return make("li", kinds(lit && "lit", gap && "gap"), button);
}

function said({ words, lit }, onclick) {
  const each = words.map(([word, p]) => `${word} ${whole(p)}`).join(", ");
  const label = `The likeliest words: ${each}`;
  const button = make(
    "button",
    { type: "button", onclick, title: label },
    make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    ...words.map(([word, p]) =>
      make(
        "span",
        "",
        make("span", { class: "word", dir: "auto" }, word),
        " ",
        make("span", "p", whole(p)),
      ),
    ),
  );
  return make("li", kinds("says", "gap", lit && "lit"), button);
}
