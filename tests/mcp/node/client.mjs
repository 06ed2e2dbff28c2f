// The official TypeScript clients, before a command: node client.mjs legacy|2026-07-28 COMMAND…
//
// Both check a structured result against its schema and throw. What was seen is printed as JSON.

const [age, command, ...args] = process.argv.slice(2);
const legacy = age === "legacy";
const { Client } = await import(
    legacy ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client"
);
const { StdioClientTransport } = await import(
    legacy ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio"
);

const options = legacy ? {} : { versionNegotiation: { mode: { pin: age } } };
const client = new Client({ name: "typescript", version: "1" }, options);
const steps = [];

const text = (result) => result.content.find((block) => block.type === "text").text;

async function call(name, given, onprogress) {
    const params = { name, arguments: given };
    return legacy
        ? client.callTool(params, undefined, { onprogress })
        : client.callTool(params, { onprogress });
}

async function readOn(ref) {
    let whole = "";
    for (;;) {
        const page = text(await call("get_continuation", { tool_call_id: ref, offset: [...whole].length }));
        const mark = page.lastIndexOf("\n[characters ");
        whole += mark < 0 ? page : page.slice(0, mark);
        if (mark < 0) return whole;
    }
}

await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
const { tools } = await client.listTools();
const table = await call("table", { rows: 2000 });
const said = await call("say", { text: "all is wéll 😀\n", times: 5000 });
const ref = /get_continuation\(tool_call_id="(\w{16})"/.exec(text(said))[1];
const picture = await call("picture", { kilobytes: 100 });
await call("slowly", { steps: 20 }, ({ progress }) => steps.push(progress));
const note = await client.readResource({ uri: "note://one" });
const wrong = await call("table", { rows: "none" });

console.log(
    JSON.stringify({
        tools: tools.map((tool) => tool.name),
        rows: table.structuredContent.rows.length,
        said: text(said).length,
        whole: (await readOn(ref)) === "all is wéll 😀\n".repeat(5000),
        picture: picture.content[0].data.length,
        steps,
        note: note.contents[0].text,
        wrong: wrong.isError,
    }),
);
await client.close();
