// Written by `python -m docs.figure_types` of explorer/figures/kinds.py.

/** An array of numbers as it arrives. */
export type Numbers = Float32Array;

/** A vector of a plane: its name, and the points where it starts and ends. */
export interface Arrow {
  label: string;
  start: [number, number];
  end: [number, number];
  selected: boolean;
}

/** Vectors of one plane at their true lengths and angles. angle: between the first and the last, which start at one point, as text. */
export interface Arrows extends Figure {
  arrows: Arrow[];
  angle: string;
}

/** A row of bars: its label, and for each column a length and a text. key: what a press sets, None for a row without one; outline: a length that is drawn as a dashed frame over the first bar; start: where the first bar begins, in a sum that is drawn step by step. */
export interface BarRow {
  label: string;
  values: number[];
  texts: string[];
  selected: boolean;
  key: string | null;
  outline: number | null;
  start: number;
}

/** Rows of bars below named columns, each column on its own scale, or all on one where `shared`. high: the length of a full bar, the largest where None. mark: the (row, column) whose text is the number that the panel's sentence names. header: what the rows are. wraps: labels are sentences, which go on in further lines. */
export interface Bars extends Figure {
  columns: string[];
  rows: BarRow[];
  high: number | null;
  shared: boolean;
  mark: [number, number] | null;
  header: string;
  wraps: boolean;
}

/** A block of a stack: its name, the model's numbers of it, and the query of the address that opens the tab that shows it, "" for none. of: what it does, "attention", "ffn", "norm", "readout", "embedding", "words", or "sum", to which the text is added. */
export interface Block {
  of: string;
  name: string;
  text: string;
  key: string;
}

/** A loop or one step in it: what it does, how often, and what is in it. */
export interface Box {
  text: string;
  count: string;
  inside: Box[];
  selected: boolean;
}

/** A branch off a residual stream that is added to it: its name, and the norm that stands before it ("pre") or after the sum ("post"), with its name. */
export interface Branch {
  name: string;
  norm: string;
  norm_name: string;
}

/** A residual stream from left to right with its branches. lit: True for the one that is spoken of. */
export interface Branches extends Figure {
  parts: Branch[];
  lit: boolean;
}

/** Curves over one axis. ticks: (place, text) along x where they are not numbers. backwards: x falls to the right. square: one scale for both axes. guides: (x, text), dashed lines. x_range, y_range: the ends of an axis, those of the curves where None. half: half as high. */
export interface Chart extends Figure {
  series: Series[];
  x_title: string;
  y_title: string;
  log_x: boolean;
  log_y: boolean;
  ticks: [number, string][];
  backwards: boolean;
  square: boolean;
  guides: [number, string][];
  x_range: [number, number] | null;
  y_range: [number, number] | null;
  half: boolean;
}

/** Points of one kind: a label and a path (point, frame, 2) for each, and its fill (point, frame) from 0 to 1. selected: the point whose path is drawn, -1 for none. keys: what a press on each sets. */
export interface Cloud {
  name: string;
  labels: string[];
  paths: Numbers;
  fills: Numbers;
  selected: number;
  keys: string[];
}

/** A sentence in large type with empty boxes for words, and below one of them the likeliest words for it as bars, whose full length is 1. tokens: "" for an empty box; spaced: whether a space stands before each. blanks: the boxes; selected: the one that the bars hang from. names: what each is called by itself, as a screen reader says it. keys: what a press on each sets, nothing where "". pale: tokens that the model does not read. breaks: tokens that begin a line. select_row: the choices that a press on a bar sets. */
export interface Cloze extends Figure {
  tokens: string[];
  spaced: boolean[];
  blanks: number[];
  selected: number;
  names: string[];
  keys: string[];
  pale: boolean[];
  breaks: number[];
  rows: BarRow[];
  select_row: string[];
}

/** Rotations one after another. */
export interface Dials extends Figure {
  dials: Rotation[];
}

/** A weighted edge of a graph, by the places of its nodes. */
export interface Edge {
  source: number;
  target: number;
  weight: number;
}

/** A matrix of a product: its name, its size (rows, columns), and the sign before it. values: its numbers, row by row, or what stands for them, as many as `grid` has (rows, columns); none for an empty box. parts: the names of equal parts in colours of their own, side by side, or one below the other where `down`. */
export interface Factor {
  name: string;
  shape: [number, number];
  sign: string;
  values: Numbers;
  grid: [number, number];
  parts: string[];
  down: boolean;
  selected: boolean;
}

/** Few numbers or words in large type, each with what it is. */
export interface Facts extends Figure {
  facts: [string, string][];
}

/** Base of every figure: a title, a line below it, and the choices that a press sets. select: names of the address, such as ("token", "source"); what is pressed gives a value for each. hint: what a press does, on the page alone. follows: the choice of a slider beside it, whose frame is marked: the guide of a chart. framed: places of numbers to which formulas beside it come, as (row, column), (vector, component), (curve, point) or (guide -1, its number), each with the number as it is printed there. */
export interface Figure {
  kind: string;
  title: string;
  note: string;
  select: string[];
  follows: string;
  hint: string;
  framed: [number, number, string][];
}

/** The whole machine on one text: tokens as rows, layers as columns from left to right, what attention brings to the selected row as curves, and at the right the words that come out. layer, band, attention, head: those in focus, -1 for no head. says: what the words below the selected row are called. between: what stands between two bands. level: how far it is opened, from 0 for the model to 3 for a weight; all but the layer in focus are spines then. ffn: of the layer in focus its FFN is opened. leads: to other tabs, or to the text with its next word. current: the column under the beam, the number of columns for the end, -1 for the question that comes before, where nothing tells what the model predicts. stops: of each column and of the end. titles: what it is called until its end, and there, () where that is the same. votes: the rows that the tested heads vote on, each with the place of its colour in the vote. lanes: the words that race; leaders: others that lead after a layer. matters: the columns that are wide in the end; slow: those that are played slowly. cause: the column, which of its attentions, the head and the row that the answer comes from, () for none. against: the id of the word that additions to the answer are against, -1 for none. n_words: of the vocabulary. asks: what stands before and after the word that is asked for, and whether it is the "next" or a "hidden" one, "" for none. edits: those of the run, each a word of a line. out: the address of the panel on what each word does to the answer, "" for none. */
export interface Flow extends Figure {
  bands: FlowBand[];
  layers: FlowLayer[];
  words: FlowWord[];
  layer: number;
  band: number;
  attention: string;
  head: number;
  says: string;
  between: string;
  level: number;
  ffn: boolean;
  leads: FlowLink[];
  current: number;
  stops: FlowStop[];
  titles: string[];
  votes: [number, number][];
  lanes: FlowLane[];
  leaders: FlowLane[];
  matters: number[];
  slow: number[];
  n_words: number;
  asks: [string, string, string];
  cause: number[];
  against: number;
  edits: string;
  out: string;
}

/** Contribution of one attention of a layer to the selected row of its band: shares (head, row) of what it writes, and weights (head, row), over all rows of the picture. bias: b_O's share. names: of each head, what it does, by how much, and by how much by chance, None for nothing known. others (curve, 3): the query row, the key row and the share of what is brought to other rows. attention: its name in an address, "" for the first, and name: as edits say it. removed: heads that an edit has switched off. update: the share of its update beside what it is added to, 0 to 1; under edits scale: how large the update is beside that without them, 0 for none, and was (row): what all heads together brought without them. adds (head): to the logit of the answer against its rival, none where that is not known. */
export interface FlowAttention {
  shares: Numbers;
  weights: Numbers;
  bias: number;
  names: ([string, number, number] | null)[];
  others: Numbers;
  attention: string;
  name: string;
  removed: number[];
  update: number;
  scale: number;
  was: Numbers;
  adds: Numbers;
}

/** The tokens of one residual stream, one row each: labels, their places in the text as an address says them, the selected row, and the row that stands for all others, -1 for none. choice: the name in the address that a press on a row sets. outs: of each row the edits that take its word out, "" where it cannot be. */
export interface FlowBand {
  title: string;
  rows: string[];
  places: string[];
  selected: number;
  rest: number;
  choice: string;
  outs: string[];
}

/** A word in the race to come out: its label, of a token that begins a word the rest of it, and its id. places: its places in the vocabulary by the logit lens, from 1, before the first layer of the last band and after each; middles: those after the attention of each of the columns that are played slowly. chance: in the end, as a number and as text. Under edits were, was_text and was_places: the same without them, were -1 where there are none. */
export interface FlowLane {
  label: string;
  rest: string;
  id: number;
  places: number[];
  middles: number[];
  chance: number;
  text: string;
  were: number;
  was_text: string;
  was_places: number[];
}

/** A layer: its number, the band of rows that it writes to, its attentions. ffn: the share of the FFN's update beside what it is added to, 0 to 1, None for no FFN. says: the word that the stream would give after this layer, with its probability as a number and as text; answer: the probability of the word that comes out in the end. numbers: what stands below it. */
export interface FlowLayer {
  layer: number;
  band: number;
  attentions: FlowAttention[];
  ffn: number | null;
  says: [string, number, string] | null;
  answer: number | null;
  numbers: string;
}

/** A link that leads on from the picture: its label, and the choices of the address that a press sets, by their names. */
export interface FlowLink {
  label: string;
  select: Record<string, string>;
}

/** A place at which the beam stops: its sentences, what leads to each level from there, and what switches the head that brings most off or on, None where it cannot be. brings: the head that adds most to the answer, and the word that it reads; adds: what the FFN makes of the guess, or of the answer's place. says: the words that are nearest to what attention brings; writes: those nearest to what the FFN writes; units: of the two hidden units that add most to the answer those that write words, and these. middle: the guess between attention and FFN, "" where that is not told. part: of the end what is said of the answer's head until that is measured. */
export interface FlowStop {
  finding: string;
  levels: FlowLink[];
  switch: FlowLink | null;
  brings: string;
  adds: string;
  says: string;
  writes: string;
  units: [string, string][];
  middle: string;
  part: string;
}

/** A word that comes out, with its probability as a number and as text, and its id. */
export interface FlowWord {
  label: string;
  probability: number;
  text: string;
  id: number;
}

/** One position of a slider: its label, its sentence and its figures. key: what it sets the choice to, its label where "". note: a line below a plane. x: where a chart that follows is marked, the frame's number where None. formulas: ids of the panel's formulas that stand beside it, of which the last is the frame's own, all where there are none, and none where None; focus: symbols in them that are spoken of. beside: the matrix then of those beside that follow it. */
export interface Frame {
  label: string;
  figures: Figure[];
  sentence: string;
  key: string;
  note: string;
  x: number | null;
  formulas: string[] | null;
  focus: string[];
  beside: Matrix | null;
}

/** Tokens as nodes and weights as edges from the token attended to. strengths: of each node's fill, 0 to 1. layout: "arcs" or "circle"; two_sided: the first `split` nodes are the sources. "tree": nodes stand at `places` (column, row), each with its text; edges lead from parents. */
export interface Graph extends Figure {
  nodes: string[];
  strengths: number[];
  edges: Edge[];
  layout: string;
  split: number;
  selected: number;
  places: [number, number][];
  texts: string[];
}

/** The weights of all heads of an attention as small pictures. weights: arrays by name, as `explorer/components/codec.py` packs them: the `cells` and the `peak` of each head, the `runs` of allowed cells, and of each row and column the largest weight (`most`, `most_in`), or where cells are folded its token (`best`, `best_in`). shape: (layers, heads, rows, columns) of the cells; fold: how many tokens each way a cell stands for. names, strengths, back: of each head, layer by layer, its pattern, how clear that is, and whether it stands back; scores: the number that its name rests on. tokens and keys: what rows and columns are called, words: the whole word that each column is of. by_word: while a word is selected each head shows its row alone. only: the name of the heads shown, "" for all. quiet: columns that are left out. fillers and sinks: columns that carry no meaning, and those on which heads rest: until a reader asks for all, a head whose largest weight in the selected row goes there is pale, and drawn empty. ablated: heads whose output is zero or its mean, counted layer by layer. selected: a (layer, head). scale and log: as in LinkedWeights. says: sentences with slots. `follows` is "head" where the selection of the page's head is the figure's. */
export interface HeadMatrices extends Figure {
  weights: Record<string, any>;
  shape: number[];
  names: string[];
  selected: [number, number];
  fold: number;
  strengths: number[];
  scores: string[];
  back: boolean[];
  tokens: string[];
  keys: string[];
  words: string[];
  by_word: boolean;
  only: string;
  quiet: number[];
  fillers: number[];
  sinks: number[];
  ablated: number[];
  scale: string;
  log: boolean;
  says: Record<string, string>;
}

/** Weights of one head in linked pictures: the sentence tinted by them, links, and a matrix. at: (layer, head). weights: arrays by name, as `explorer/components/codec.py` packs them: the weight of each (row, column), the `runs` of allowed cells, the selected `row` and `column` exactly, `hidden`, the share of each row on columns that are left out, and `sink`, that of a learned sink, which is the last column of the matrix. views: of "links" and "matrix". selected: a row and a column, -1 for none; cell: the one that is opened. texts: of two texts, what each row is called in its sentence. special: of columns, and of rows in `texts`. places: the numbers of rows and columns, None for 0, 1, 2 ...; sizes: how many tokens there are in all; firsts: where rows and columns are words, each one's first token. breaks: columns that begin a line of the sentence. scale: "global", "head" or "row", the weight at its top; log: three powers of ten below that. incoming: True where links to the selected word are drawn too. says: sentences with slots for rows, columns and cells. */
export interface LinkedWeights extends Figure {
  at: [number, number];
  rows: string[];
  columns: string[];
  sides: [string, string];
  weights: Record<string, any>;
  views: string[];
  selected: [number, number];
  cell: [number, number] | null;
  texts: string[] | null;
  special: [boolean[], boolean[]];
  places: [number[] | null, number[] | null];
  sizes: [number, number];
  firsts: [number[], number[]] | null;
  scale: string;
  log: boolean;
  incoming: boolean;
  breaks: number[];
  says: Record<string, string>;
}

/** Queries at the left, keys at the right, joined by their weights (query, key), NaN where not allowed; `selected` the query that is spoken of, and its mark (key, text). flat: True for two texts in lines, the keys above, of which only the selected query is joined to its keys. texts: what stands below each query then; back: the weights of the selected query on the queries before it, where it is joined to these too. */
export interface Links extends Figure {
  left: string[];
  right: string[];
  sides: [string, string];
  weights: Numbers;
  selected: number;
  mark: [number, string] | null;
  flat: boolean;
  texts: string[];
  back: Numbers;
}

/** Nested loops. */
export interface Loops extends Figure {
  boxes: Box[];
}

/** A matrix: values (row, column) from `low` to `high`, NaN for a cell that does not exist. Colours run from -high to high where `signed`, on a logarithmic scale where `log`. marks: (row, column, text), framed; selected: a row that is framed, -1 for none. sides: what rows and columns are. missing: why a cell does not exist. digits: decimals of the values. unit: what follows them. words: a word for each cell, row by row; bold: (row, column), 1 where it stands out; pale: the same, 1 where it stands back, without its colour. keys and column_keys: what a press on a row and a column sets, its number where left out. wide: True for cells as wide as their room. frame_note: stands below a frame that scrolls, on the page alone. follows: the choice of the steps beside it whose frames say what it shows. */
export interface Matrix extends Figure {
  rows: string[];
  columns: string[];
  values: Numbers;
  low: number;
  high: number;
  signed: boolean;
  marks: [number, number, string][];
  sides: [string, string];
  missing: string;
  digits: number;
  unit: string;
  log: boolean;
  words: string[];
  bold: Numbers;
  pale: Numbers;
  keys: string[];
  selected: number;
  column_keys: string[];
  wide: boolean;
  frame_note: string;
}

/** Vectors as upright strips, as high as they have numbers, from left to right, and between two of them the name and the size of what leads from one to the next. */
export interface Network extends Figure {
  layers: Strip[];
  between: [string, string][];
}

/** An encoder and a decoder side by side, as in the paper's figure. A press on a block opens the tab that shows it. */
export interface PaperFigure extends Figure {
  towers: Tower[];
}

/** A picture to send, 1200 to 630: a sentence, or a source above its translation, with arcs from queries to keys. says: the query and the key, or one sentence; number: the weight of the pair, as text. texts: the words of each sentence; spaced: whether a space stands before each. edges: from the place of a query to that of a key, counted over all texts; the first one is the pair that is told. about: the model and the head; name: the project's. */
export interface PictureCard extends Figure {
  says: string[];
  number: string;
  texts: string[][];
  spaced: boolean[][];
  edges: Edge[];
  about: string;
  name: string;
}

/** Points that move through frames in a plane, on one scale for both axes, or on two where `apart`. choice: as in Steps. trails: the paths of all points are drawn. close: the plane ends around the selected paths. */
export interface Plane extends Figure {
  clouds: Cloud[];
  frames: Frame[];
  current: number;
  choice: string;
  plays: boolean;
  x_title: string;
  y_title: string;
  trails: boolean;
  close: boolean;
  apart: boolean;
}

/** Matrices that are multiplied from left to right, as boxes in proportion. */
export interface Product extends Figure {
  factors: Factor[];
}

/** Words in a row whose state is passed on from each to the next. values (word): what is left, from 0 to 1, and its text at the first word. arc: of the one that leads from end to end; state: what is passed on. */
export interface Relay extends Figure {
  words: string[];
  values: Numbers;
  text: string;
  arc: string;
  state: string;
}

/** A rotation of a vector: before the addition (length), the sum (length, degrees) and at the end (length, degrees); an arrow of length 1 reaches the circle. */
export interface Rotation {
  label: string;
  before: number;
  total: [number, number];
  after: [number, number];
  text: string;
  selected: boolean;
}

/** A sentence in large type, and lines from a pronoun in it to the word that each head says: a line is a vote, as wide as any other. labels: its words; spaced: whether a space stands before each; keys: what a press on each sets, nothing where "". bar: what the bars of the heads are, as text. sides: the name of each and what it is, () for one side; the lines of the first are above the sentence, those of the second below. row: the pronoun's token, and of how many rows and columns of the heads' pictures, for the grid beside it. */
export interface SentenceVotes extends Figure {
  labels: string[];
  spaced: boolean[];
  keys: string[];
  pronoun: number;
  votes: VoteLine[];
  bar: string;
  sides: [string, string][];
  row: number[];
}

/** A curve: its name, its points, and what is written at its end. shape: "line", "points", "steps", or "band" from `base` to y; main: the one that is spoken of. */
export interface Series {
  name: string;
  x: Numbers;
  y: Numbers;
  end: string;
  main: boolean;
  shape: string;
  base: Numbers | null;
}

/** Figures one below the other in one column; `main`: the one that stays where one has room. Charts over the same x axis are aligned. */
export interface Stack extends Figure {
  figures: Figure[];
  main: number;
}

/** Frames behind a slider, of which one is on show. choice: the name of the address that holds the frame's key; plays: True where the frames are a sequence in time. whole: a figure above all frames, each of which is one of its rows; a press on one shows its frame. */
export interface Steps extends Figure {
  frames: Frame[];
  current: number;
  choice: string;
  plays: boolean;
  whole: Links | Matrix | null;
}

/** A vector as a strip of colours: the sign before it, its label, its values and a text at its end. weight: of a term of a weighted sum, what its vector was multiplied by. blocks: of like width that it is cut into; high: the end of its own scale, None for that of all strips. */
export interface Strip {
  label: string;
  values: Numbers;
  text: string;
  sign: string;
  selected: boolean;
  weight: number | null;
  blocks: number;
  high: number | null;
}

/** Vectors one below the other on one scale from -high to high. */
export interface Strips extends Figure {
  strips: Strip[];
  high: number;
}

/** A small table that is part of the picture: named columns, and rows of texts. keys: the values that a press on a row gives the choices in `select`. */
export interface TextTable extends Figure {
  columns: string[];
  rows: string[][];
  keys: string[][];
  selected: number;
}

/** A sub-layer of a stack: its blocks side by side, its norm, None for none, and where that stands, "post" or "pre". reads: what comes from below; aside: what comes from the other stack, "" for nothing; adds: True where its input is added to what it writes. */
export interface Tier {
  blocks: Block[];
  norm: Block | null;
  place: string;
  reads: string;
  aside: string;
  adds: boolean;
}

/** A sentence whose tokens are tinted by weights from 0 to 1, by none where these are empty; NaN: not allowed. selected: the token that the weights belong to, -1 for none. breaks: tokens that begin a line, as each message of a chat does. texts: below each token, where there are any. marked: the tokens in a frame. keys: what a press on each sets, its number where left out, nothing where "". special: tokens that nobody typed, drawn paler. Before other figures it stands above them, as wide as all of them. */
export interface TokenRow extends Figure {
  tokens: string[];
  weights: Numbers;
  selected: number;
  texts: string[];
  marked: number[];
  keys: string[];
  breaks: number[];
  special: boolean[];
}

/** A stack of like layers from below to above: what stands under it, its sub-layers, what stands on it, and how many layers there are, as text. answer: what comes out, with its probability. lit: True for one that the model has. */
export interface Tower {
  title: string;
  count: string;
  under: Block[];
  layer: Tier[];
  above: Block[];
  answer: string;
  lit: boolean;
}

/** The vote of a head in a sentence: the word that it says, as a place, whose noun that is, 0 for the majority's, 1 and 2 for others, the head, the side of the figure that it is of, the share of test sentences in which the head finds the noun, None for no bar, that number as text, the vote as a sentence, and what a press sets. */
export interface VoteLine {
  word: number;
  noun: number;
  head: string;
  side: number;
  share: number | null;
  number: string;
  says: string;
  key: string;
}
