// Views in type for the back row say what their own numbers say.
import assert from "node:assert/strict";
import { test } from "node:test";

const of = (name) => import(`${process.env.MODULES}/${name}.js`);
const { grown, hypotheses } = await of("presenter_panels_rest");

test("hypotheses are cut where they part, the chosen one is on, arrows choose another", () => {
  const beams = [
    { text: "La voiture rouge est devant la maison.", score: -0.5 },
    { text: "La voiture rouge est dans la cour.", score: -1.5 },
  ];
  const sent = [];
  const shown = hypotheses({
    header: { beams, chosen: 1 },
    send: (...what) => sent.push(what),
  });
  const { rows } = shown.panels[0];
  assert.deepEqual(
    rows.map(({ label, on }) => [label, on]),
    [
      ["… devant la maison.", false],
      ["… dans la cour.", true],
    ],
  );
  assert.ok(Math.abs(rows[0].values[0] - Math.exp(-0.5)) < 1e-12);
  assert.match(shown.says, /dans la cour.* is second of 2 \(−1\.500\)/);
  shown.walk(-1);
  shown.walk(1);
  assert.deepEqual(sent, [["beam", 0], ["beam", 1]]); // prettier-ignore
});

test("a tree says where the one chosen in the end was behind", () => {
  const beam = (label, parent, more) => ({ label, parent, p: 0.5, score: -1, ...more });
  const steps = [
    [beam("a", 0), beam("b", 0)],
    [beam("c", 1), beam("d", 0)],
  ];
  assert.match(grown({ header: { steps, chosen: 0 } }).says, /step 1 .* only second, at “b”/);
  assert.match(grown({ header: { steps, chosen: 1 } }).says, /step 2 .* only second, at “d”/);
  steps[1][0].parent = 0;
  const shown = grown({ header: { steps, chosen: 0 } });
  assert.match(shown.says, /all 2 steps .* first/);
  assert.deepEqual(shown.panels[0].rungs[1].words[0], ["c", 0.5, "0.50"]);
});
