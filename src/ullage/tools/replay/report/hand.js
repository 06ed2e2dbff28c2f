
// ── what a user decides ────────────────────────────────────────────────────────────────
// A live page asks its proxy what a decision costs, and decides there. A file gives the command.

const VERBS = {
  pin: ["Pin", "It stays whole in every request, as long as that is legal and fits."],
  drop: ["Drop", "It leaves with the next request. A notice names the ref that opens it."],
  restore: ["Restore", "It comes back whole. A later batch may take it out again."],
  undo: ["Undo", "The request is as it was before, as far as it fits."],
  note: ["Add", "It is added at the end of the next request, and stays there."],
};
const EVERY_MS = 4000, SETTLED_MS = 250, CHARS_PER_TOKEN = 4;
const place = location.pathname.replace(/\/$/, "");  // it may be behind a key, or a path of its own
const decisions = { window: null, texts: new Map(), draft: null, asked: 0, timer: 0 };

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-Ullage": "page" },
  };
  const reply = await fetch(`${place}/${path}`, { cache: "no-store", ...options });
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error?.message?.replace(/^ullage proxy: /, "") ?? `status ${reply.status}`);
  return answer;
}

// ── beside each message ──

function barOf(each) {
  each.bar = make("span", { class: "hand-bar" });
  each.box.querySelector("header").append(each.bar);
  each.barOf = null;
  paintBar(each);
}

function paintBar(each) {
  const texts = decisions.texts.get(each.index) ?? [];
  const number = each.index + 1;
  const isPinned = texts.some((text) => text.pinned);
  const isOut = texts.some((text) => text.state !== "whole");
  const isIn = texts.some((text) => text.state !== "set aside");
  const pin = pinOf(number);
  const version = [texts.length, isPinned, isOut, isIn, pin?.name].join();
  if (each.barOf === version) return;
  each.barOf = version;
  each.box.classList.toggle("pinned", isPinned);
  const buttons = [];
  const button = (word, verb, more) => buttons.push(make("button", {
    type: "button", "aria-label": `${word} message ${number}`,
    onclick: () => openDraft({ verb, ...more }) }, word));
  if (isPinned) buttons.push(make("span", { class: "pill pinned" }, "pinned"));
  if (pin) button("unpin", "undo", { target: pin.name, what: pin.what });
  else if (texts.length) button("pin", "pin", { message: each.index });
  if (isOut) button("restore", "restore", { message: each.index });
  if (isIn) button("drop", "drop", { message: each.index });
  each.bar.replaceChildren(...buttons);
}

const pinOf = (number) =>
  decisions.window?.decisions.findLast((one) => one.target === `pin m${number}`);

function undoButton(mark) {
  return make("button", { type: "button", class: "undo-here", "aria-label": `undo the batch of ref ${mark.ref}`,
    onclick: () => openDraft({ verb: "undo", target: mark.ref, what: `the batch that set aside ${mark.what}`,
      freed: mark.before - mark.after }) }, "undo…");
}

// ── the lists ──

function take(window) {
  if (!window) return;
  decisions.window = window;
  decisions.texts = new Map();
  for (const [message, name, kind, tool, chars, shown, pinned] of window.texts) {
    const texts = decisions.texts.get(message) ?? [];
    texts.push({ name, kind, tool, chars, state: shown, pinned });
    decisions.texts.set(message, texts);
  }
  for (const each of state.boxes ?? []) if (each.filled) paintBar(each);
  const newest = [...window.decisions].reverse();
  const none = (words) => make("li", {}, make("span", { class: "hint" }, words));
  $("decided").replaceChildren(...(newest.length ? newest.map(decisionItem) : [none("Nothing yet.")]));
  const batches = [...window.batches].reverse();
  $("batches").replaceChildren(...(batches.length ? batches.map(batchItem) : [none("Nothing.")]));
  $("undo-last").disabled = !newest.length && !batches.length;
  if (page.hand.live && window.messages > (state.story?.roles.length ?? Infinity) && !$("hand-told").textContent)
    tell("The conversation went on.", make("button", { type: "button", onclick: () => location.reload() }, "show it"));
}

function decisionItem(one) {
  const author = one.author ? ` by ${one.author}` : "";
  const text = one.text ? `: “${cut(one.text, 160)}”` : "";
  const due = one.carried_out ? one.price || "carried out" : "with the next request";
  const reason = one.reason ? `${one.reason} · ` : "";
  return make("li", {}, make("span", {}, `${one.what}${text}${author}`, make("small", {}, `${reason}${due}`)),
    make("button", { type: "button", class: "small", "aria-label": `take back: ${one.what} (${one.name})`,
      onclick: () => openDraft({ verb: "undo", target: one.name, what: one.what }) }, "take back…"));
}

function batchItem(one) {
  const sizes = `${count(one.tokens_before)} → ${count(one.tokens_after)} tokens`;
  const what = `${one.stage}, ${plural(one.edits, "edit")}`;
  return make("li", {}, make("span", {}, what, make("small", {}, sizes)),
    make("button", { type: "button", class: "small", "aria-label": `undo ${what} (${one.name})`,
      onclick: () => openDraft({ verb: "undo", target: one.name, what, freed: one.tokens_before - one.tokens_after }) }, "undo…"));
}

function tell(words, ...more) {
  $("hand-told").replaceChildren(words, ...more);
}

// ── one decision, before it is made ──

function openDraft(draft) {
  if ($("decide").open) return;  // one is being decided
  decisions.draft = draft;
  const { verb, message } = draft;
  const texts = decisions.texts.get(message) ?? [];
  const [word, words] = VERBS[verb];
  const named = draft.what ?? (verb === "note" ? "the note" : verb === "undo" ? "what was done last" : `message ${message + 1}`);
  $("decide-title").textContent = `${word} ${named}?`;
  $("decide-what").textContent = words;
  $("decide-yes").textContent = word.toLowerCase();
  const parts = texts.map((text) => [text.name, `${[text.kind, text.tool].filter(Boolean).join(" ")}, ${plural(text.chars, "character")}`]);
  if (parts.length !== 1) parts.unshift([`m${message + 1}`, "the whole message"]);
  fill($("decide-part"), message === undefined ? [] : parts);
  for (const id of ["line-first", "line-last", "decide-reason"]) $(id).value = "";
  $("decide-when-field").hidden = verb !== "restore";
  showFields();
  $("decide").showModal();
  price();
}

// Lines are of one text: they can be pinned, or copied to the end.
function showFields() {
  const { verb, message } = decisions.draft;
  const text = (decisions.texts.get(message) ?? []).find(({ name }) => name === $("decide-part").value);
  const some = verb === "pin" || (verb === "restore" && $("decide-when").value === "end");
  $("decide-lines").hidden = !some || !text || text.kind === "call";
}

function drafted() {
  const { verb, target, text } = decisions.draft;
  const body = { verb, reason: $("decide-reason").value };
  if (verb === "note") body.text = text;
  else if (verb === "undo") body.target = target ?? null;
  else body.target = $("decide-part").value;
  if (verb === "restore") body.when = $("decide-when").value;
  const [first, last] = [Number($("line-first").value), Number($("line-last").value)];
  if (!$("decide-lines").hidden && (first || last)) body.lines = [first || 1, last || first];
  return body;
}

async function price() {
  const mine = ++decisions.asked;
  const body = drafted();
  const box = $("decide-price");
  box.classList.remove("bad");
  if (!page.hand.live) {
    $("decide-command").hidden = false;
    $("decide-command").textContent = commandOf(body);
    $("decide-yes").textContent = "copy the command";
    box.textContent = `${roughly(body)} With --dry-run the command says what it would change, and decides nothing.`;
    return;
  }
  $("decide-yes").disabled = true;
  box.textContent = "Working out the price …";
  try {
    const told = await ask("preview", body);
    if (mine !== decisions.asked) return;
    if (told.problem) throw new Error(told.problem);
    box.replaceChildren(...priced(told, body));
    $("decide-yes").disabled = false;
  } catch (error) {
    if (mine !== decisions.asked) return;
    box.textContent = error.message;
    box.classList.add("bad");
  }
}

function priced(told, body) {
  if (told.changes_nothing) {
    const later = body.when === "batch" ? "It comes back with the next batch; until then nothing changes." : "Nothing changes with the next request.";
    return [later, ...told.notes.map((note) => make("small", {}, note))];
  }
  const sizes = `The next request has ${count(told.tokens_after)} tokens instead of ${count(told.tokens_before)}.`;
  const isAdded = body.verb === "note" || body.when === "end";
  let cache = isAdded ? "It is added at the end, so no cache is broken" : "No cache is broken";
  if (!isAdded && told.rewritten_tokens) cache = `${count(told.rewritten_tokens)} tokens are written to the prompt cache again`;
  if (told.cost_now_usd != null) cache += `: ${dollars(told.cost_now_usd)} now`;
  const call = told.cost_per_call_usd;
  if (call == null) cache += "; the model's prices are not known";
  else if (call) cache += `, and ${dollars(Math.abs(call))} ${call > 0 ? "more" : "less"} for each later call`;
  return [sizes, make("small", {}, `${cache}.`), ...told.notes.map((note) => make("small", {}, note))];
}

// What a file can tell of the price.
function roughly({ verb, target }) {
  if (verb === "note" || verb === "undo") {
    const { text, freed } = decisions.draft;
    if (text) return `About ${plural(Math.ceil(text.length / CHARS_PER_TOKEN), "token")} more.`;
    return freed ? `About ${count(freed)} tokens come back.` : "What it had taken out comes back.";
  }
  const texts = (decisions.texts.get(decisions.draft.message) ?? []).filter(({ name }) => name === target || name.startsWith(`${target}.`));
  const out = texts.filter((text) => text.state !== "whole"), whole = texts.filter((text) => text.state === "whole");
  const tokens = (some) => count(sum(some.map((text) => text.chars)) / CHARS_PER_TOKEN);
  if (verb === "drop") return `About ${tokens(whole)} tokens leave.`;
  return out.length ? `About ${tokens(out)} tokens come back.` : "It is whole now: nothing changes.";
}

const quoted = (word) => (/^[\w.,:\/@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function commandOf({ verb, target, text, when, lines, reason }) {
  const words = ["ullage", verb];
  if (text ?? target) words.push(text ?? target);
  if (lines) words.push("--lines", lines.join("-"));
  if (when && when !== "batch") words.push("--when", when);
  if (reason) words.push("--reason", reason);
  return [...words, ...page.hand.options].map(quoted).join(" ");
}

async function decideDraft(event) {
  event.preventDefault();
  if (!page.hand.live) {
    await copied($("decide-yes"), $("decide-command").textContent);
    return;
  }
  const body = drafted();
  $("decide-yes").disabled = true;
  try {
    await decide(body);
    if (body.verb === "note") $("note-text").value = "";
    $("decide").close();
    $("hand-told").querySelector("button")?.focus();
  } catch (error) {
    $("decide-price").textContent = error.message;
    $("decide-price").classList.add("bad");
  }
}

async function decide(body) {
  const done = await ask("decide", body);
  const undo = make("button", { type: "button", onclick: () => takeBack(done.name) }, "undo");
  take(done.window);
  const one = done.window?.decisions.find(({ name }) => name === done.name);
  tell(`Decided: ${one?.what ?? body.verb} (${done.name}). The agent's next request shows it. `, undo);
}

// Undo is at hand: one press, and it can be undone as well.
async function takeBack(name) {
  try {
    await decide({ verb: "undo", target: name });
    $("hand-told").querySelector("button")?.focus();
  } catch (error) {
    tell(error.message);
  }
}

async function lookAgain() {
  if (!document.hidden && !$("decide").open) {
    try {
      take(await ask("window"));
    } catch {
      tell("The proxy does not show this conversation any more.");
    }
  }
  setTimeout(lookAgain, EVERY_MS);
}

function beginHand() {
  hand = { barOf, undoButton };
  const settled = () => { clearTimeout(decisions.timer); decisions.timer = setTimeout(price, SETTLED_MS); };
  for (const id of ["decide-part", "decide-when"]) $(id).addEventListener("change", () => { showFields(); price(); });
  for (const id of ["line-first", "line-last"]) $(id).addEventListener("input", settled);
  $("decide-reason").addEventListener("input", () => { if (!page.hand.live) settled(); });
  $("decide-form").addEventListener("submit", decideDraft);
  $("decide-no").addEventListener("click", () => $("decide").close());
  $("undo-last").addEventListener("click", () => openDraft({ verb: "undo" }));
  $("note").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("note-text").value.trim();
    if (text) openDraft({ verb: "note", text });
    else $("note-text").focus();
  });
  $("hand-hint").textContent = page.hand.live
    ? "Pin, drop and restore stand beside each message below. You see the price first; what you decide is in the agent's next request."
    : "Pin, drop and restore stand beside each message below. This page is a file: it gives you the command that decides.";
  if (page.hand.window) take(page.hand.window);
  if (page.hand.live) lookAgain();
}

beginHand();
