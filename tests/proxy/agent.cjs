// An agent on a vendor's own SDK, streamed: WIRE, base URL. Prints the history that it ends with.
const [wire, baseURL] = process.argv.slice(2);
const parameters = {
  type: "object",
  properties: { command: { type: "string" } },
  required: ["command"],
};
const about = { name: "bash", description: "Runs a command." };
const listing = Array.from({ length: 2500 }, (_, n) => `line ${n + 1}`).join("\n");

function run(name, input) {
  if (name !== "bash") throw new Error(`a private call reached the client: ${name}`);
  return input.command.includes("seq") ? listing : "last";
}

const asks = {
  async anthropic(history) {
    const { Anthropic } = require("@anthropic-ai/sdk");
    const client = new Anthropic({ baseURL, apiKey: "none" });
    const tools = [{ ...about, input_schema: parameters }];
    const head = { model: "claude-sonnet-4-5", max_tokens: 900, tools };
    const { content } = await client.messages.stream({ ...head, messages: history }).finalMessage();
    history.push({ role: "assistant", content });
    const calls = content.filter((block) => block.type === "tool_use");
    const results = calls.map(({ id, name, input }) => {
      return { type: "tool_result", tool_use_id: id, content: run(name, input) };
    });
    if (results.length) history.push({ role: "user", content: results });
    return results.length;
  },

  async "openai-chat"(history) {
    const { OpenAI } = require("openai");
    const client = new OpenAI({ baseURL, apiKey: "none" });
    const tools = [{ type: "function", function: { ...about, parameters } }];
    const asked = { model: "gpt-4.1", tools, messages: history };
    const said = await client.chat.completions.stream(asked).finalMessage();
    history.push(said);
    const calls = said.tool_calls ?? [];
    for (const { id, function: { name, arguments: input } } of calls) {
      history.push({ role: "tool", tool_call_id: id, content: run(name, JSON.parse(input)) });
    }
    return calls.length;
  },

  async "openai-responses"(history) {
    const { OpenAI } = require("openai");
    const client = new OpenAI({ baseURL, apiKey: "none" });
    const tools = [{ type: "function", ...about, parameters, strict: false }];
    const asked = { model: "gpt-5.2", tools, input: history, store: false };
    const { output } = await client.responses.stream(asked).finalResponse();
    history.push(...output);
    const calls = output.filter((item) => item.type === "function_call");
    for (const { call_id, name, arguments: input } of calls) {
      history.push({ type: "function_call_output", call_id, output: run(name, JSON.parse(input)) });
    }
    return calls.length;
  },

  async gemini(history) {
    const { GoogleGenAI } = require("@google/genai");
    const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: baseURL } });
    const tools = [{ functionDeclarations: [{ ...about, parametersJsonSchema: parameters }] }];
    const asked = { model: "gemini-2.5-pro", contents: history, config: { tools } };
    const parts = [];
    for await (const { candidates } of await client.models.generateContentStream(asked)) {
      parts.push(...(candidates?.[0]?.content?.parts ?? []));
    }
    history.push({ role: "model", parts });
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    const results = calls.map(({ id, name, args }) => {
      return { functionResponse: { id, name, response: { output: run(name, args) } } };
    });
    if (results.length) history.push({ role: "user", parts: results });
    return results.length;
  },
};

(async () => {
  const said = wire === "gemini" ? { parts: [{ text: "Count." }] } : { content: "Count." };
  const history = [{ role: "user", ...said }];
  while (await asks[wire](history));
  console.log(JSON.stringify(history));
})();
