// The figures of a step, large, and its verdict in words. Figures that a verdict discredits stand in brackets, partial
// ones in parentheses.

import { badge, el, fill, marked, prose, refill } from "./dom.js";
import { count, latency, percentText } from "./format.js";

/** The measurement that the step stands for. */
export function standingMeasurement(step) {
  return step?.measurements.find((one) => one.stands) ?? null;
}

/** The figure of a metric of the headline. */
export function figureText(metric, metrics) {
  return (metric.is_time ? latency : count)(metrics[metric.name]);
}

export function bigFigures(model, node) {
  const step = model.stepEntry;
  const measured = standingMeasurement(step);
  const isLive = !measured && step?.state === "running";
  const metrics = measured ? measured.metrics : lastOf(model.series);
  if (!metrics) {
    fill(node);
    return;
  }
  const setting = measured ? measured.iops_setting : metrics.iops_setting;
  const goal = typeof setting === "number" ? `target ${count(setting)}` : setting === "max" ? "at max" : "";
  const notes = {
    overall_iops: [goal, halfWidth(measured)].filter(Boolean).join(", "),
    overall_response_us_p99: setting === "max" ? "not paced" : "",
  };
  const what = measured
    ? measured.level
      ? `measured, ${measured.level}`
      : "measured"
    : isLive
      ? "last subinterval"
      : "not measured: last subinterval";
  fill(
    node,
    el("p", { class: "quiet what" }, what, missingHosts(measured), model.instance === "all" ? "" : ", everything"),
    el(
      "dl",
      {},
      model.document.headline.map((metric) =>
        card(
          metric.title,
          figureText(metric, metrics),
          measured ? measured[metric.verdict] : "valid",
          notes[metric.name],
        ),
      ),
    ),
  );
}

function card(title, text, verdict, note = "") {
  return el(
    "div",
    { class: "card" },
    el("dt", {}, title),
    el("dd", {}, marked(text, verdict)),
    note ? el("dd", { class: "note" }, note) : null,
  );
}

function missingHosts(measured) {
  return measured && measured.hosts_in < measured.hosts_of
    ? `, ${measured.hosts_in} of ${measured.hosts_of} hosts`
    : "";
}

export function halfWidth(measured) {
  const half = measured?.half_widths?.overall_iops;
  return half && measured.metrics.overall_iops
    ? `± ${percentText((100 * half) / measured.metrics.overall_iops)} (95 %)`
    : "";
}

function lastOf(series) {
  if (!series || !series.subinterval.length) return null;
  const at = series.subinterval.length - 1;
  const metrics = Object.fromEntries(Object.entries(series.metrics).map(([name, values]) => [name, values[at]]));
  return { ...metrics, iops_setting: series.iops_setting[at] };
}

const NARROW = 700; // pixels: there the charts would be far below
const SEVERE = ["invalid", "failed", "partial"];

/** The verdict of the step, its cause, and its reasons with what to do about each. */
export function verdictBlock(model, node) {
  const step = model.stepEntry;
  const messages = step?.state === "running" ? (model.status?.last?.messages ?? []) : [];
  const isShown = step && (step.verdict || messages.length);
  refill(node, isShown ? [{ ...step, closed: 0 }, messages] : null, () => (isShown ? verdictOf(step, messages) : []));
}

function verdictOf(step, messages) {
  const measured = standingMeasurement(step);
  const reasons = mergedReasons([...step.reasons, ...(measured?.reasons ?? [])]);
  const [severe, notes] = [
    SEVERE.flatMap((severity) => reasons.filter((one) => one.severity === severity)),
    reasons.filter((one) => !SEVERE.includes(one.severity)),
  ];
  const isOpen = step.verdict && step.verdict !== "valid" && window.innerWidth > NARROW;
  const summary = el(
    "summary",
    {},
    "Verdict ",
    badge(step.verdict || "running"),
    measured?.why
      ? ` ${measured.why}`
      : severe.length
        ? ` ${severe.length} reason${severe.length === 1 ? "" : "s"}`
        : notes.length
          ? ` ${notes.length} note${notes.length === 1 ? "" : "s"}`
          : "",
  );
  return el(
    "details",
    { class: "verdict", open: isOpen },
    summary,
    messages.map((one) => el("p", {}, one)),
    step.thresholds.length ? el("p", {}, `Thresholds: ${step.thresholds.join("; ")}.`) : null,
    severe.length ? el("ul", { class: "reasons" }, severe.map(reasonItem)) : null,
    notes.length ? noteList(notes, severe.length === 0) : null,
  );
}

function mergedReasons(reasons) {
  const found = new Map();
  for (const one of reasons) if (!found.has(one.reason)) found.set(one.reason, one);
  return [...found.values()];
}

function reasonItem(one) {
  return el(
    "li",
    {},
    badge(one.severity),
    " ",
    el("strong", {}, one.reason.replaceAll("_", " ")),
    one.detail ? ` (${one.detail})` : "",
    one.remedy ? el("p", { class: "remedy" }, prose(one.remedy)) : null,
    el(
      "details",
      {},
      el("summary", {}, `what it means${one.scopes.length ? `, for ${one.scopes.join(", ")}` : ""}`),
      el("p", {}, prose(one.meaning)),
    ),
  );
}

function noteList(notes, isOpen) {
  const title = `${notes.length} note${notes.length === 1 ? "" : "s"}`;
  return el(
    "details",
    { open: isOpen },
    el("summary", {}, title),
    el("ul", { class: "reasons" }, notes.map(reasonItem)),
  );
}
