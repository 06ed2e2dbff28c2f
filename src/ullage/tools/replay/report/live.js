"use strict";
// All that comes from the proxy is put in as text, never as markup.

const EVERY_MS = 2000, WIDTH = 1000, HEIGHT = 150, SHOWN_DECISIONS = 6;
const at = (id) => document.getElementById(id);
const here = location.pathname.replace(/\/?$/, "/");  // it may be behind a key, or a path of its own
const number = (value) => Math.round(value).toLocaleString("en");
const shown = new Map();  // what is drawn of a conversation, and of which state

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function saved(totals) {
  const less = totals.raw_tokens - totals.sent_tokens;
  return totals.raw_tokens > 0 && less > 0 ? `${Math.round(100 * less / totals.raw_tokens)}% less` : "";
}

const dollars = (usd) => `${usd < 0 ? "−" : ""}$${Math.abs(usd).toFixed(2)}`;

// Of all requests, those held out included: they save nothing.
function savedOf(totals) {
  const less = totals.raw_usd - totals.cost_usd;
  if (totals.raw_usd <= 0) return "nothing to compare yet";
  const share = Math.round(Math.abs(100 * less / totals.raw_usd));
  const all = totals.held_out ? " of all requests, those held out included" : "";
  return `${share}% ${less < 0 ? "more" : "less"} than $${totals.raw_usd.toFixed(2)} without ullage, reckoned${all}`;
}

function broken(totals) {
  if (!totals.breaks) return "no prompt cache broke";
  return `part of the cost: a prompt cache broke ${times(totals.breaks)}, and ${number(totals.rebilled_tokens)} tokens were billed once more`;
}

const requests = (count) => `${number(count)} ${count === 1 ? "request" : "requests"}`;

const times = (count) => `${number(count)} ${count === 1 ? "time" : "times"}`;

// ── sums ──

function sums(state) {
  const all = state.totals;
  const unbilled = all.unbilled ? `; nobody bills ${number(all.unbilled)} of the requests` : "";
  const heldOut = all.held_out ? `, ${number(all.held_out)} held out` : "";
  const less = saved(all);
  const rows = [
    ["Requests", number(all.requests), `${number(all.fitted)} went on shorter${all.passed ? `, ${number(all.passed)} as they came` : ""}${heldOut}`],
    ["Prompt tokens sent", number(all.sent_tokens), `of ${number(all.raw_tokens)} that came${less ? `, ${less}` : ""}${all.held_out ? "; without those held out" : ""}`],
    ["Saved", dollars(all.raw_usd - all.cost_usd), savedOf(all)],
    ["Opened again", number(all.recalled), "of what was set aside"],
    ["Cost", `$${all.cost_usd.toFixed(2)}`, `at list price, as far as reported${unbilled}`],
    ["Cost of cache breaks", `$${all.rebilled_usd.toFixed(2)}`, broken(all)],
  ];
  at("sums").replaceChildren(...rows.map(([name, value, more]) => {
    const box = make("div"), told = make("dd", "", value);
    told.append(make("small", "", more));
    box.append(make("dt", "", name), told);
    return box;
  }));
}

// ── budgets ──

function spent(one) {
  const words = [];
  if (one.limit_usd) words.push(`$${one.usd.toFixed(2)} of $${one.limit_usd.toFixed(2)}`);
  if (one.limit_tokens) words.push(`${number(one.tokens)} of ${number(one.limit_tokens)} tokens`);
  return words.join(", ");
}

function budget(one) {
  const item = make("li"), bar = make("meter"), percent = Math.floor(100 * one.share);
  const name = one.tenant ? `${one.budget} · ${one.tenant}` : one.budget;
  const ends = new Date(one.resets_s * 1000).toLocaleString();
  Object.assign(bar, { max: 1, low: 0.8, high: 0.999, optimum: 0 });  // green, yellow, red
  bar.value = Math.min(one.share, 1);
  bar.setAttribute("aria-label", `${name}: ${percent}% spent`);
  item.append(make("b", "", name), ` ${percent}% `, bar, make("br"));
  item.append(make("span", "hint", `${spent(one)} spent in ${one.period}; it starts again on ${ends}`));
  return item;
}

function budgets(state) {
  at("budgets").hidden = !state.budgets.length;
  at("budgets-list").replaceChildren(...state.budgets.map(budget));
}

// ── one conversation ──

// A request that a budget stopped has no size.
const sentTurns = (one) => one.turns.filter((turn) => turn[2] > 0);

// Each request is as wide as any other, as on the page of one conversation.
function chart(one) {
  const turns = sentTurns(one), last = turns[turns.length - 1], limit = last[3];
  const top = 1.12 * Math.max(1, ...turns.map((turn) => Math.max(turn[1], turn[2])));
  const x = (index) => (index * WIDTH / turns.length).toFixed(1);
  const y = (tokens) => (HEIGHT - HEIGHT * Math.min(tokens / top, 1)).toFixed(1);
  const steps = (column) => turns.flatMap((turn, index) => [`${x(index)},${y(turn[column])}`, `${x(index + 1)},${y(turn[column])}`]);
  const label = `${requests(turns.length)}; the newest ${number(last[2])} of ${number(limit)} tokens, it came with ${number(last[1])}`;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  svg.append(
    drawn("polygon", { class: "sent", points: [`0,${HEIGHT}`, ...steps(2), `${WIDTH},${HEIGHT}`].join(" ") }),
    drawn("polyline", { class: "raw", points: steps(1).join(" ") }),
  );
  const box = make("div", "chart"), isNear = limit > 0 && limit <= top;
  if (isNear) svg.append(drawn("line", { class: "limit", x1: 0, x2: WIDTH, y1: y(limit), y2: y(limit) }));
  const times = new Map(turns.map((turn, index) => [turn[0], index]));
  for (const when of new Set(one.decisions.map((decision) => decision[0]))) {
    if (!times.has(when)) continue;
    const place = x(times.get(when) + 0.5);
    svg.append(drawn("line", { class: "decided", x1: place, x2: place, y1: HEIGHT - 8, y2: HEIGHT }));
  }
  const isCut = last[1] > last[2];
  box.append(svg, said("came", y(last[1]), isCut ? `without ullage ${number(last[1])} tokens` : `sent whole: ${number(last[2])} tokens`));
  if (isCut && y(last[2]) - y(last[1]) > 24) box.append(said("went", y(last[2]), `sent ${number(last[2])}`));
  if (isNear) box.append(said("most", y(limit), `limit ${number(limit)}`));
  return box;
}

// A word at a line; the line's own label is read from the picture.
function said(name, height, text) {
  const word = make("span", `said ${name}`, text);
  word.style.top = `${height}px`;
  word.setAttribute("aria-hidden", "true");
  return word;
}

function decided(decision) {
  const [seconds, kind, where, why, before, after] = decision;
  const item = make("li"), sizes = before ? ` ${number(before)} → ${number(after)} tokens` : "";
  item.append(make("b", "", kind.replaceAll("_", " ")), ` ${where}${sizes}`, make("br"), make("span", "", why));
  item.title = new Date(seconds * 1000).toLocaleString();
  return item;
}

function conversation(one) {
  const box = make("section", "conversation"), head = make("div", "head"), all = one.totals;
  const last = sentTurns(one).pop(), id = `c-${one.key}`;
  const title = make("h2", "", one.model || "an unnamed model"), open = make("a", "", "turn by turn, and decide");
  title.id = id;
  box.setAttribute("aria-labelledby", id);
  open.href = `${here}conversations/${encodeURIComponent(one.key)}`;
  open.setAttribute("aria-label", `turn by turn, and decide: ${one.model} ${one.key.slice(0, 6)}`);
  head.append(title, open);
  const less = saved(all), cost = all.cost_usd ? ` · $${all.cost_usd.toFixed(2)}` : "";
  const size = last ? ` · now ${number(last[2])} of ${number(last[3])} tokens` : "";
  const words = `${one.wire} · ${one.key.slice(0, 6)} · ${requests(all.requests)}${size}`;
  box.append(head, make("p", "hint", `${words}${less ? ` · ${less} in all` : ""}${cost}`));
  if (last) box.append(chart(one));
  else box.append(make("p", "hint", "No request of it was fitted: a budget stopped it, or it went on as it came."));
  if (all.breaks) box.append(make("p", "hint broken", `The prompt cache broke ${times(all.breaks)}: ${number(all.rebilled_tokens)} tokens were billed again, $${all.rebilled_usd.toFixed(2)}.`));
  if (one.is_held_out) box.append(make("p", "hint standing", "Held out: it passes unfitted, so that its bill can be compared with those of the others."));
  else if (one.standing) box.append(make("p", "hint standing", one.standing.why));
  if (one.without.length) box.append(make("p", "hint without", `sent without our ${one.without.join(" and ")}: the upstream refuses it`));
  const list = make("ul", "decisions");
  list.append(...one.decisions.slice(-SHOWN_DECISIONS).reverse().map(decided));
  if (one.decisions.length) box.append(list);
  return box;
}

function conversations(state) {
  const parent = at("conversations");
  const boxes = state.conversations.map((one) => {
    const version = `${one.totals.requests} ${one.turns[one.turns.length - 1][0]}`;
    const known = shown.get(one.key);
    if (known && known.version === version) return known.box;
    const box = conversation(one);
    shown.set(one.key, { version, box });
    return box;
  });
  for (const key of shown.keys()) {
    if (!state.conversations.some((one) => one.key === key)) shown.delete(key);
  }
  const same = boxes.length === parent.children.length && boxes.every((box, index) => box === parent.children[index]);
  if (!same) parent.replaceChildren(...boxes);
  at("none").hidden = boxes.length > 0;
}

// ── the page ──

async function look() {
  if (!document.hidden) {
    try {
      const answer = await fetch(`${here}state`, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const state = await answer.json();
      const dry = state.dry_run ? " A dry run: every request goes on as it came." : "";
      at("lead").textContent = `Policy ${state.policy}, ${state.workers} ${state.workers === 1 ? "worker" : "workers"}.${dry}`;
      sums(state);
      budgets(state);
      conversations(state);
    } catch {
      at("lead").textContent = "The proxy does not answer any more.";
    }
  }
  setTimeout(look, EVERY_MS);
}

at("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});
at("report").href = here + at("report").getAttribute("href");
look();
