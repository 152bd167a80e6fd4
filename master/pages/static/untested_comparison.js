// A comparison of runs whose source has only the runs, as a report of several: values and their change, without a test.

import { addresses } from "./source.js";
import { standingMeasurement } from "./figures.js";

const WORDS =
  "Values alone: this report has no test of what chance may do. `ivypy compare` has intervals and outcomes.";
const MOST_OVERLAID = 8;

/** In the form that the server answers with. `sides`: ids of the runs of A and of B. */
export async function untestedComparison(source, sides) {
  const documents = await Promise.all(sides.map((ids) => Promise.all(ids.map((id) => source.json(addresses.run(id))))));
  const [a, b] = documents.map((some, side) =>
    some.map((one, place) => runOf(one, sides[side][place], "AB"[side], place)),
  );
  const runs = [...a, ...b];
  const headline = runs[0].document.headline;
  const steps = [...new Set(runs.flatMap((run) => run.document.steps.map((step) => step.name)))];
  return {
    a,
    b,
    conclusion: WORDS,
    method: "",
    notes: [],
    plan_differences: null,
    differences: [],
    metrics: [],
    max_regression: null,
    overlaid: runs.slice(-MOST_OVERLAID).map((run) => run.name),
    rows: steps.flatMap((step) => headline.map((metric) => rowOf(step, metric, a, b))).filter(Boolean),
  };
}

function runOf(document, id, letter, place) {
  const { run, start_utc } = document.run;
  return { document, id, run, start_utc, name: `${letter}${place + 1}` };
}

function rowOf(name, metric, a, b) {
  const figures = [...a, ...b].map((run) => {
    const step = run.document.steps.findLast((one) => one.name === name);
    const measured = standingMeasurement(step);
    const invalid = measured?.[metric.verdict] === "invalid";
    const value = measured?.metrics[metric.name] ?? null;
    return { run: run.name, value, left_out: invalid ? "invalid" : "", step: step?.number ?? null };
  });
  if (figures.every((one) => one.value === null)) return null;
  const mean = (letter) => geometricMean(figures.filter((one) => one.run.startsWith(letter) && !one.left_out));
  const [before, after] = [mean("A"), mean("B")];
  return {
    key: name,
    step: name,
    rollup_type: "all",
    rollup_instance: "all",
    metric: metric.name,
    title: metric.title,
    is_rate: !metric.is_time,
    set: metric.name.includes("_response_") ? "response" : "service",
    a: before,
    b: after,
    change: before && after ? after / before - 1 : null,
    interval: null,
    outcome: "not compared",
    why_not_compared: "",
    band: null,
    runs: figures,
  };
}

function geometricMean(figures) {
  const values = figures.map((one) => one.value).filter((one) => one > 0);
  return values.length ? Math.exp(values.reduce((sum, one) => sum + Math.log(one), 0) / values.length) : null;
}
