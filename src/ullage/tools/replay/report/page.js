"use strict";
// The page of a replay. All content is put in as text, never as markup; nothing is fetched.

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const HOW = ["whole", "shortened", "set aside", "in the summary", "without reasoning"];
const [WHOLE, SHORTENED, STUB, UNSAID] = [0, 1, 2, -2];
const NAMES = {
  head: "system and tools", user: "user", assistant: "model", reasoning: "reasoning",
  call: "tool calls", result: "tool results, whole", excerpt: "kept beginnings and lines of results",
  notice: "notices of what was set aside", record: "records and summaries",
};
const page = JSON.parse($("summary").textContent);
const state = { run: null, story: null, tries: [], chosen: 0, turn: 0, accounts: new Map() };
let hand = null;  // what may be decided here: hand.js

// ── small things ───────────────────────────────────────────────────────────────────────

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const english = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const count = (value) => english.format(value);
const short = (value) =>
  value >= 1e6 ? `${(value / 1e6).toFixed(1)}M` : value >= 1e4 ? `${Math.round(value / 1e3)}k`
    : value >= 1e3 ? `${(value / 1e3).toFixed(1)}k` : `${Math.round(value)}`;
const percent = (share) => (share == null ? "unknown" : `${Math.round(share * 100)}%`);
const cut = (text, most) => (text.length > most ? `${text.slice(0, most).trimEnd()}…` : text).replace(/\s+/g, " ");
const plural = (many, word) => `${count(many)} ${word}${many === 1 ? "" : "s"}`;
const sum = (values) => values.reduce((total, value) => total + value, 0);

// Whose prices they are: where a model's own are not known, that too.
const whose = ({ model, in_place_of }) =>
  in_place_of ? `${model} (no price is known of ${in_place_of})` : model || "no model";

function dollars(usd) {
  if (usd == null) return "unknown";
  return `$${usd >= 100 ? usd.toFixed(0) : usd >= 1 ? usd.toFixed(2) : usd.toPrecision(2)}`;
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, label]) => new Option(label, value)));
  if (chosen !== undefined) select.value = chosen;
  select.parentElement.hidden = options.length < 2;
}

async function unpack(id) {
  const bytes = Uint8Array.from(atob($(id).textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// ── light and dark ─────────────────────────────────────────────────────────────────────

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  let now = dark ? "dark" : "light";
  $("theme").addEventListener("click", () => {
    now = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = now;
    drawMap();
  });
}

// ── policies side by side ──────────────────────────────────────────────────────────────

const room = (row) => (row.share == null ? short(row.window_tokens ?? row.window) : `${+(row.share * 100).toFixed(2)}%`);
const tryName = (row) => `${row.policy} · ${row.share == null ? `window ${room(row)}` : `${room(row)} of the largest request`}`;

function chargeOf(row) {
  const [profile, clock] = [$("profile").value, $("clock").value];
  const found = row.charges.filter((charge) => charge.profile === profile);
  return found.find((charge) => charge.clock === clock) ?? found.find((c) => c.clock === "warm");
}

function meter(share, kind) {
  const width = Math.max(0, Math.min(1, share ?? 0)) * 100;
  const bar = draw("svg", { viewBox: "0 0 100 9", preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("rect", { width, height: 9, class: `k-${kind}` }));
  return make("span", { class: "meter" }, bar);
}

// A server of one's own takes no money: what it works out is what counts.
const isFree = (charge) => charge?.raw.cost_usd === 0;
const isUnpriced = (trace) => !trace.cost_usd[0];
const prefill = (side) => side.written_tokens + side.fresh_tokens;

function costCell(charge) {
  if (isFree(charge)) {
    const [now, raw] = [prefill(charge.shown), prefill(charge.raw)];
    const part = raw ? now / raw : null;
    return make("td", { class: "wide" }, meter(part, "answer"), percent(part),
      make("small", {}, `${short(now)} of ${short(raw)} tokens to work out`));
  }
  return make("td", { class: "wide" },
    meter(charge?.usd_share, "answer"), percent(charge?.usd_share),
    make("small", {}, `${dollars(charge?.shown.cost_usd)} of ${dollars(charge?.raw.cost_usd)}`));
}

// What was needed and not in view: how much could be recalled, and how much was lost.
function neededCell({ visible, lost }) {
  if (visible == null) return make("td", {}, "nothing needed");
  return make("td", {}, percent(visible),
    make("small", {}, `${percent(1 - visible - lost)} recallable, ${percent(lost)} lost`));
}

function cells(row) {
  const charge = chargeOf(row);
  const broken = Object.entries(row.broken).map(([gate, times]) => `${gate} ${times}`);
  if (row.over_limit) broken.push(`${row.over_limit} over limit`);
  const cached = make("td", { class: "wide" }, meter(share(charge?.shown), "write"), percent(share(charge?.shown)));
  return [
    make("th", { scope: "row" }, row.policy),
    make("td", {}, room(row)),
    neededCell(row.evidence),
    costCell(charge),
    cached,
    make("td", {}, `${short(row.peak_tokens)} / ${short(row.mean_tokens)}`,
      make("small", {}, `of ${short(row.raw_peak_tokens)}`)),
    make("td", {}, row.breaks_per_100.toFixed(1), make("small", {}, `${percent(row.rewritten_share)} deep`)),
    make("td", { class: broken.length ? "gates bad" : "gates good" }, broken.join(", ") || "all kept"),
  ];
}

function share(side) {
  if (!side) return null;
  const whole = side.cached_tokens + side.written_tokens + side.fresh_tokens;
  return whole ? side.cached_tokens / whole : 0;
}

const COLUMNS = [["policy"], ["budget"], ["needed, in view"], ["cost", "wide"], ["from cache", "wide"],
  ["peak / mean"], ["breaks in 100"], ["gates"]];

function showPolicies() {
  const rows = page.rows.filter((row) => row.name === $("group").value);
  const profile = page.profiles.find((each) => each.name === $("profile").value);
  const models = rows.flatMap((row) => chargeOf(row)?.models ?? []);
  const terms = profile && !profile.input_usd && profile.output_usd === 0
    ? `${profile.name}: your own server; a token costs nothing, and what is not cached has to be worked out.`
    : profile
    ? `${whose(profile)}: in ${dollars(profile.input_usd)}, out ${dollars(profile.output_usd)} per million tokens, ` +
      `cache read ×${+profile.read.toFixed(3)}, write ×${profile.write}; as of ${profile.as_of}.`
    : `Each run at the prices of its own model: ${[...new Set(models)].join(", ")}.`;
  const answers = isFree(chargeOf(rows[0])) ? "" : ", answers included";
  $("profile-note").textContent = `${terms} Cost is relative to the same calls without ullage${answers}.`;
  const head = make("tr", {}, ...COLUMNS.map(([name, wide]) => make("th", { scope: "col", class: wide ?? "" }, name)));
  const body = rows.map((row) => make("tr", {}, ...cells(row)));
  $("table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
  showEvidence(rows);
}

function policies() {
  if (!page.rows.length) return;
  $("policies").hidden = false;
  if (new Set(page.rows.map(tryName)).size === 1) $("policies-title").textContent = "In figures";
  const names = [...new Set(page.rows.map((row) => row.name))].reverse();
  const clocks = [...new Set(page.rows.flatMap((row) => row.charges.map((c) => c.clock)))];
  const told = { warm: "none outlives the cache", lossy: "1 in 20 does", recorded: "as recorded" };
  fill($("group"), names.map((name) => [name, name]));
  const profiles = [...new Set(page.rows.flatMap((row) => row.charges.map((c) => c.profile)))];
  fill($("profile"), profiles.map((name) => [name, name === "own" ? "its own model" : name]));
  fill($("clock"), clocks.map((clock) => [clock, told[clock] ?? clock]));
  for (const id of ["group", "profile", "clock"]) $(id).addEventListener("change", showPolicies);
  showPolicies();
}

function showEvidence(rows) {
  const known = rows.filter((row) => Object.keys(row.evidence?.first ?? {}).length);
  $("evidence").hidden = !known.length;
  $("evidence-legend").replaceChildren(item(box("good"), "in view"), item(box("answer"), "to be recalled"),
    item(box("bad"), "lost"));
  $("evidence-bars").replaceChildren(...known.map((row) => {
    const list = make("dl");
    for (const [age, seen] of Object.entries(row.evidence.first)) {
      const recallable = seen.demanded - seen.visible - seen.lost;
      const parts = [[seen.visible, "good"], [recallable, "answer"], [seen.lost, "bad"]];
      const bar = draw("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", role: "img",
        "aria-label": `${age} calls ago, of ${count(seen.demanded)}: ${count(seen.visible)} visible, ` +
          `${count(recallable)} to be recalled, ${count(seen.lost)} lost` });
      let at = 0;
      for (const [value, kind] of parts) {
        const width = (100 * value) / (seen.demanded || 1);
        bar.append(draw("rect", { x: at, width, height: 12, class: `k-${kind}` }));
        at += width;
      }
      list.append(make("dt", {}, age), make("dd", {}, bar),
        make("dd", {}, seen.demanded ? percent(seen.visible / seen.demanded) : "–"));
    }
    return make("div", {}, make("h3", {}, tryName(row)), list);
  }));
}

// ── what all of it came to ─────────────────────────────────────────────────────────────

const tile = (figure, words) => make("div", {}, make("dt", {}, figure), make("dd", {}, words));
const inWords = (many, word) => (many === 1 ? `one ${word}` : `${count(many)} ${word}s`);

function moneyTile(charge, row) {
  const [usd, raw] = [charge.shown.cost_usd, charge.raw.cost_usd];
  const saved = raw - usd;
  const figure = saved >= 0 ? `${dollars(saved)} saved` : `${dollars(-saved)} more`;
  const share = percent(Math.abs(saved) / (raw || 1));
  const unsaved = sum(row.bands.map((band) => band.unsaved));
  const bill = `${dollars(usd)} instead of ${dollars(raw)}, ${share} ${saved >= 0 ? "less" : "more"}, in ` +
    `${inWords(row.runs, "run")}. Answers and prompt caching are counted.`;
  return tile(figure, row.runs > 1 && unsaved ? `${bill} In ${inWords(unsaved, "run")} nothing was saved.` : bill);
}

function tokensTile(sent, raw) {
  const share = raw ? Math.abs(1 - sent / raw) : 0;
  return tile(`${percent(share)} ${sent <= raw ? "fewer" : "more"} tokens`,
    `${short(sent)} tokens were sent instead of ${short(raw)}.`);
}

function neededTile({ needed, visible, lost }) {
  if (visible == null) return tile("Nothing old was needed", "No call took a value from a result of four or more calls before.");
  const aside = 1 - visible - lost;
  const words = [`${percent(visible)} of what the agent needed from older results was in view`];
  if (aside > 0) words.push(`${percent(aside)} was one call of the recall tool away`);
  return tile(lost ? `${percent(lost)} lost` : "Nothing lost", `${words.join(", ")} (${count(needed)} values).`);
}

const peakTile = (most, raw) => tile(`${short(most)} tokens at most`, `The largest request would have had ${short(raw)} without ullage.`);

function outcomeOf(row) {
  const charge = row.charges.find((each) => each.clock === "warm");
  const hasPrices = charge?.shown.cost_usd != null && charge?.raw.cost_usd != null;
  return [hasPrices ? moneyTile(charge, row) : tokensTile(row.tokens, row.raw_tokens),
    neededTile(row.evidence), peakTile(row.peak_tokens, row.raw_peak_tokens)];
}

// Of a session no other run is known, and not what its agent needed.
function outcomeOfTrace(trace) {
  const [totals, hasPrices] = [trace.sizes.map(sum), !trace.cost_usd.includes(null)];
  const [sent, raw, usd, rawUsd] = [totals, trace.raw, trace.cost_usd, trace.raw_cost_usd].map(sum);
  const tiles = [tokensTile(sent, raw), peakTile(Math.max(...totals), Math.max(...trace.raw))];
  if (hasPrices) tiles.unshift(moneyTile({ shown: { cost_usd: usd }, raw: { cost_usd: rawUsd } }, { runs: 1, bands: [] }));
  return tiles;
}

// The first glance: what it saved, and whether what was needed was there, over all runs.
function showOutcome() {
  const totals = [...new Map(page.rows.map((row) => [tryName(row), row])).entries()];
  const outcomes = totals.length ? totals.map(([name, row]) => [name, outcomeOf(row)])
    : state.tries.map(({ trace }) => [tryName(trace), outcomeOfTrace(trace)]);
  $("outcome").hidden = !outcomes.length;
  $("outcomes").replaceChildren(...outcomes.map(([name, tiles]) => make("div", { class: "outcome" },
    outcomes.length > 1 ? make("h3", {}, name) : "", make("dl", {}, ...tiles))));
}

// A page of sums leads to the pages of its runs.
function showDrawn() {
  $("drawn").hidden = !page.links.length;
  $("runs-drawn").replaceChildren(...page.links.map((link) => make("li", {},
    make("a", { href: link.href }, link.name), ` ${plural(link.calls, "call")}, ${short(link.peak)} tokens`)));
}

// What left the window, when, by whom, for how much; and each break of the prompt cache.
function showWhy() {
  const why = page.why;
  $("why").hidden = !why;
  if (!why) return;
  const list = (lines, none) => (lines.length ? lines : [none]).map((line) => make("li", {}, line));
  $("why-lead").textContent = why.lead;
  $("why-breaks").replaceChildren(...list([...why.breaks, ...why.causes], "It never broke."));
  $("why-batches").replaceChildren(...list(why.batches, "Nothing left it in a batch."));
  $("why-tables").replaceChildren(...why.tables.map(([heading, rows]) => make("table", {},
    make("thead", {}, make("tr", {}, ...[heading, ...why.columns].map((column) => make("th", { scope: "col" }, column)))),
    make("tbody", {}, ...rows.map(([name, ...figures]) => make("tr", {},
      make("th", { scope: "row" }, name), ...figures.map((figure) => make("td", {}, figure))))))));
  $("why-tables").hidden = !why.tables.length;
  $("why-note").textContent = why.tables.length ? why.note : "";
}

// ── one run, turn by turn ──────────────────────────────────────────────────────────────

const swatch = (...shapes) => draw("svg", { viewBox: "0 0 14 12", "aria-hidden": "true" }, ...shapes);
const box = (kind) => swatch(draw("rect", { y: 1, width: 12, height: 10, rx: 2, class: `k-${kind}` }));
const item = (icon, text) => make("li", {}, icon, text);

// What of it there is in a run.
function legend() {
  const seen = (_, at) => state.tries.some(({ trace }) => trace.sizes.some((sizes) => sizes[at]));
  const items = page.kinds.filter(seen).map((kind) => item(box(kind), NAMES[kind]));
  items.push(
    item(swatch(draw("path", { d: "M0 6H14", class: "raw" })), "without ullage"),
    item(swatch(markShape(6, 6, 4.5, false)), "edits of what had been sent"),
    item(swatch(markShape(6, 6, 4.5, true)), "cut on arrival"),
    item(box("read"), "cost: read from cache"), item(box("write"), "new input"),
  );
  if (state.tries.some(({ trace }) => trace.cost_usd[0] != null)) items.push(item(box("answer"), "answer"));
  $("legend").replaceChildren(...items);
}

function markShape(x, y, size, first) {
  const d = first ? `M${x - size} ${y - size * 0.8}H${x + size}L${x} ${y + size * 0.9}Z`
    : `M${x} ${y - size}L${x + size} ${y}L${x} ${y + size}L${x - size} ${y}Z`;
  return draw("path", { d, class: first ? "mark first" : "mark" });
}

// Steps, so that every turn is as wide as any other and a single one can be seen.
function steps(values, x, y) {
  let path = "";
  values.forEach((value, turn) => { path += `${turn ? "L" : "M"}${x(turn)} ${y(value)}H${x(turn + 1)}`; });
  return path;
}

function area(lower, upper, x, y) {
  let path = steps(upper, x, y);
  for (let turn = lower.length - 1; turn >= 0; turn--) path += `L${x(turn + 1)} ${y(lower[turn])}H${x(turn)}`;
  return `${path}Z`;
}

const line = (value) => +value.toFixed(2);

function chart(attempt, index) {
  const { trace } = attempt;
  const turns = trace.lengths.length;
  const width = Math.max($("charts").clientWidth, 280);
  const [left, right, top, plot, lane, bars] = [54, 6, 8, [260, 190][state.tries.length - 1] ?? 130, 20, 46];
  const height = top + plot + lane + bars + 18;
  const x = (turn) => line(left + ((width - left - right) * turn) / turns);
  const totals = trace.sizes.map(sum);
  const most = state.most;
  const y = (value) => line(top + plot - (plot * value) / most);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img",
    "aria-label": `${tryName(trace)}: ${plural(turns, "turn")}, at most ${count(Math.max(...totals))} tokens ` +
      `instead of ${count(Math.max(...trace.raw))}; ${plural(trace.marks.length, "edit")}` });
  for (const tick of [0.5, 1]) {
    const value = Math.round((most * tick) / 1000) * 1000 || most * tick;
    svg.append(draw("path", { d: `M${left} ${y(value)}H${width - right}`, class: "axis" }),
      draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  let lower = new Array(turns).fill(0);
  page.kinds.forEach((kind, at) => {
    const upper = lower.map((value, turn) => value + trace.sizes[turn][at]);
    if (upper.some((value, turn) => value > lower[turn]))
      svg.append(draw("path", { d: area(lower, upper, x, y), class: `k-${kind}` }));
    lower = upper;
  });
  const clip = `clip-${index}`;
  svg.append(draw("clipPath", { id: clip }, draw("rect", { x: left, y: top, width: width - left - right, height: plot })),
    draw("path", { d: steps(trace.raw, x, y), class: "raw", "clip-path": `url(#${clip})` }));
  if (trace.limit_tokens <= most)
    svg.append(draw("path", { d: `M${left} ${y(trace.limit_tokens)}H${width - right}`, class: "limit" }),
      draw("text", { x: left + 5, y: y(trace.limit_tokens) - 4, class: "over" },
        `limit ${short(trace.limit_tokens)}${width > 560 ? ": the window without the room for the answer" : ""}`));
  const whole = Math.max(...trace.raw);
  if (whole <= most)
    svg.append(draw("text", { x: width - right - 4, y: Math.max(y(whole) - 5, top + 9), "text-anchor": "end", class: "over" },
      `without ullage ${short(whole)}`));
  else
    svg.append(draw("text", { x: width - right - 4, y: top + 10, "text-anchor": "end", class: "over" },
      `without ullage up to ${short(whole)} ↑`));
  const [newest, aside] = [totals[turns - 1], trace.raw[turns - 1] - totals[turns - 1]];
  if (aside > 0 && y(newest) - y(whole) > 26)
    svg.append(draw("text", { x: width - right - 4, y: Math.min(y(newest), trace.limit_tokens <= most ? y(trace.limit_tokens) : top + plot) - 5, "text-anchor": "end", class: "over" }, `sent ${short(newest)}`));
  if (aside > most / 3 && whole <= most && plot > 150 && width > 480) {
    const middle = (y(trace.raw[turns - 1]) + y(trace.limit_tokens)) / 2 + 20;
    svg.append(draw("text", { x: width - right - 10, y: middle, "text-anchor": "end", class: "over" }, `${short(aside)} set aside, kept byte for byte`),
      draw("text", { x: width - right - 10, y: middle + 16, "text-anchor": "end" }, "the model opens it by its ref"));
  }
  if (width > 480) svg.append(draw("text", { x: left + 5, y: top + 10, class: "over" }, "tokens of each request"));
  svg.append(
    draw("text", { x: left + 5, y: top + plot + lane + 10, class: "over" }, isUnpriced(trace) ? "of them new to the cache" : "cost of each request"));
  for (const at of [0, Math.floor(turns / 2), turns - 1])
    svg.append(draw("text", { x: (x(at) + x(at + 1)) / 2, y: height - 1, class: "tick",
      "text-anchor": at === 0 ? "start" : at === turns - 1 ? "end" : "middle" }, `turn ${at + 1}`));
  marks(svg, attempt, x, top + plot + lane / 2 + 1);
  costs(svg, trace, x, top + plot + lane, bars);
  attempt.cursor = draw("path", { class: "cursor", d: "" });
  attempt.x = (turn) => `M${line((x(turn) + x(turn + 1)) / 2)} ${top}V${height - 18}`;
  svg.append(attempt.cursor);
  svg.addEventListener("pointermove", (event) => { if (event.buttons || event.pointerType === "mouse") point(event); });
  svg.addEventListener("pointerdown", (event) => { choose(index); point(event); });
  function point(event) {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) * width) / box.width;
    go(Math.floor(((at - left) / (width - left - right)) * turns));
  }
  return svg;
}

function marks(svg, attempt, x, y) {
  for (const [turn, found] of attempt.byTurn) {
    const firsts = found.filter((mark) => mark.first);
    const later = found.length - firsts.length;
    const freed = sum(found.map((mark) => mark.before - mark.after));
    const size = later ? Math.min(4.5 + Math.sqrt(Math.max(freed, 0)) / 40, 8) : 4;
    const shape = markShape((x(turn) + x(turn + 1)) / 2, y, size, !later);
    shape.dataset.turn = turn;
    shape.append(draw("title", {}, `turn ${turn + 1}: ${plural(found.length, "edit")}, ${count(freed)} tokens freed`));
    shape.addEventListener("pointerdown", () => { state.pinned = turn; });
    svg.append(shape);
  }
}

function costs(svg, trace, x, top, height) {
  const parts = trace.lengths.map((_, turn) => split(trace, turn));
  const most = Math.max(...parts.map(sum)) || 1;
  const y = (value) => line(top + height - ((height - 8) * value) / most);
  let lower = new Array(parts.length).fill(0);
  ["read", "write", "answer"].forEach((kind, at) => {
    const upper = lower.map((value, turn) => value + parts[turn][at]);
    svg.append(draw("path", { d: area(lower, upper, x, y), class: `k-${kind}` }));
    lower = upper;
  });
  const label = isUnpriced(trace) ? `${short(most)} tokens` : dollars(most);
  svg.append(draw("text", { x: x(0) - 6, y: top + 12, "text-anchor": "end" }, label));
}

// What a turn cost, parted into what was read from the cache, new input, and the answer; in
// tokens where no price is known.
function split(trace, turn) {
  const [read, write, fresh] = [trace.cached[turn], trace.written[turn], trace.fresh[turn]];
  const { profile } = trace;
  if (isUnpriced(trace) || !profile) return [read, write + fresh, 0];
  let price = profile.input_usd;
  for (const cliff of profile.cliffs) if (read + write + fresh > cliff.above_tokens) price = cliff.input_usd;
  const parts = [read * profile.read * price, (write * profile.write + fresh) * price].map((usd) => usd / 1e6);
  return [...parts, Math.max(trace.cost_usd[turn] - sum(parts), 0)];
}

function heading(attempt, index) {
  const { trace } = attempt;
  const [usd, raw] = [trace.cost_usd, trace.raw_cost_usd].map((row) => (row.includes(null) ? null : sum(row)));
  const breaks = trace.rewritten.filter((tokens) => tokens > 0).length;
  const parts = [];
  if (usd != null && raw) parts.push(`${dollars(usd)} instead of ${dollars(raw)} (${percent(usd / raw)})`);
  parts.push(plural(trace.marks.length, "edit"), plural(breaks, "cache break"));
  attempt.now = make("span", { class: "now" });
  const button = make("button", { type: "button", onclick: () => choose(index),
    "aria-label": `Show the history as ${tryName(trace)} showed it` }, tryName(trace));
  return make("div", { class: "title" }, make("h3", {}, button),
    make("span", { class: "sum" }, parts.join(" · ")), attempt.now);
}

// One run in words. What all runs came to stands above it.
function sayRun() {
  const { story } = state;
  const task = story.parts.find((_, index) => story.roles[index] === "user")?.find(([kind]) => kind === "user");
  const asked = task && `“${cut(task[2], 140)}”`;
  $("run-named").textContent = [asked, story.model, story.began, story.run].filter(Boolean).join(" · ");
  $("said").replaceChildren(...state.tries.map(({ trace }) => {
    const [sent, raw] = [sum(trace.sizes.map(sum)), sum(trace.raw)];
    const [usd, rawUsd] = [trace.cost_usd, trace.raw_cost_usd].map((row) => (row.includes(null) ? null : sum(row)));
    const name = state.tries.length > 1 ? `${tryName(trace)}: ` : "";
    const lead = `${name}${short(sent)} tokens were sent instead of ${short(raw)}`;
    const said = [` in ${plural(trace.lengths.length, "call")}`];
    if (usd != null && rawUsd) said.push(`for ${dollars(usd)} instead of ${dollars(rawUsd)} at the prices of ${whose(trace.profile)}, prompt caching counted`);
    const breaks = trace.rewritten.filter((tokens) => tokens > 0).length;
    const rewritten = breaks === 1 ? "once" : breaks ? `${breaks} times` : "never";
    return make("span", {}, make("b", {}, lead),
      `${said.join(" ")}. What had been sent before was changed ${rewritten}; a change makes the provider's cache begin anew.`);
  }));
}

function drawCharts() {
  const shown = Math.max(...state.tries.flatMap(({ trace }) => [...trace.sizes.map(sum), trace.limit_tokens]));
  const raw = Math.max(...state.tries.flatMap(({ trace }) => trace.raw));
  state.most = ($("tall").checked ? Math.max(shown, raw) : Math.min(shown, Math.max(raw, 1) * 1.5)) * 1.08;
  $("charts").replaceChildren(...state.tries.map((attempt, index) => {
    attempt.box = make("div", { class: "chart" }, heading(attempt, index), chart(attempt, index));
    return attempt.box;
  }));
  choose(Math.min(state.chosen, state.tries.length - 1));
}

async function openRun(at) {
  const run = page.runs[at];
  state.run = run;
  state.story = await unpack(run.story);
  state.tries = await Promise.all(run.traces.map(async (id) => {
    const trace = await unpack(id);
    const byTurn = new Map();
    for (const mark of trace.marks) byTurn.set(mark.turn, [...(byTurn.get(mark.turn) ?? []), mark]);
    return { trace, byTurn, turns: [...byTurn.keys()] };
  }));
  state.turns = Math.max(...state.tries.map(({ trace }) => trace.lengths.length));
  state.turn = state.turns - 1;
  state.chosen = 0;
  $("turn").max = state.turns;
  fill($("tries"), state.tries.map(({ trace }, index) => [index, tryName(trace)]), 0);
  buildMessages();
  if (!page.rows.length) showOutcome();
  sayRun();
  legend();
  $("session").hidden = false;
  drawCharts();
}

// ── the turn ───────────────────────────────────────────────────────────────────────────

function go(turn) {
  const next = Math.max(0, Math.min(turn, state.turns - 1));
  if (next === state.turn) return;
  state.turn = next;
  cancelAnimationFrame(state.frame);
  state.frame = requestAnimationFrame(showTurn);
}

function showTurn() {
  const { turn } = state;
  $("turn").value = turn + 1;
  $("where").textContent = `turn ${turn + 1} of ${state.turns}`;
  for (const attempt of state.tries) {
    const { trace } = attempt;
    if (turn >= trace.lengths.length) continue;
    attempt.cursor.setAttribute("d", attempt.x(turn));
    const [read, write, fresh] = [trace.cached[turn], trace.written[turn], trace.fresh[turn]];
    const input = read + write + fresh;
    attempt.now.textContent = [
      `${count(sum(trace.sizes[turn]))} of ${count(trace.raw[turn])} tokens`,
      input ? `${percent(read / input)} cached` : "",
      isUnpriced(trace) ? "" : dollars(trace.cost_usd[turn]),
    ].filter(Boolean).join(" · ");
    attempt.box.querySelectorAll(".mark").forEach((mark) =>
      mark.classList.toggle("here", Number(mark.dataset.turn) === turn));
  }
  showEdits();
  showMessages();
  moveMapCursor();
  if (state.isLinked) link();
}

function choose(index) {
  state.chosen = index;
  $("tries").value = index;
  state.tries.forEach((attempt, at) => attempt.box.classList.toggle("chosen", at === index && state.tries.length > 1));
  picture = null;
  showTurn();
  drawMap();
}

function jump(direction) {
  const { turns } = state.tries[state.chosen];
  const found = direction > 0 ? turns.find((turn) => turn > state.turn)
    : turns.findLast((turn) => turn < state.turn);
  if (found !== undefined) go(found);
}

// ── edits ──────────────────────────────────────────────────────────────────────────────

const SHOWN_EDITS = 60;

function showEdits() {
  const attempt = state.tries[state.chosen];
  if (!attempt) return;
  const here = attempt.byTurn.get(state.turn) ?? [];
  const near = attempt.turns.findLast((turn) => turn <= state.turn);
  const found = here.length ? here : (attempt.byTurn.get(near) ?? []);
  if (state.edits === found && state.editsAt === state.turn) return;
  [state.edits, state.editsAt] = [found, state.turn];
  const title = here.length ? `${plural(here.length, "edit")} at turn ${state.turn + 1}`
    : found.length ? `No edit at this turn; the last: turn ${near + 1}` : "No edit so far";
  const boxes = found.slice(0, SHOWN_EDITS).map(edit);
  if (found.length > SHOWN_EDITS) boxes.push(make("p", { class: "hint" }, `and ${count(found.length - SHOWN_EDITS)} more`));
  $("detail").replaceChildren(make("h3", {}, title), make("p", { class: "hint" }, tryName(attempt.trace)), ...boxes);
}

function edit(mark) {
  const box = make("div", { class: mark.first ? "edit first" : "edit" },
    make("p", {}, make("span", { class: "pill" }, mark.kind), ` ${count(mark.before)} → ${count(mark.after)} tokens`),
    make("p", {}, make("code", {}, mark.what)),
    make("p", { class: "why" }, mark.why));
  if (mark.ref) {
    const copy = make("button", { type: "button", class: "small", "aria-label": `Copy the ref ${mark.ref}`,
      onclick: () => copied(copy, mark.ref) }, "copy");
    box.append(make("p", { class: "why" }, "ref ", make("code", {}, mark.ref), " ", copy));
    if (hand) box.append(make("p", {}, hand.undoButton(mark)));
  }
  const button = make("button", { type: "button", onclick: () => find(mark.message) }, `message ${mark.message + 1}`);
  box.append(make("details", {}, make("summary", {}, "what is shown instead"), make("pre", {}, mark.text)), button);
  return box;
}

async function copied(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {  // not allowed here: it can be selected by hand
    button.textContent = "select it by hand";
  }
}

// ── links to a turn ────────────────────────────────────────────────────────────────────

const NAMED = ["run", "shown", "turn"];  // each from 1, as a person counts

function link() {
  const place = [page.runs.indexOf(state.run) + 1, state.chosen + 1, state.turn + 1];
  history.replaceState(null, "", `#${NAMED.map((name, at) => `${name}=${place[at]}`).join("&")}`);
}

function linked() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const [run, shown, turn] = NAMED.map((name) => Number(asked.get(name)) - 1);
  return { run: page.runs[run] ? run : 0, shown: shown >= 0 ? shown : 0, turn };
}

async function openLinked() {
  const { run, shown, turn } = linked();
  if (page.runs[run] !== state.run) await openRun(run);
  $("runs").value = run;
  choose(Math.min(shown, state.tries.length - 1));
  if (turn >= 0) go(turn);
}

// ── the history ────────────────────────────────────────────────────────────────────────

const LONG_CHARS = 420;

// Arguments as lines a person reads, where they are whole and plain.
function words([kind, , text]) {
  if (kind !== "call" || !text.startsWith("{")) return text;
  try {
    const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    return Object.entries(JSON.parse(text)).map(([key, value]) => `${key}: ${plain(value)}`).join("\n");
  } catch {
    return text;
  }
}

// A box for each message; of a long history only the newest are filled before the first look.
function buildMessages() {
  const { roles, parts, head } = state.story;
  const boxes = parts.map((row, index) => {
    const kind = row[0]?.[0] ?? (roles[index] === "tool" ? "result" : roles[index]);
    const box = document.createElement("article");
    box.className = `msg t-${kind}`;
    const tokens = row.reduce((total, said) => total + said[3], 0);
    return { box, index, how: -1, edit: null, kind, tokens, filled: false };
  });
  state.boxes = boxes;
  const first = head ? [make("article", { class: "msg t-head" },
    make("header", {}, make("b", {}, "system and tools")), make("pre", {}, head))] : [];
  const all = document.createDocumentFragment();
  all.append(...first, ...boxes.map((each) => each.box));
  $("messages").replaceChildren(all);
  state.accounts = new Map();
  fillFrom(boxes, boxes.length - 1);
}

const FILLED_AT_ONCE = 300;

// The newest first, and the others while nothing else is to be done, so that all can be searched.
function fillFrom(boxes, last) {
  const next = Math.max(last - FILLED_AT_ONCE, -1);
  for (let at = last; at > next; at--) fillBox(boxes[at]);
  if (next >= 0) requestIdleCallback(() => { if (state.boxes === boxes) fillFrom(boxes, next); });
}

function fillBox(each) {
  if (each.filled) return;
  const { box, index, tokens } = each;
  const [role, row] = [state.story.roles[index], state.story.parts[index]];
  const tool = row.map((said) => said[1]).filter(Boolean).join(", ");
  const text = row.map((said) => (row.length > 1 ? `${NAMES[said[0]] ?? said[0]}: ${words(said)}` : words(said))).join("\n\n");
  each.label = make("span", { class: "how" });
  each.more = make("button", { type: "button", class: "more",
    onclick: () => { box.classList.toggle("open"); nameMore(each); } });
  each.long = text.length > LONG_CHARS || text.split("\n").length > 6;
  each.filled = true;
  for (const [name, value] of [["aria-posinset", index + 1], ["aria-setsize", state.boxes.length], ["tabindex", -1]])
    box.setAttribute(name, value);
  box.append(make("header", {}, make("b", {}, tool ? `${role} · ${tool}` : role),
    `message ${index + 1}`, make("span", {}, `${count(tokens)} tokens`), each.label),
    make("pre", {}, text), each.more);
  if (each.how !== -1) showHow(each);
  hand?.barOf(each);
}

// Of a long text the rest can be shown; of an edited one, what stood there before.
function nameMore(each) {
  const open = each.box.classList.contains("open");
  const edited = each.how > WHOLE;
  each.more.hidden = !each.long && !edited;
  each.more.textContent = `${open ? "hide" : "show"} the ${edited ? "original" : "rest"}`;
  each.more.setAttribute("aria-expanded", String(open));
}

// How every message looks at a turn: the last change up to it, and the last edit of it.
function looks(trace, turn) {
  const how = new Uint8Array(state.boxes.length);
  const edits = new Array(state.boxes.length).fill(null);
  let accounts = [];
  for (const [at, message, now] of trace.changes) if (at <= turn) how[message] = now;
  for (const mark of trace.marks) {
    if (mark.turn > turn) break;
    if (isOfSeveral(mark)) accounts = [...accounts.filter((each) => each.message < mark.message || each.stop > mark.stop), mark];
    else edits[mark.message] = mark;
  }
  return { how, edits, accounts };
}

function showMessages() {
  const { trace } = state.tries[state.chosen] ?? {};
  if (!trace) return;
  const turn = Math.min(state.turn, trace.lengths.length - 1);
  const length = trace.lengths[turn];
  const { how, edits, accounts } = looks(trace, turn);
  state.boxes.forEach((each, index) => {
    const now = index < length ? how[index] : UNSAID;
    if (each.how === now && each.edit === edits[index]) return;
    if (each.how > WHOLE) each.box.classList.remove(`s${each.how}`);
    if (now > WHOLE) each.box.classList.add(`s${now}`);
    if ((now === UNSAID) !== each.box.hidden) each.box.hidden = now === UNSAID;
    [each.how, each.edit] = [now, edits[index]];
    if (each.filled) showHow(each);
  });
  showAccounts(accounts);
  if ($("follow").checked) follow(length);
}

// What its header, its button and the text in its place say of how a message is shown.
function showHow(each) {
  const { how } = each;
  each.label.replaceChildren(...(how <= WHOLE ? [] : [make("span", { class: "pill" }, HOW[how])]));
  nameMore(each);
  showInstead(each, how === SHORTENED || how === STUB ? each.edit : null);
}

function showInstead(each, mark) {
  each.shown?.remove();
  each.shown = null;
  if (!mark) return;
  each.shown = make("div", { class: "instead" }, make("p", { class: "hint" }, `shown instead · ${mark.why}`), make("pre", {}, mark.text));
  each.box.querySelector("header").after(each.shown);
}

// One text in the place of several messages: a record of what was done, or a summary.
const isOfSeveral = (mark) => mark.stop > mark.message + 1 || mark.kind === "condensed" || mark.kind === "compacted";

function showAccounts(marks) {
  const wanted = new Set(marks);
  for (const [mark, box] of state.accounts) {
    if (wanted.has(mark) && box.isConnected) continue;
    box.remove();
    state.accounts.delete(mark);
  }
  for (const mark of marks) {
    if (state.accounts.has(mark)) continue;
    const title = `shown instead of messages ${mark.message + 1} to ${mark.stop}`;
    const box = make("article", { class: "account" },
      make("header", {}, make("b", {}, title),
        ` ${count(mark.before)} → ${count(mark.after)} tokens`, ...(hand && mark.ref ? [" ", hand.undoButton(mark)] : [])),
      make("pre", { tabindex: 0, role: "group", "aria-label": title }, mark.text));
    state.accounts.set(mark, box);
    state.boxes[mark.message]?.box.before(box);
  }
}

function follow(length) {
  const list = $("messages");
  const last = state.boxes[length - 1]?.box;
  const settle = (again) => {  // heights out of sight are estimates until they are drawn
    list.scrollTop = last.offsetTop - list.offsetTop + last.offsetHeight - list.clientHeight + 8;
    if (again) requestAnimationFrame(() => settle(again - 1));
  };
  if (last) settle(3);
}

function find(message) {
  $("follow").checked = false;
  const each = state.boxes[message];
  const { box } = each;
  fillBox(each);
  document.querySelectorAll(".found").forEach((other) => other.classList.remove("found"));
  box.classList.add("found");
  $("messages").scrollTop = box.offsetTop - $("messages").offsetTop - 60;
  box.focus({ preventScroll: true });
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  $("session").scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
}

// The next message that says what is searched for, from the one found last.
function search() {
  const wanted = $("search").value.trim().toLowerCase();
  if (!wanted) return;
  const length = state.boxes.length;
  for (let step = 1; step <= length; step++) {
    const at = ((state.found ?? -1) + step) % length;
    const says = state.story.parts[at].some((said) => `${said[1]} ${said[2]}`.toLowerCase().includes(wanted));
    if (!says) continue;
    state.found = at;
    fillBox(state.boxes[at]);
    if (state.boxes[at].box.hidden) go(state.tries[state.chosen].trace.lengths.findIndex((now) => now > at));
    requestAnimationFrame(() => find(at));
    return;
  }
  $("search").setCustomValidity("not in this run");
  $("search").reportValidity();
  $("search").setCustomValidity("");
}

// ── the map ────────────────────────────────────────────────────────────────────────────

const FADED = [1, 0.6, 0.3, 0.07, 0.85];
let picture = null;

function drawMap() {
  const { trace } = state.tries[state.chosen] ?? {};
  const canvas = $("map");
  if (!trace || !canvas.clientWidth) return;
  const scale = Math.min(devicePixelRatio || 1, 2);
  [canvas.width, canvas.height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
  const drawn = make("canvas", { width: canvas.width, height: canvas.height });
  const context = drawn.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const paint = Object.fromEntries(page.kinds.map((kind) => [kind, style.getPropertyValue(`--${kind}`).trim()]));
  const turns = trace.lengths.length;
  const edges = [0];
  state.boxes.forEach((each) => edges.push(edges.at(-1) + each.tokens + 4));
  const [wide, high] = [canvas.width / turns, canvas.height / edges.at(-1)];
  const since = new Map();
  const band = (message, from, to, how) => {
    context.globalAlpha = FADED[how];
    context.fillStyle = paint[state.boxes[message].kind];
    context.fillRect(from * wide, edges[message] * high, (to - from) * wide + 0.4, Math.max((edges[message + 1] - edges[message]) * high, 0.6));
  };
  let known = 0;
  trace.lengths.forEach((length, turn) => {
    for (; known < length; known++) since.set(known, [turn, WHOLE]);
  });
  for (const [turn, message, how] of trace.changes) {
    const [from, before] = since.get(message);
    if (turn > from) band(message, from, turn, before);
    since.set(message, [turn, how]);
  }
  for (const [message, [from, how]] of since) band(message, from, turns, how);
  context.globalAlpha = 1;
  picture = { drawn, edges, wide, turns, scale, ink: style.getPropertyValue("--ink").trim() };
  canvas.setAttribute("aria-label", `Map of ${plural(state.boxes.length, "message")} over ${plural(turns, "turn")} as shown by ${tryName(trace)}`);
  moveMapCursor();
}

function moveMapCursor() {
  if (!picture) return;
  const { drawn, wide, scale, ink, turns } = picture;
  const context = $("map").getContext("2d");
  context.clearRect(0, 0, drawn.width, drawn.height);
  context.drawImage(drawn, 0, 0);
  context.fillStyle = ink;
  context.fillRect((Math.min(state.turn, turns - 1) + 0.5) * wide, 0, 1.2 * scale, drawn.height);
  const { trace } = state.tries[state.chosen];
  const turn = Math.min(state.turn, turns - 1);
  const hidden = looks(trace, turn).how.slice(0, trace.lengths[turn]);
  const counts = HOW.map((name, how) => [hidden.filter((each) => each === how).length, name]).filter(([many]) => many);
  $("map-note").textContent = `Turn ${turn + 1}: ${counts.map(([many, name]) => `${count(many)} ${name}`).join(", ")}.`;
}

function map() {
  const canvas = $("map");
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    go(Math.floor(((event.clientX - box.left) / box.width) * picture.turns));
    return ((event.clientY - box.top) / box.height) * picture.edges.at(-1);
  };
  canvas.addEventListener("pointermove", (event) => { if (picture && event.buttons) at(event); });
  canvas.addEventListener("pointerdown", (event) => {
    if (!picture) return;
    const height = at(event);
    const message = Math.min(picture.edges.findIndex((edge) => edge > height), state.boxes.length) - 1;
    requestAnimationFrame(() => {
      if (message < 0 || state.boxes[message].box.hidden) return;
      $("follow").checked = false;
      document.querySelectorAll(".found").forEach((other) => other.classList.remove("found"));
      state.boxes[message].box.classList.add("found");
      $("messages").scrollTop = state.boxes[message].box.offsetTop - $("messages").offsetTop - 60;
    });
  });
}

// ── keys ───────────────────────────────────────────────────────────────────────────────

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  const arrows = event.target.id === "map" || !typing;
  const act = {
    n: () => jump(1), p: () => jump(-1),
    ArrowRight: arrows && (() => go(state.turn + 1)), ArrowLeft: arrows && (() => go(state.turn - 1)),
    Home: event.target.id === "map" && (() => go(0)), End: event.target.id === "map" && (() => go(state.turns - 1)),
  }[event.key];
  if (!act || (event.target.tagName === "SELECT")) return;
  if (event.target.closest?.("dialog, textarea, input:not([type=range], [type=checkbox])")) return;
  if (event.target.closest?.(".scroll")) return;
  event.preventDefault();
  act();
}

// ── the beginning ──────────────────────────────────────────────────────────────────────

function start() {
  $("lead").textContent = page.lead;
  $("command").textContent = page.command;
  $("again").hidden = !page.command;
  $("notes").textContent = page.notes.join(" ");
  theme();
  policies();
  showOutcome();
  showDrawn();
  showWhy();
  for (const part of [$("run"), document.querySelector(".bar")]) part.hidden = !page.runs.length;
  if (!page.runs.length) return;
  fill($("runs"), page.runs.map((run, at) => [at, `${run.name} (${plural(run.calls, "call")}, ${short(run.peak)} tokens)`]));
  $("runs").addEventListener("change", () => openRun(Number($("runs").value)));
  $("tries").addEventListener("change", () => choose(Number($("tries").value)));
  $("turn").addEventListener("input", () => go(Number($("turn").value) - 1));
  $("before").addEventListener("click", () => jump(-1));
  $("after").addEventListener("click", () => jump(1));
  $("tall").addEventListener("change", drawCharts);
  $("follow").addEventListener("change", () => showMessages());
  document.addEventListener("keydown", keys);
  map();
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === wide || !state.tries.length) return;
    wide = innerWidth;
    drawCharts();
  });
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter") search(); });
  $("next").addEventListener("click", search);
  addEventListener("hashchange", openLinked);
  openLinked().then(() => { state.isLinked = true; }).catch((error) => {
    $("charts").replaceChildren(make("p", { class: "note" }, `The turns cannot be drawn by this browser (${error.name}).`));
  });
}
