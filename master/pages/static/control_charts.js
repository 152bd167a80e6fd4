// What control saw and did: the interval of a measure, a steady-state criterion, feedback, levels, a search's bracket.

import { addresses } from "./source.js";
import { draw, latencyAxis, layoutOf, timeLine, WIDE_MARGIN } from "./charts.js";
import { el, fill, table } from "./dom.js";
import { count, plain } from "./format.js";
import { colours } from "./theme.js";

/** Charts and tables of the control tables that the step has; none where there are none. */
export async function controlCharts(model, node, group, shapes) {
  let tables;
  try {
    tables = await model.source.json(addresses.control(model.id, model.step));
  } catch {
    return; // a report may leave them out
  }
  const known = Object.entries(tables).filter(([name, one]) => name in DRAWN && one.rows.length);
  for (const [name, one] of known) {
    let panel = node.querySelector(`[data-table="${name}"]`);
    if (!panel) {
      panel = el(
        "section",
        { class: "panel", "data-table": name, "aria-label": DRAWN[name].title },
        el("h2", {}, DRAWN[name].title),
        el("div", { class: `chart ${DRAWN[name].size ?? ""}` }),
        explained(DRAWN[name]),
        el("details", {}, el("summary", {}, "Table"), el("div")),
      );
      node.append(panel);
      group.add(panel.querySelector(".chart"));
    }
    const rows = DRAWN[name].isOverTime ? timed(records(one), model) : records(one);
    if (rows.length) await DRAWN[name].draw(rows, panel.querySelector(".chart"), { model, group, shapes });
    const columns = one.columns.map((title, place) => ({ title, number: true, cell: (row) => plain(row[place]) }));
    fill(panel.querySelector("details div"), table(DRAWN[name].title, columns, one.rows.slice(-200)));
  }
  for (const panel of node.querySelectorAll("[data-table]")) {
    if (!known.some(([name]) => name === panel.dataset.table)) panel.remove();
  }
}

function explained({ words = [] }) {
  return words.length
    ? el(
        "ul",
        { class: "quiet terms" },
        words.map((one) => el("li", {}, one)),
      )
    : null;
}

function records(one) {
  return one.rows.map((row) => Object.fromEntries(one.columns.map((name, place) => [name, row[place]])));
}

/** Those whose subinterval has been read: the tables may be a little ahead. */
function timed(rows, model) {
  return rows.filter((row) => model.series.start[row.subinterval ?? row.last_subinterval] !== undefined);
}

function timesOf(rows, model) {
  const { start, length_s: length } = model.series;
  return rows.map((row) => {
    const at = row.subinterval ?? row.last_subinterval;
    return start[at] + (length[at] ?? 0);
  });
}

function column(rows, name) {
  return rows.map((row) => (typeof row[name] === "number" ? row[name] : null));
}

async function drawMeasure(rows, node, { model, group, shapes }) {
  const of = colours();
  const xs = timesOf(rows, model);
  const lines = [
    timeLine("interval, ± %", xs, column(rows, "half_width_percent"), of.blue, { width: 2 }),
    timeLine("wanted", xs, column(rows, "accuracy_percent"), of.grey, { dash: "longdash" }),
  ];
  const yaxis = { title: `± % of ${rows[rows.length - 1].metric}`, rangemode: "tozero" };
  await group.draw(node, lines, layoutOf({ shapes, yaxis, uirevision: `${model.step}` }));
}

async function drawSteady(rows, node, { model, group, shapes }) {
  const of = colours();
  const xs = timesOf(rows, model);
  const lines = [
    timeLine("criterion", xs, column(rows, "value"), of.blue, { width: 2 }),
    timeLine("limit", xs, column(rows, "limit"), of.grey, { dash: "longdash" }),
  ];
  const { criterion, metric } = rows[rows.length - 1];
  await group.draw(
    node,
    lines,
    layoutOf({
      shapes,
      yaxis: { title: `${criterion} of ${metric}`, rangemode: "tozero" },
      uirevision: `${model.step}`,
    }),
  );
}

// Each term of pid.csv: its column, its name, its dash, and what it is.
const PID_TERMS = [
  ["error_ln", "error", "dot", "error: ln(value / target), bounded. Above 0 the metric is above its target."],
  [
    "integral_ln",
    "move",
    "solid",
    "move: the step of ln(IOPS) that follows, -gain x error. " +
      "The controller is integral only, so this is the whole move.",
  ],
  [
    "gain",
    "gain",
    "dash",
    "gain: how strongly the load answers an error. " +
      "Halved when the load oscillates, doubled while it creeps in one direction.",
  ],
];

async function drawPid(rows, node, { model, group, shapes }) {
  const of = colours();
  const names = [...new Set(rows.map((row) => row.instance ?? row.worst_instance ?? ""))].slice(0, 4);
  const palette = [of.blue, of.orange, of.green, of.purple];
  const lines = names.flatMap((name, place) => {
    const own = rows.filter((row) => (row.instance ?? row.worst_instance ?? "") === name);
    const xs = timesOf(own, model);
    const suffix = names.length > 1 ? ` ${name}` : "";
    const terms = PID_TERMS.map(([key, title, dash], term) =>
      timeLine(
        `${title}${suffix}`,
        xs,
        column(own, key),
        names.length > 1 ? palette[place] : [of.orange, of.purple, of.green][term],
        { dash, more: { yaxis: "y3" } },
      ),
    );
    return [
      timeLine(`value${suffix}`, xs, column(own, "value"), palette[place], { width: 2 }),
      timeLine(`target${suffix}`, xs, column(own, "target"), palette[place], { dash: "longdash", width: 1.2 }),
      timeLine(
        `load, IOPS${suffix}`,
        xs,
        column(own, "total_iops").some((one) => one !== null) ? column(own, "total_iops") : column(own, "iops"),
        palette[place],
        { dash: "dot", more: { yaxis: "y2" } },
      ),
      ...terms,
    ];
  });
  const { metric } = rows[rows.length - 1];
  const upper = { domain: [0.45, 1] };
  const latencies = lines.filter((one) => one.yaxis === undefined);
  const yaxis = metric.includes("_us_")
    ? { ...latencyAxis(metric, latencies), ...upper }
    : { title: metric, rangemode: "tozero", ...upper };
  const yaxis2 = {
    title: { text: "" },
    overlaying: "y",
    side: "right",
    rangemode: "tozero",
    showgrid: false,
    tickmode: "auto",
    ticklabelposition: "inside",
    tickfont: { size: 11, color: of.ink },
  };
  const yaxis3 = {
    domain: [0, 0.38],
    title: { text: "terms, ln", standoff: 6, font: { size: 11 } },
    gridcolor: of.grid,
    zerolinecolor: of.ink,
    linecolor: of.grid,
    nticks: 5,
  };
  await group.draw(
    node,
    lines,
    layoutOf({ shapes, xaxis: { anchor: "y3" }, yaxis, yaxis2, yaxis3, uirevision: `${model.step}` }),
  );
}

async function drawProfile(rows, node, { model, group, shapes }) {
  const of = colours();
  const xs = timesOf(rows, model);
  const lines = [
    timeLine("profile", xs, column(rows, "total_iops"), of.grey, { dash: "longdash" }),
    timeLine("due", xs, column(rows, "due_iops"), of.orange),
    timeLine("achieved", xs, column(rows, "achieved_iops"), of.blue, { width: 2 }),
  ];
  await group.draw(
    node,
    lines,
    layoutOf({ shapes, yaxis: { title: "IOPS", rangemode: "tozero" }, uirevision: `${model.step}` }),
  );
}

async function drawLevels(rows, node) {
  const of = colours();
  const held = rows.filter((row) => row.sustained === "true");
  const not = rows.filter((row) => !held.includes(row));
  const mark = (name, own, colour, symbol) => ({
    type: "scatter",
    mode: "markers",
    name,
    x: column(own, "total_iops"),
    y: column(own, "achieved_iops"),
    marker: { color: colour, symbol, size: 10 },
  });
  const most = Math.max(...column(rows, "total_iops"));
  const ideal = {
    type: "scatter",
    mode: "lines",
    name: "all that was asked for",
    x: [0, most],
    y: [0, most],
    line: { color: of.grey, dash: "dot" },
  };
  await draw(
    node,
    [ideal, mark("sustained", held, of.green, "circle"), mark("not sustained", not, of.red, "x")],
    layoutOf({
      hovermode: "closest",
      margin: WIDE_MARGIN,
      xaxis: { title: "IOPS asked for" },
      yaxis: { title: "IOPS achieved" },
    }),
  );
}

/** The result of a search as parts of a chart over IOPS: {shapes, annotations}. `last`: the last row of find.csv. */
export function intervalOf(last) {
  const { expected_iops: load, low_iops: low, high_iops: high, interval_percent: percent } = last;
  if (![load, low, high].every(Number.isFinite)) return { shapes: [], annotations: [] };
  const of = colours();
  const upright = {
    type: "line",
    xref: "x",
    yref: "paper",
    x0: load,
    x1: load,
    y0: 0,
    y1: 1,
    line: { color: of.green },
  };
  const band = { type: "rect", xref: "x", yref: "paper", x0: low, x1: high, y0: 0, y1: 1, line: { width: 0 } };
  const text = `${count(load)} (${count(low)} to ${count(high)}, ${percent} %)`;
  const words = { x: load, y: 1, yref: "paper", yanchor: "bottom", showarrow: false, text, font: { size: 11 } };
  return { shapes: [{ ...band, fillcolor: of.shade, layer: "below" }, upright], annotations: [words] };
}

async function drawFind(rows, node) {
  const of = colours();
  const looks = { pass: [of.green, "circle"], fail: [of.red, "x"], unclear: [of.orange, "circle-open"] };
  const traces = Object.entries(looks).map(([answer, [color, symbol]]) => {
    const own = rows.filter((row) => row.answer === answer);
    const error_y = { type: "data", array: column(own, "half_width").map((one) => one ?? 0), thickness: 1 };
    return {
      type: "scatter",
      mode: "markers+text",
      name: answer,
      x: column(own, "total_iops"),
      y: column(own, "value"),
      error_y,
      text: own.map((row) => String(row.probe)),
      textposition: "middle right",
      marker: { color, symbol, size: 10 },
    };
  });
  const { target, metric } = rows[rows.length - 1];
  const xs = column(rows, "total_iops");
  traces.push({
    type: "scatter",
    mode: "lines",
    name: "target",
    x: [Math.min(...xs), Math.max(...xs)],
    y: [target, target],
    line: { color: of.grey, dash: "longdash" },
  });
  await draw(
    node,
    traces,
    layoutOf({
      hovermode: "closest",
      margin: WIDE_MARGIN,
      ...intervalOf(rows[rows.length - 1]),
      xaxis: { title: "IOPS" },
      yaxis: metric.includes("_us_") ? latencyAxis(metric, traces) : { title: metric, type: "log" },
    }),
  );
}

const DRAWN = {
  measure: { title: "Accuracy of the measurement", draw: drawMeasure, isOverTime: true },
  steady: { title: "Steady state", draw: drawSteady, isOverTime: true },
  pid: {
    title: "Feedback control",
    draw: drawPid,
    isOverTime: true,
    size: "tall",
    words: PID_TERMS.map(([, , , words]) => words),
  },
  staircase: { title: "Staircase", draw: drawLevels },
  profile: { title: "Rate over time", draw: drawProfile, isOverTime: true },
  find: { title: "Search: probes at their rates, numbered in their order", draw: drawFind },
};
