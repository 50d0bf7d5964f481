// @ts-check
// A translation in three pictures, each mounted by itself: its steps, the list of a beam search, and the
// tree of how it grew.

import { ahead, whole } from "./optimistic_updates.js";
import { bus } from "./bus.js";
import { plainKey, rove } from "./keys.js";
import { fitted, make, mount, redraw } from "./mount.js";
import { fixed } from "./number_format.js";
import { stepper } from "./stepper.js";
import style from "./translation.css.js";
import { alignment } from "./translation_alignment.js";
import { candidates, heads, reading } from "./step_details.js";
import { lineup } from "./alignment_lines.js";
import { tree } from "./translation_tree.js";
import { unfold } from "./codec.js";

/** @typedef {import("./mount.js").View} View */

const A_STEP = 900; // milliseconds while playing
const BOXES = [".scroll", ".heads"];

export default mount("translation", style, (view) =>
  ({ steps, beams, tree })[view.header.kind](view),
);

/** @param {View} view */
function steps(view) {
  const { header, blocks, before, root } = view;
  const news = !before || before.text !== header.text;
  // A step that this view reported itself is no news: the reader may have gone on since, and reported
  // more than once.
  const echo = (view.sent ||= []).indexOf(header.step);
  if (news || (echo < 0 && header.step !== view.reported)) view.step = header.step;
  if (echo < 0) view.reported = header.step;
  view.sent.splice(0, echo + 1);
  if (news) view.stepper?.halt();
  if (!view.same) {
    view.stepper?.halt();
    view.rows = header.says.length;
    view.n = header.source.length;
    view.step = Math.max(0, Math.min(view.rows - 1, view.step));
    Object.assign(view, unfold(blocks));
    view.peak = view.weight.reduce((most, weight) => Math.max(most, weight), 0);
    view.title = header.titles[header.names.indexOf(header.name)];
    [view.parts, view.sized] = [[], []];
    if (view.rows) drawn(view);
    else redraw(view, [make("p", "note", "There is no token yet.")]);
  }
  // What presenters' remote controls send.
  root.onkeydown = (event) => {
    const by = plainKey(event) && { PageDown: 1, PageUp: -1 }[event.key];
    if (!by || !view.rows) return;
    event.preventDefault();
    view.stepper.go(view.step + by);
  };
  if (view.rows) show(view);
  ahead(view, (asked) => {
    const step = whole(asked.step, view.rows + 1) - 1; // the address counts from 1
    if (step >= 0 && step !== view.step) view.stepper.go(step, true);
  });
}

/** @param {View} view */
function drawn(view) {
  const { header } = view;
  view.stepper = stepper(view, {
    n: view.rows,
    label: "Step",
    first: 1,
    pause: A_STEP,
    says: (step) => {
      const where = `Step ${step + 1} of ${view.rows}`;
      return [where, `${where}: ${header.says[step]}`];
    },
    show: () => show(view),
    told: (step) => {
      if (view.reported === step) return;
      view.reported = step;
      view.sent.push(step);
      view.send("step", step);
    },
  });
  const panels = make(
    "div",
    "panels",
    alignment(view),
    make("div", "side", candidates(view), heads(view)),
  );
  redraw(view, [lineup(view), view.stepper.box, reading(view), panels], BOXES);
  fitted(view, view.root, () => view.sized.forEach((fit) => fit()));
}

/** @param {View} view */
function show(view) {
  view.root.dataset.step = view.step + 1;
  view.stepper.mark();
  view.parts.forEach((part) => part(view.step));
  bus.tell({ translation: view.step });
}

// ---- the list of a beam search -------------------------------------------------------------------

/** What stands for a hypothesis whose tokens spell no text. */
const unspelled = (beam) => (beam.done && beam.n === 1 ? "(empty output)" : "(nothing)");

/** @param {View} view */
function beams(view) {
  const { header } = view;
  if (view.same) return;
  const list = header.beams.map((beam, at) =>
    make(
      "button",
      {
        class: "hypothesis",
        role: "radio",
        "aria-checked": at === header.chosen,
        data: { focus: `beam ${at}` },
        onclick: () => view.send("beam", at),
      },
      make("span", "rank", `${at + 1}`),
      make("span", { class: "text", dir: "auto" }, beam.text || unspelled(beam)),
      make("span", "more", `${beam.n} tokens${beam.done ? "" : ", not ended"}`),
      make(
        "span",
        "figures",
        make("span", "", `log p ${fixed(beam.sum, 3)}`),
        make("span", "", `÷ ${beam.by.toFixed(3)}`),
        make("strong", "", `= ${fixed(beam.score, 3)}`),
      ),
    ),
  );
  rove(list, { held: header.chosen });
  const about = "Hypotheses of the beam search, best first. Arrow keys move, Enter shows one.";
  const note = make(
    "p",
    "note",
    "log p is the sum of the tokens’ log-probabilities. Beams are ranked by the sum ÷ ((5 + n) / 6)",
    make("sup", "", "0.6"),
    " for n tokens, including the end token. Select one to see it below.",
  );
  const box = make(
    "div",
    { class: "hypotheses", role: "radiogroup", "aria-label": about },
    ...list,
  );
  redraw(view, [box, note]);
}
