// @ts-check
// Written by `python -m docs.figure_types` of explorer/figures/kinds.py: of each kind of figure
// the fields that run along axes, and those with places on them; a list of places is {"each": ...}.

/** @type {Record<string, { along: Record<string, string[]>, places: Record<string, any> }>} */
// prettier-ignore
export const AXES = {
  bars: {"along": {"rows": ["rows"]}, "places": {"framed": {"each": ["rows", null, null]}, "mark": ["rows", null]}},
  cloze: {"along": {"tokens": ["tokens"], "spaced": ["tokens"], "names": ["tokens"], "keys": ["tokens"], "pale": ["tokens"], "rows": ["rows"]}, "places": {"blanks": {"each": "tokens"}, "selected": "tokens", "breaks": {"each": "tokens"}}},
  dials: {"along": {"dials": ["dials"]}, "places": {"framed": {"each": ["dials", null, null]}}},
  facts: {"along": {"facts": ["facts"]}, "places": {"framed": {"each": ["facts", null, null]}}},
  graph: {"along": {"nodes": ["nodes"], "strengths": ["nodes"], "places": ["nodes"], "texts": ["nodes"]}, "places": {"edges": {"each": {"source": "nodes", "target": "nodes"}}, "selected": "nodes"}},
  links: {"along": {"left": ["left"], "right": ["right"], "weights": ["left", "right"], "texts": ["left"], "back": ["left"]}, "places": {"selected": "left", "mark": ["right", null]}},
  matrix: {"along": {"rows": ["rows"], "columns": ["columns"], "values": ["rows", "columns"], "words": ["rows", "columns"], "bold": ["rows", "columns"], "pale": ["rows", "columns"], "keys": ["rows"], "column_keys": ["columns"]}, "places": {"framed": {"each": ["rows", "columns", null]}, "marks": {"each": ["rows", "columns", null]}, "selected": "rows"}},
  sentencevotes: {"along": {"labels": ["labels"], "spaced": ["labels"], "keys": ["labels"]}, "places": {"pronoun": "labels", "votes": {"each": {"word": "labels"}}}},
  strips: {"along": {"strips": ["strips"]}, "places": {"framed": {"each": ["strips", null, null]}}},
  texttable: {"along": {"rows": ["rows"], "keys": ["rows"]}, "places": {"framed": {"each": ["rows", null, null]}, "selected": "rows"}},
  tokenrow: {"along": {"tokens": ["tokens"], "weights": ["tokens"], "texts": ["tokens"], "keys": ["tokens"], "special": ["tokens"]}, "places": {"selected": "tokens", "marked": {"each": "tokens"}, "breaks": {"each": "tokens"}}},
};
