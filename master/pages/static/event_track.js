// What happened in a step, on its time axis: phases, edits, marks, subintervals that were repeated, lost hosts, faults.

import { layoutOf, timeLine } from "./charts.js";
import { localTime, utcTime } from "./format.js";
import { colours } from "./theme.js";

const LANES = [
  ["edits", ["edit", "target", "pause", "unpause", "skip", "stop", "halt", "stopped"], "diamond", "purple"],
  ["thresholds", ["slo_breached"], "cross", "orange"],
  ["marks", ["mark"], "triangle-down", "blue"],
  [
    "hosts",
    [
      "lost",
      "missed",
      "late",
      "not_awaited",
      "absent",
      "unanswered",
      "dying_words",
      "not_rejoined",
      "waiting",
      "start",
      "clock_stepped",
      "io_errors",
    ],
    "x",
    "red",
  ],
];
const LEAST_HEIGHT = 64; // pixels, without lanes
const LANE_HEIGHT = 20;
const OTHERS = ["other", "circle-open", "grey"];

/** The lane of an event, with its symbol and colour. */
export function laneOf(event) {
  const found = LANES.find(([, kinds]) => kinds.includes(event.kind));
  return found ? [found[0], found[2], found[3]] : OTHERS;
}

/** What colours and shades of a step's charts mean; empty where it has only what is measured. */
export function legendOfPhases(phases) {
  const keys = [
    ["measured", "good", phases.includes("run")],
    [
      "not measured: warmup, cooldown, after an edit",
      "note",
      phases.some((one) => !["run", "disturbed"].includes(one)),
    ],
    ["repeated: other programs had the CPU", "warn", phases.includes("disturbed")],
  ];
  return keys.filter(([, , isThere]) => isThere).map(([words, colour]) => [words, colour]);
}

export async function eventTrack(model, node, group, shapes) {
  const of = colours();
  const { start, length_s: length, phase } = model.series;
  const end = start.length ? start[start.length - 1] + (length[length.length - 1] ?? 0) : 0;
  const events = model.document.events.filter(
    (one) => one.step === model.step || (one.step === null && one.utc >= start[0] && one.utc <= end),
  );
  const lanes = new Map();
  for (const event of events) {
    const [lane, symbol, colour] = laneOf(event);
    if (!lanes.has(lane)) lanes.set(lane, { events: [], symbol, colour });
    lanes.get(lane).events.push(event);
  }
  const middles = start.map((at, place) => at + (length[place] ?? 0) / 2);
  const disturbed = middles.filter((_, place) => phase[place] === "disturbed");
  const traces = [phaseTrace(start, middles, phase, of)];
  if (disturbed.length) {
    traces.push(
      markers(
        "repeated",
        disturbed,
        disturbed.map(() => "repeated: other programs had the CPU"),
        "line-ns-open",
        of.orange,
      ),
    );
  }
  for (const [lane, one] of lanes) {
    const texts = one.events.map((event) => `${event.kind}${event.host ? ` ${event.host}` : ""}: ${event.text}`);
    traces.push(
      markers(
        lane,
        one.events.map((event) => event.utc),
        texts,
        one.symbol,
        of[one.colour],
      ),
    );
  }
  const height = LEAST_HEIGHT + LANE_HEIGHT * traces.length;
  node.style.height = `${height}px`;
  const yaxis = {
    type: "category",
    categoryorder: "array",
    categoryarray: traces.map((one) => one.name).reverse(),
    range: [-0.6, traces.length - 0.4],
  };
  await group.draw(
    node,
    traces,
    layoutOf({ height, shapes, yaxis, showlegend: false, hovermode: "closest", uirevision: `${model.step}` }),
  );
}

function phaseTrace(start, middles, phase, of) {
  const texts = start.map((at, place) => `${phase[place]}, subinterval ${place}, ${utcTime(at)}`);
  const colourOf = (one) => (one === "run" ? of.green : one === "disturbed" ? of.orange : of.grey);
  return {
    type: "scatter",
    mode: "markers",
    name: "phase",
    x: middles.map(localTime),
    y: middles.map(() => "phase"),
    text: texts.map(shortened),
    hovertemplate: "%{text}<extra></extra>",
    marker: { symbol: "square", size: 7, color: phase.map(colourOf) },
  };
}

function markers(name, xs, texts, symbol, colour) {
  return {
    ...timeLine(
      name,
      xs,
      xs.map(() => name),
      colour,
    ),
    x: xs.map(localTime),
    y: xs.map(() => name),
    mode: "markers",
    text: texts.map(shortened),
    hovertemplate: "%{x}<br>%{text}<extra></extra>",
    marker: { symbol, size: 10, color: colour, line: { width: 2, color: colour } },
  };
}

/** Plotly reads some markup in its texts: names are shown as they are. */
function shortened(text) {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.length > 160 ? `${escaped.slice(0, 160)} ...` : escaped;
}
