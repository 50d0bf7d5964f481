// @ts-check
// The map under the frame: stops of the sentence's way, each a button with a bar as high as what was
// added there.

import { make, mount } from "./mount.js";
import { whole } from "./number_format.js";
import { terms } from "./terms.js";
import style from "./layer_map.css.js";

export default mount("way", style, (view) => {
  const { header, root, send, fresh } = view;
  if (!fresh) return;
  const stops = header.stops.map((stop) => drawn(stop, () => send("goal", stop.goal)));
  const says = [
    header.words.length > 0 && said(header, () => send("goal", "predictions")),
    header.pushed.length > 0 && pushed(header, () => send("goal", header.pushed[2])),
  ].filter(Boolean);
  const spoken = says.length ? [make("li", kinds("says gap", header.lit && "lit"), ...says)] : [];
  view.terms ||= terms(view);
  const { button, panels } = view.terms;
  const listed = make("li", "glossary", button);
  const stopped = [...stops, ...spoken, listed];
  root.replaceChildren(
    make(
      "ol",
      { class: kinds(header.stops.length > LONG && "long"), "aria-label": header.about },
      ...stopped,
    ),
    ...panels,
  );
});

const kinds = (...names) => names.filter(Boolean).join(" ");

function drawn({ label, short, says, lit, gap, bar }, onclick) {
  const height = `${Math.round(100 * Math.min(1, bar))}%`;
  const about = {
    type: "button",
    title: says,
    "aria-label": label ? `${label}. ${says}` : says,
    onclick,
  };
  const dir = bar < 0 ? "auto" : undefined;
  const names = [
    make("span", { class: "name", dir }, label),
    make("span", { class: "name short", dir }, short),
  ];
  const room = bar >= 0 && make("span", "room", make("span", { class: "bar", style: { height } }));
  const current = lit ? { "aria-current": "true" } : {};
  const button = make("button", { ...about, ...current }, room, ...names);
  return make("li", kinds(lit && "lit", gap && "gap"), button);
}

// Of a map as long as a translator's only the likeliest word is drawn, and all are said.
const LONG = 12;

function said({ words, stops, note }, onclick) {
  const each = words.map(([word, p]) => `${word} ${whole(p)}`).join(", ");
  const label = `The likeliest words: ${each}${note}`;
  return make(
    "button",
    { type: "button", onclick, title: label },
    make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    ...words
      .slice(0, stops.length > LONG ? 1 : words.length)
      .map(([word, p]) =>
        make(
          "span",
          "",
          make("span", { class: "word", dir: "auto" }, word),
          " ",
          make("span", "p", whole(p)),
        ),
      ),
  );
}

function pushed({ pushed: [head, says] }, onclick) {
  const by = make("span", "by", "pushed by");
  return make("button", { type: "button", onclick, title: says }, by, " ", make("span", "", head));
}
