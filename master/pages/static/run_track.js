// The whole run as a strip: its steps to scale on one time axis, and above them what happened.

import { counted, el, refill } from "./dom.js";
import { laneOf } from "./event_track.js";
import { duration, localTime, shortTime, utcTime, zone } from "./format.js";

const LEAST_PX = 3; // of what is drawn: steps and ticks that are closer together become one
const UNKNOWN_PX = 1000; // until the strip has a width
const MOST_LINES = 8; // of a tick's tooltip
const WORST_FIRST = ["running", "invalid", "failed", "partial", "cut off", "valid"];
const TICKED = ["edits", "thresholds", "marks", "hosts"];
const SIGNS = { edits: "◆", thresholds: "✚", marks: "▼", hosts: "✕" };

export class RunTrack {
  /** `open(number)`: show a step. `shown()`: the number of the one that is shown, or null. */
  constructor(model, open, shown) {
    this.model = model;
    this.open = open;
    this.shown = shown;
    this.node = el("section", { class: "run-track", "aria-label": "the whole run over time" });
    this.width = 0;
    this.watcher = new ResizeObserver(([one]) => {
      if (Math.round(one.contentRect.width) === this.width) return;
      this.width = Math.round(one.contentRect.width);
      this.show();
    });
    this.watcher.observe(this.node);
  }

  close() {
    this.watcher.disconnect();
  }

  show() {
    const { events } = this.model.document;
    const steps = this.model.document.steps.filter((one) => WORST_FIRST.includes(wordOf(one))); // logs have no verdict
    const span = spanOf(this.model);
    this.node.hidden = !steps.length || !(span.to > span.from);
    if (this.node.hidden) return;
    const scale = (at) => (100 * (Math.min(Math.max(at, span.from), span.to) - span.from)) / (span.to - span.from);
    const pixel = 100 / (this.width || UNKNOWN_PX);
    const bars = barsOf(steps, span.to, scale, LEAST_PX * pixel);
    const ticks = ticksOf(events, scale, LEAST_PX * pixel);
    refill(this.node, [bars, ticks, this.shown(), span], () => this.parts(bars, ticks, span));
  }

  parts(bars, ticks, span) {
    const chosen = Math.max(
      bars.findIndex((one) => one.steps.some((step) => step.number === this.shown())),
      0,
    );
    const words = WORST_FIRST.filter((word) => bars.some((one) => one.words.includes(word)));
    const lanes = TICKED.filter((lane) => ticks.some((one) => one.lane === lane));
    return [
      lanes.length
        ? el("div", { class: "ticks", role: "group", "aria-label": "events of the run" }, ticks.map(tick))
        : null,
      el(
        "div",
        {
          class: "bars",
          role: "group",
          "aria-label": "steps of the run; arrow keys move, Enter opens",
          title: "hatched: no step runs (hosts, files and the next step are prepared)",
          onkeydown: moveFocus,
        },
        bars.map((one, place) => this.bar(one, place === chosen)),
      ),
      el(
        "div",
        { class: "axis" },
        el("span", {}, time(span.from), ` ${zone(span.from)}`),
        el(
          "span",
          { class: "legend" },
          words.map((word) => el("span", { class: `key ${cssOf(word)}` }, word)),
          lanes.map((lane) => el("span", { class: `sign ${lane}` }, `${SIGNS[lane]} ${lane}`)),
        ),
        time(span.to),
      ),
    ];
  }

  bar(one, isChosen) {
    const holds = one.steps.some((step) => step.number === this.shown());
    const text = barText(one);
    const node = el("button", {
      type: "button",
      class: `bar-of-step ${cssOf(one.words[0])}`,
      "aria-label": text,
      title: text,
      tabindex: isChosen ? 0 : -1,
      "aria-pressed": String(holds),
      onclick: () => this.open(one.opens),
    });
    return placed(node, one);
  }
}

/** The time that the strip shows, in unix seconds: until the run's end, or as far as it has come. */
export function spanOf(model) {
  const { run, steps, events } = model.document;
  const from = Date.parse(run.start_utc) / 1000;
  const last = model.isRunning ? model.status?.last : null;
  const known = [
    run.length_s === null ? from : from + run.length_s,
    last ? Date.parse(last.utc) / 1000 : from,
    ...steps.map((one) => one.end ?? one.until ?? one.start ?? from),
    ...(run.length_s === null ? events.map((one) => one.utc) : []),
  ];
  return { from, to: known.reduce((latest, one) => Math.max(latest, one), from) };
}

/** Steps that are narrower than `least` percent are joined with those next to them, until they are not. A bar opens the
 * first of its worst steps. */
export function barsOf(steps, now, scale, least) {
  const bars = [];
  for (const step of steps.filter((one) => one.start !== null)) {
    const [from, until] = [step.start, step.end ?? (step.state === "running" ? now : (step.until ?? step.start))];
    const last = bars[bars.length - 1];
    const isJoined = last && scale(last.until) - scale(last.from) < least && scale(until) - scale(last.from) <= least;
    if (isJoined) {
      last.steps.push(step);
      last.until = Math.max(last.until, until);
    } else {
      bars.push({ steps: [step], from, until });
    }
  }
  return bars.map(({ steps: own, from, until }) => {
    const words = WORST_FIRST.filter((word) => own.some((one) => wordOf(one) === word));
    const opens = own.find((one) => wordOf(one) === words[0]).number;
    const known = own.map(({ number, name }) => ({ number, name: own.length === 1 ? name : "" }));
    return {
      steps: known,
      words,
      opens,
      from,
      until,
      left: scale(from),
      width: scale(until) - scale(from),
      isThin: scale(until) - scale(from) < least,
    };
  });
}

/** Events of a lane that are closer than `least` percent are one tick. */
export function ticksOf(events, scale, least) {
  const open = {};
  const ticks = [];
  for (const event of events) {
    const [lane] = laneOf(event);
    if (!TICKED.includes(lane)) continue;
    const left = scale(event.utc);
    if (!open[lane] || left - open[lane].left > least) {
      open[lane] = { lane, left, at: event.utc, count: 0, texts: [] };
      ticks.push(open[lane]);
    }
    open[lane].count += 1;
    if (open[lane].texts.length < MOST_LINES)
      open[lane].texts.push(`${event.kind}${event.host ? ` ${event.host}` : ""}: ${event.text}`);
  }
  return ticks;
}

function wordOf(step) {
  return step.state === "ended" ? step.verdict : step.state;
}

function cssOf(word) {
  return `is-${word.replace(" ", "-")}`;
}

function barText({ steps, words, from, until }) {
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const what =
    steps.length === 1
      ? `step ${first.number} ${first.name}: ${words[0]}`
      : `${counted(steps.length, "step")}, ${first.number} to ${last.number}: ${words.join(", ")}`;
  const when = `${shortTime(from)} to ${shortTime(until)} (${duration(until - from)})`;
  return `${what}\n${when}\n${utcTime(from)} to ${utcTime(until)}`;
}

function tick(one) {
  const more = one.count > one.texts.length ? [`and ${one.count - one.texts.length} more`] : [];
  const text = [`${shortTime(one.at)}, ${utcTime(one.at)}`, ...one.texts, ...more].join("\n");
  return placed(
    el("span", { class: `tick ${one.lane}`, role: "img", "aria-label": text, title: text }, SIGNS[one.lane]),
    { left: one.left },
  );
}

function placed(node, { left, width, isThin }) {
  node.style.left = `${left}%`;
  if (width !== undefined) node.style.width = `${width}%`;
  if (isThin) node.classList.add("thin");
  return node;
}

function time(unix) {
  return el(
    "time",
    { datetime: new Date(unix * 1000).toISOString(), title: `${localTime(unix).slice(0, 19)}, ${utcTime(unix)}` },
    shortTime(unix),
  );
}

/** One bar is a stop of the Tab key; arrows, Home and End go on from there. */
function moveFocus(event) {
  const bars = [...event.currentTarget.children];
  const at = bars.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: bars.length - 1 }[event.key];
  if (at < 0 || to === undefined || !bars[to]) return;
  event.preventDefault();
  bars[at].tabIndex = -1;
  bars[to].tabIndex = 0;
  bars[to].focus();
}
