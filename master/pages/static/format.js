// Figures and times for people: three significant digits and a unit that scales, as in the console.

const COUNTS = [
  [1e12, " T"],
  [1e9, " G"],
  [1e6, " M"],
  [1e3, " k"],
  [1, ""],
];
const TIMES = [
  [1e6, " s"],
  [1e3, " ms"],
  [1, " us"],
];

function scaledBy(value, units) {
  const [factor, unit] = units.find(([one]) => Math.abs(value) >= one * 0.9995) ?? units[units.length - 1];
  const scaled = value / factor;
  const digits = Math.abs(scaled) >= 99.95 ? 0 : Math.abs(scaled) >= 9.995 ? 1 : 2;
  return scaled.toFixed(digits) + unit;
}

/** I/Os or their rates: "42.1 k". */
export function count(value) {
  if (value === null || value === undefined) return "-";
  return Math.abs(value) < 1000 && Number.isInteger(value) ? String(value) : scaledBy(value, COUNTS);
}

/** A latency in microseconds: "1.35 ms". */
export function latency(us) {
  return us === null || us === undefined ? "-" : scaledBy(us, TIMES);
}

export function percentText(value, digits = 1) {
  return value === null || value === undefined ? "-" : `${value.toFixed(digits)} %`;
}

/** A change as a fraction: "+8.73 %". */
export function changeText(fraction) {
  if (fraction === null || fraction === undefined) return "-";
  const percent = 100 * fraction;
  const size = Math.abs(percent);
  const digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return `${percent < 0 ? "" : "+"}${percent.toFixed(digits)} %`;
}

/** A length in seconds: "36s", "2m14s", "1h05m". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "-";
  const s = Math.round(seconds);
  const two = (n) => String(n).padStart(2, "0");
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  return `${Math.floor(s / 3600)}h${two(Math.floor((s % 3600) / 60))}m`;
}

/** Unix seconds as local time, as a chart's axis takes it: "2026-11-23 14:12:05.250". */
export function localTime(unix) {
  const at = new Date(unix * 1000);
  const two = (n, width = 2) => String(n).padStart(width, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)}`;
}

export function utcTime(unix) {
  return new Date(unix * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

/** "2026-11-23 14:12:05 CET": in the zone of this browser, as all times of the page. */
export function zonedTime(unix) {
  return `${localTime(unix).slice(0, 19)} ${zone(unix)}`;
}

/** The browser's zone at this time: "CET", "UTC", "GMT+5:30". */
export function zone(unix) {
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(new Date(unix * 1000));
  return parts.find((one) => one.type === "timeZoneName").value;
}

/** "14:12:05", or with the day where it is another one than today. */
export function shortTime(unix) {
  const at = new Date(unix * 1000);
  const text = localTime(unix);
  return at.toDateString() === new Date().toDateString() ? text.slice(11, 19) : text.slice(0, 16);
}

/** What a table of the run's files has in a cell. */
export function plain(value) {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(6)));
}

const SIZE_UNITS = [
  [2 ** 40, " TiB"],
  [2 ** 30, " GiB"],
  [2 ** 20, " MiB"],
  [2 ** 10, " KiB"],
  [1, " B"],
];

/** Bytes, as a number or a text of the run's files: "1.50 GiB". Other texts stay. */
export function sizeText(value) {
  const bytes = Number(value);
  return bytes > 0 ? scaledBy(bytes, SIZE_UNITS) : plain(value);
}

/** A percentile's name: 0.999 is "p99.9". */
export function percentileName(fraction) {
  return `p${Number((fraction * 100).toFixed(4))}`;
}
