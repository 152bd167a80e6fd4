// Shades where nothing is measured, and lines at edits and marks: for every chart over a step's time.

import { shade, upright } from "./charts.js";
import { colours } from "./theme.js";

const NOT_MEASURED = ["warmup", "transient", "disturbed", "tail", "cooldown"];
const MARKED = ["edit", "mark", "pause", "unpause"]; // kinds of events

export function shapesOfPhases(model) {
  const { start, length_s: length, phase } = model.series;
  const of = colours();
  const shapes = [];
  for (let at = 0; at < phase.length;) {
    let end = at;
    while (end + 1 < phase.length && phase[end + 1] === phase[at]) end++;
    if (NOT_MEASURED.includes(phase[at])) shapes.push(shade(start[at], start[end] + (length[end] ?? 0), of.shade));
    at = end + 1;
  }
  for (const one of model.document.events) {
    if (one.step === model.step && MARKED.includes(one.kind)) shapes.push(upright(one.utc, of.purple));
  }
  return shapes;
}
