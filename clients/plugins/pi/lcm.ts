/**
 * LCM for pi: record every message, and give the model LCM's context.
 *
 * Before each call of the model, messages of pi's branch that LCM lacks are appended and the context is assembled: old
 * messages are replaced by summaries, and the others stay as pi has them. When pi switches branches in its session
 * tree, the head moves. pi's own compaction at its threshold is not needed, and is cancelled.
 *
 * If LCM does not respond, pi works as without this extension; LCM gets the missed messages with the next call.
 *
 * Settings: LCM_BASE_URL, LCM_TOKEN and LCM_MCP_URL, or the values that `lcm connect pi` wrote. LCM_CONTEXT_TOKENS is
 * the budget; the default is the model's window minus the tokens reserved for the answer and for OVERHEAD.
 */

import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const MILLISECONDS = 10_000;
const AT_ONCE = 200;
// How often a context without summaries of what it lacks is assembled again.
const ATTEMPTS = 3;
// Tokens reserved for the system prompt, the tools and what pi adds to a request.
const OVERHEAD = 12_000;
const TOOLS = ["lcm_grep", "lcm_about", "lcm_describe", "lcm_expand", "lcm_expand_range", "lcm_message", "lcm_timeline"];

const NOTE =
  "Earlier messages of this session are not shown. LCM keeps them whole: lcm_grep finds them, lcm_expand opens summaries.";

type Row = Record<string, any>;

function fileOf(path: string): Row {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return {};
  }
}

/** The path of a file with pi's state, in the folder that `lcm connect` creates. */
function kept(name: string): string {
  return join(process.env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "lcm", "pi", name);
}

/** Record the last activity, for `lcm doctor`. */
function note(values: Record<string, string>): void {
  if (!existsSync(kept("connection.json"))) return;
  const path = kept("activity.json");
  const rows = fileOf(path);
  for (const name of Object.keys(values)) rows[name] = { at: Date.now() / 1000, what: values[name] };
  try {
    writeFileSync(`${path}.${process.pid}`, JSON.stringify(rows), { mode: 0o600 });
    renameSync(`${path}.${process.pid}`, path);
  } catch {
    // Ignore the error: the file is only for `lcm doctor`.
  }
}

function settings() {
  const connection = fileOf(kept("connection.json"));
  const beside = fileOf(join(dirname(fileURLToPath(import.meta.url)), "lcm.json"));
  return {
    url: (process.env.LCM_BASE_URL || connection.api_url || "http://127.0.0.1:8000").replace(/\/+$/, ""),
    token: process.env.LCM_TOKEN || connection.api_key || "",
    mcp: process.env.LCM_MCP_URL || beside.mcp_url || "",
  };
}

async function ask(url: string, token: string, body?: Row, method = "POST"): Promise<Row> {
  const answer = await fetch(url, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(MILLISECONDS),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`LCM answered ${answer.status}: ${text.slice(0, 300)}`);
  // An MCP response may be a single server-sent event.
  const data = text.startsWith("{") ? text : text.split("\n").find((line) => line.startsWith("data:"))?.slice(5);
  return JSON.parse(data || "{}");
}

/** A message's idempotency key: a hash of the fields that are equal in memory and in pi's session file. */
function keyOf(message: Row): string {
  const { role, content, timestamp, toolCallId, command, output, summary } = message;
  const text = JSON.stringify([role, content, timestamp, toolCallId, command, output, summary]);
  return `pi:${createHash("sha256").update(text).digest("hex").slice(0, 40)}`;
}

/** Convert a message of pi to LCM's neutral format. */
function neutral(message: Row): Row {
  const given = message.content ?? [message.command, message.output, message.summary].filter(Boolean).join("\n");
  const blocks: Row[] = typeof given === "string" ? [{ type: "text", text: given }] : given;
  const parts = blocks.map((block): Row => {
    if (block.type === "thinking") return { type: "reasoning", text: block.thinking };
    if (block.type === "toolCall") return { type: "tool_call", id: block.id, name: block.name, input: block.arguments };
    if (block.type === "image") return { type: "image", mime: block.mimeType, url: `data:${block.mimeType};base64,${block.data}` };
    return { type: "text", text: block.text ?? "" };
  });
  const row: Row = { idempotency_key: keyOf(message), created_at: new Date(message.timestamp).toISOString() };
  if (message.role === "toolResult") {
    const text = blocks.filter((block) => block.type === "text").map((block) => block.text).join("\n");
    const result = { type: "tool_result", id: message.toolCallId, name: message.toolName, text, is_error: !!message.isError };
    return { ...row, role: "tool", content: text, parts: [result, ...parts.filter((part) => part.type === "image")] };
  }
  const content = parts.filter((part) => part.type === "text").map((part) => part.text).join("\n");
  return { ...row, role: message.role === "assistant" ? "assistant" : "user", content, parts };
}

export default function (pi: any) {
  const lcm = settings();
  let conversation = 0;
  let head = 0;
  // Whether the model's last context was LCM's, and fitted.
  let isAssembled = false;
  let queue: Promise<unknown> = Promise.resolve();
  // The seqs of stored messages, by key.
  let seqs = new Map<string, number>();

  const rest = (path: string, body?: Row, method?: string) => ask(`${lcm.url}/api/v1/${path}`, lcm.token, body, method);

  async function open({ session, cwd }: Row): Promise<void> {
    if (conversation) return;
    const opened = await rest("conversations/", { session_id: session, project: cwd, metadata: { cwd } });
    head = opened.head_seq;
    seqs = await stored(opened.conversation_id);
    conversation = opened.conversation_id;
  }

  /** Fetch the seqs of a conversation's stored messages, on any branch, by idempotency key. */
  async function stored(id: number): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    let cursor = "";
    do {
      const page = await rest(`conversations/${id}/messages/?limit=1000${cursor}`, undefined, "GET");
      for (const each of page.items) found.set(each.idempotency_key, each.seq);
      cursor = page.next_cursor && `&cursor=${encodeURIComponent(page.next_cursor)}`;
    } while (cursor);
    return found;
  }

  /** Copy the needed values from pi's context object, which must not be used after pi continues. */
  function seen(ctx: any, given: Row[] = []): Row {
    const session = `pi:${ctx.sessionManager.getSessionId()}`;
    return { session, cwd: ctx.cwd, path: pathOf(ctx, given), budget: budgetOf(ctx) };
  }

  /** Append the messages that LCM lacks, in batches; return the last response, with the assembled context. */
  async function turn(path: Row[], budget: number): Promise<Row> {
    const known = path.map(keyOf).filter((key) => seqs.has(key));
    const follows = seqs.get(known[known.length - 1]) ?? 0;
    let rows = path.filter((message) => !seqs.has(keyOf(message))).map(neutral);
    // After a switch of branches, move the head to the message from which this one continues.
    let move: Row = follows !== head ? { head_seq: follows } : {};
    for (;;) {
      const batch = rows.slice(0, AT_ONCE);
      rows = rows.slice(AT_ONCE);
      const answer = await rest(`conversations/${conversation}/turns/`, { format: "neutral", messages: batch, budget, ...move });
      const whole = new Set((answer.appended?.skipped ?? []).filter((each: Row) => each.is_whole).map((each: Row) => each.position));
      const sent = batch.filter((_, place) => !whole.has(place + 1));
      (answer.appended?.messages ?? []).forEach((each: Row, place: number) => seqs.set(sent[place].idempotency_key, each.seq));
      head = answer.head_seq;
      move = {};
      if (!rows.length) return answer;
    }
  }

  /** Have messages that do not fit summarized, and assemble again; LCM may not have compacted them yet. */
  async function summarized(answer: Row, budget: number): Promise<Row> {
    for (let left = ATTEMPTS; left && answer.context.left_out?.messages; left--) {
      const done = await rest(`conversations/${conversation}/compactions/`, {}).catch(() => undefined);
      // Another compaction is in progress.
      if (!done) await new Promise((resolve) => setTimeout(resolve, 1000));
      answer = await rest(`conversations/${conversation}/turns/`, { format: "neutral", messages: [], budget });
      if (done) break;
    }
    return answer;
  }

  /** Build the messages for the model from LCM's context; undefined if the context lacks the newest message. */
  function assembled(given: Row[], path: Row[], context: Row): Row[] | undefined {
    const bySeq = new Map(path.map((message) => [seqs.get(keyOf(message)), message]));
    const chosen: Row[] = [];
    for (const item of context.items ?? []) {
      const own = item.kind === "message" ? bySeq.get(item.first_seq) : undefined;
      if (own) chosen.push(own);
      else if (item.text) chosen.push({ role: "user", content: [{ type: "text", text: item.text }], timestamp: given[0].timestamp });
    }
    const calls = new Set(chosen.flatMap((each) => (Array.isArray(each.content) ? each.content : [])).filter((block) => block.type === "toolCall").map((block) => block.id));
    const whole = chosen.filter((each) => each.role !== "toolResult" || calls.has(each.toolCallId));
    // The model is to answer the newest message, so it must be the last one.
    if (!whole.length || keyOf(whole[whole.length - 1]) !== keyOf(given[given.length - 1])) return undefined;
    const isSame = whole.length === given.length && whole.every((each, place) => keyOf(each) === keyOf(given[place]));
    if (isSame) return given;
    // A vendor may refuse a conversation that does not begin with a user message.
    const isCut = context.left_out?.messages || context.left_out?.summaries || whole[0].role !== "user";
    const first = { role: "user", content: [{ type: "text", text: NOTE }], timestamp: given[0].timestamp };
    return isCut ? [first, ...whole] : whole;
  }

  function budgetOf(ctx: any): number {
    const given = Number(process.env.LCM_CONTEXT_TOKENS);
    if (given > 0) return given;
    const window = ctx.model?.contextWindow || 128_000;
    return Math.max(2_000, window - Math.min(ctx.model?.maxTokens || 16_000, window / 4) - Math.min(OVERHEAD, window / 4));
  }

  /**
   * The messages of the branch, including those before a compaction; then those that pi has not stored yet. Without
   * pi's system prompt, which newer versions store as a message.
   */
  function pathOf(ctx: any, given: Row[]): Row[] {
    const entries: Row[] = ctx.sessionManager.getBranch();
    const messages: Row[] = entries.filter((entry) => entry.type === "message" && entry.message).map((entry) => entry.message);
    const path = messages.filter((message) => message.role !== "system");
    const keys = new Set(path.map(keyOf));
    const isOwn = (message: Row) => ["user", "assistant", "toolResult"].includes(message.role) && !keys.has(keyOf(message));
    return [...path, ...given.filter(isOwn)];
  }

  /** Run tasks one after another; errors are recorded and shown, and never reach pi. */
  function safely<T>(ctx: any, work: () => Promise<T>): Promise<T | undefined> {
    const done = queue.then(work).then(
      (found) => {
        note({ event: "turn", append: "turn" });
        show(ctx, `LCM: ${head} messages`);
        return found;
      },
      (error) => {
        // After an error, such as a timeout, LCM may have stored more than is known here: open the session again.
        conversation = 0;
        note({ event: "turn", problem: String(error).slice(0, 200) });
        show(ctx, "LCM does not answer");
        if (process.env.LCM_DEBUG) console.error(`lcm: ${error}`);
        return undefined;
      },
    );
    queue = done;
    return done;
  }

  function show(ctx: any, text: string): void {
    try {
      if (ctx.hasUI) ctx.ui.setStatus("lcm", text);
    } catch {
      // The session has ended.
    }
  }

  async function sync(ctx: any): Promise<void> {
    const now = seen(ctx);
    await safely(ctx, async () => {
      if (!now.path.length) return;
      await open(now);
      if (now.path.some((message: Row) => !seqs.has(keyOf(message)))) await turn(now.path, now.budget);
    });
  }

  async function addTools(): Promise<void> {
    if (!lcm.mcp) return;
    const call = (method: string, params: Row) => ask(lcm.mcp, lcm.token, { jsonrpc: "2.0", id: 1, method, params });
    const listed = await call("tools/list", {});
    for (const tool of listed.result?.tools ?? []) {
      if (!TOOLS.includes(tool.name)) continue;
      pi.registerTool({
        name: tool.name,
        label: tool.title ?? tool.name,
        description: tool.description,
        parameters: tool.inputSchema,
        async execute(_id: string, params: Row) {
          const own = tool.inputSchema.properties?.conversation_id && params.conversation_id === undefined && !params.project;
          const args = own && conversation ? { ...params, conversation_id: conversation } : params;
          const { result, error } = await call("tools/call", { name: tool.name, arguments: args });
          const content = result?.content ?? [{ type: "text", text: error?.message ?? "LCM gave no answer." }];
          if (result?.isError || error) throw new Error(content.map((each: Row) => each.text).join("\n"));
          return { content, details: {} };
        },
      });
    }
  }

  pi.on("session_start", async (_event: Row, ctx: any) => {
    await safely(ctx, async () => {
      conversation = head = 0;
      isAssembled = false;
      seqs = new Map();
      await addTools();
    });
    await sync(ctx);
  });

  pi.on("context", async (event: Row, ctx: any) => {
    const given: Row[] = event.messages;
    if (!given.length) return undefined;
    const now = seen(ctx, given);
    let fits = true;
    const messages = await safely(ctx, async () => {
      await open(now);
      const { context } = await summarized(await turn(now.path, now.budget), now.budget);
      fits = !context.over_budget;
      return assembled(given, now.path, context);
    });
    isAssembled = fits && messages !== undefined;
    return messages && { messages };
  });

  pi.on("agent_end", async (_event: Row, ctx: any) => sync(ctx));
  pi.on("session_shutdown", async (_event: Row, ctx: any) => sync(ctx));

  // Cancel only pi's own compaction at its threshold: LCM's context fits. A compaction that the user requested, or that
  // follows a refused request, goes on.
  pi.on("session_before_compact", async (event: Row) => {
    return isAssembled && event.reason === "threshold" ? { cancel: true } : undefined;
  });
}
