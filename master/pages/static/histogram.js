// Histograms over time, as the server packs them, and THE percentile: the same arithmetic as in every CSV.

const PER_GROUP = 64;
const FEWEST_BEYOND = 10; // with fewer I/Os beyond it, a percentile is noise

/** The shortest latency in ns that a bucket holds: 64 buckets for each power of two. */
export function lowerEdge(bucket) {
  if (bucket < 2 * PER_GROUP) return bucket;
  const group = Math.floor(bucket / PER_GROUP);
  return (PER_GROUP + (bucket % PER_GROUP)) * 2 ** (group - 1);
}

/** The binary answer: its header, with each set's counts made cumulative: `running`, a row per column. */
export function unpackHistograms(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const begin = 4 + length;
  const columns = header.first.map((first, place) => ({
    first,
    start: header.start[place],
    length_s: header.length_s[place],
    in_measurement: header.in_measurement[place],
    sets: {},
  }));
  for (const set of header.sets) {
    const width = set.high - set.low;
    const counts = new Uint32Array(buffer, begin + set.offset, width * columns.length);
    columns.forEach((column, place) => {
      if (!set.count[place]) return;
      const own = counts.slice(place * width, (place + 1) * width);
      column.sets[set.name] = {
        low: set.low,
        counts: own,
        count: set.count[place],
        min: set.min_us[place] * 1000,
        max: set.max_us[place] * 1000,
        sum_us: set.sum_us[place],
        valid: set.valid[place] === 1,
      };
    });
  }
  return { group: header.group, columns };
}

/** The sum of histograms; null of none. */
export function summed(parts) {
  const used = parts.filter((one) => one);
  if (used.length <= 1) return used[0] ?? null;
  const low = Math.min(...used.map((one) => one.low));
  const high = Math.max(...used.map((one) => one.low + one.counts.length));
  const counts = new Float64Array(high - low);
  for (const one of used) {
    const shift = one.low - low;
    for (let place = 0; place < one.counts.length; place++) counts[place + shift] += one.counts[place];
  }
  return {
    low,
    counts,
    count: used.reduce((sum, one) => sum + one.count, 0),
    min: used.reduce((least, one) => Math.min(least, one.min), Infinity),
    max: used.reduce((most, one) => Math.max(most, one.max), 0),
    sum_us: used.reduce((sum, one) => sum + one.sum_us, 0),
    valid: used.every((one) => one.valid),
  };
}

function runningOf(histogram) {
  if (!histogram.running) {
    let sum = 0;
    histogram.running = Float64Array.from(histogram.counts, (one) => (sum += one));
  }
  return histogram.running;
}

/** Ranks are whole numbers: p is taken as the decimal fraction that it is written as, to a millionth. */
function rankOf(fraction, count) {
  const millionths = Math.round(fraction * 1e6);
  const whole = Math.floor(count / 1e6);
  const rest = count - whole * 1e6;
  return whole * millionths + Math.ceil((rest * millionths) / 1e6 - 1e-12);
}

/** In microseconds; null where samples are insufficient, or the times have no meaning. */
export function percentile(histogram, fraction) {
  if (!histogram || !histogram.valid || histogram.count === 0) return null;
  const rank = rankOf(fraction, histogram.count);
  if (histogram.count - rank < FEWEST_BEYOND) return null;
  const running = runningOf(histogram);
  let [below, at] = [-1, running.length - 1];
  while (at - below > 1) {
    const middle = (below + at) >> 1;
    if (running[middle] >= rank) at = middle;
    else below = middle;
  }
  const bucket = histogram.low + at;
  const middle = (lowerEdge(bucket) + lowerEdge(bucket + 1) - 1) / 2;
  return Math.min(Math.max(middle, histogram.min), histogram.max) / 1000;
}

/** The histogram of a column: "read", "write" or "all" I/O; "service" or "response" time. */
export function chosenHistogram(column, direction, time) {
  const own = column.sets[`${direction}.${time}`]; // "all" of logs that do not tell reads from writes
  if (own || direction !== "all") return own ?? null;
  if (!(`all.${time}` in column)) {
    column[`all.${time}`] = summed([column.sets[`read.${time}`], column.sets[`write.${time}`]]);
  }
  return column[`all.${time}`];
}

/** Put the columns of a newer answer in the place of those from its first one on. */
export function joinedColumns(columns, newer) {
  if (!newer.length) return columns;
  return [...columns.filter((one) => one.first < newer[0].first), ...newer];
}

/** Neighbouring columns added up, so that there are at most so many. */
export function fewerColumns(columns, most) {
  const size = Math.ceil(columns.length / most);
  if (size <= 1) return columns;
  const found = [];
  for (let at = 0; at < columns.length; at += size) {
    const part = columns.slice(at, at + size);
    const names = [...new Set(part.flatMap((one) => Object.keys(one.sets)))];
    found.push({
      ...part[0],
      length_s: part.reduce((sum, one) => sum + one.length_s, 0),
      sets: Object.fromEntries(names.map((name) => [name, summed(part.map((one) => one.sets[name]))])),
    });
    for (const name of ["all.service", "all.response"]) delete found[found.length - 1][name];
  }
  return found;
}

/** I/Os per row of equal width in log latency: each bucket's are spread over the rows that it covers. So buckets that
 * double in width at a power of two make no bands. `edges`: log10 of the rows' ends, in ns. */
export function logRows(histogram, edges) {
  const rows = new Float64Array(edges.length - 1);
  if (!histogram) return rows;
  const step = edges[1] - edges[0];
  for (let place = 0; place < histogram.counts.length; place++) {
    const ios = histogram.counts[place];
    if (!ios) continue;
    const bucket = histogram.low + place;
    const from = Math.log10(Math.max(lowerEdge(bucket), 1));
    const to = Math.max(Math.log10(lowerEdge(bucket + 1)), from + 1e-9);
    const first = Math.floor((from - edges[0]) / step);
    const last = Math.floor((to - edges[0]) / step);
    for (let row = Math.max(first, 0); row <= Math.min(last, rows.length - 1); row++) {
      const overlap = Math.min(to, edges[row + 1]) - Math.max(from, edges[row]);
      if (overlap > 0) rows[row] += (ios * overlap) / (to - from);
    }
  }
  return rows;
}
