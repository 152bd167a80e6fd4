// A figure of many runs over the time at which they began: both sides, the band of A, the limit, what is left out.

import { draw, layoutOf, WIDE_MARGIN } from "./charts.js";
import { count, latency, localTime } from "./format.js";
import { colours } from "./theme.js";

const SCALES = [
  [1e6, "s"],
  [1e3, "ms"],
  [1, "us"],
];
const HEIGHT = 320;

/** Draw a row of a comparison. */
export async function showTrend(node, data, row) {
  const of = colours();
  const runs = new Map([...data.a, ...data.b].map((run) => [run.name, run]));
  const [factor, unit] = scaleOf(row);
  const text = row.is_rate ? count : latency;
  const points = row.runs.map((one) => ({ ...one, ...runs.get(one.run), side: one.run[0], figure: one.value }));
  const used = points.filter((one) => !one.left_out);
  const trace = (name, some, marker) => ({
    type: "scatter",
    mode: "markers",
    name,
    x: some.map((one) => localTime(Date.parse(one.start_utc) / 1000)),
    y: some.map((one) => (one.figure === null ? null : one.figure / factor)),
    text: some.map((one) =>
      [`${one.name} ${one.run}`, text(one.figure), one.left_out].filter(Boolean).map(plainly).join("<br>"),
    ),
    hovertemplate: "%{text}<extra></extra>",
    marker: { size: 9, ...marker },
  });
  const traces = [
    trace(
      "A",
      used.filter((one) => one.side === "A"),
      { color: of.blue, symbol: "circle" },
    ),
    trace(
      "B",
      used.filter((one) => one.side === "B"),
      { color: of.orange, symbol: "diamond", size: 11 },
    ),
    trace(
      "left out",
      points.filter((one) => one.left_out && one.figure !== null),
      { color: of.grey, symbol: "x" },
    ),
  ].filter((one) => one.x.length);
  const levels = levelsOf(data, row, points, of).map((one) => ({ ...one, y: one.y.map((value) => value / factor) }));
  await draw(
    node,
    [...levels, ...traces],
    layoutOf({
      hovermode: "closest",
      height: HEIGHT,
      margin: { ...WIDE_MARGIN, b: 56 }, // the year stands below the days
      xaxis: {
        type: "date",
        title: "start of the run",
        tickangle: 0,
        nticks: Math.max(Math.floor(node.clientWidth / 110), 2),
      },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 11 }, traceorder: "normal" },
      yaxis: { title: unit ? `${row.title} (${unit})` : row.title },
    }),
    "No run has this figure.",
  );
}

/** Lines over the runs: where one more run of A would lie, A's mean, B's, and the limit of a regression. */
function levelsOf(data, row, points, of) {
  const times = points.map((one) => Date.parse(one.start_utc) / 1000);
  const ends = (some) => [Math.min(...some), Math.max(...some)].map(localTime);
  const whole = ends(times);
  const level = (name, value, x, line, more = {}) =>
    value ? [{ type: "scatter", mode: "lines", name, x, y: [value, value], line, hoverinfo: "skip", ...more }] : [];
  const ofB = times.filter((_, place) => points[place].side === "B");
  const hasLimit = data.max_regression !== null;
  const limit = hasLimit && row.a && row.a * (row.is_rate ? 1 - data.max_regression : 1 + data.max_regression);
  const none = { color: "rgba(0,0,0,0)", width: 0 };
  return [
    ...level("", row.band?.[0], whole, none, { showlegend: false }),
    ...level("95 % of A", row.band?.[1], whole, none, { fill: "tonexty", fillcolor: of.shade }),
    ...level("mean of A", row.a, whole, { color: of.blue, width: 1.2 }, { showlegend: false }),
    ...level("mean of B", row.b, ofB.length ? ends(ofB) : whole, { color: of.orange, width: 2 }, { showlegend: false }),
    ...level(`limit, ${Number((100 * data.max_regression).toPrecision(6))} %`, limit, whole, {
      color: of.red,
      width: 1.2,
      dash: "dash",
    }),
  ];
}

/** The factor and unit in which a latency's axis is. */
function scaleOf(row) {
  if (row.is_rate) return [1, ""];
  const most = Math.max(...row.runs.map((one) => one.value ?? 0));
  return SCALES.find(([one]) => most >= one) ?? SCALES[SCALES.length - 1];
}

function plainly(text) {
  return text.replaceAll("<", "&lt;");
}
