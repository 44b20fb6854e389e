/**
 * LCM for OpenCode: record every message, and give the model LCM's context.
 *
 * Before each call of the model, messages that LCM lacks are appended and the context is assembled: old messages are
 * replaced by summaries, and the others stay as OpenCode has them. A subagent's session is a child of its parent's. The
 * model gets LCM's tools over MCP.
 *
 * If LCM does not respond, OpenCode works as without this plugin; LCM gets the missed messages with the next call.
 *
 * Settings: LCM_BASE_URL and LCM_TOKEN, or the values that `lcm connect opencode` wrote. LCM_CONTEXT_TOKENS is the
 * budget; the default is the model's window minus the tokens reserved for the answer and for OVERHEAD.
 */

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

const MILLISECONDS = 10_000
const AT_ONCE = 200
// How often a context without summaries of what it lacks is assembled again.
const ATTEMPTS = 3
// Tokens reserved for the system prompt, the tools and what OpenCode adds to a request.
const OVERHEAD = 24_000
// OpenCode reserves at most this many tokens for an answer.
const LONGEST_ANSWER = 32_000
const NOTE =
  "Earlier messages of this session are not shown. LCM keeps them whole: lcm_grep finds them, lcm_expand opens summaries."

/** The path of a file with OpenCode's state, in the folder that `lcm connect` creates. */
function kept(name) {
  return join(process.env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "lcm", "opencode", name)
}

function fileOf(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"))
  } catch {
    return {}
  }
}

/** Record the last activity, for `lcm doctor`. */
function note(values) {
  if (!existsSync(kept("connection.json"))) return
  const path = kept("activity.json")
  const rows = fileOf(path)
  for (const name of Object.keys(values)) rows[name] = { at: Date.now() / 1000, what: values[name] }
  try {
    writeFileSync(`${path}.${process.pid}`, JSON.stringify(rows), { mode: 0o600 })
    renameSync(`${path}.${process.pid}`, path)
  } catch {
    // Ignore the error: the file is only for `lcm doctor`.
  }
}

function settings() {
  const connection = fileOf(kept("connection.json"))
  return {
    url: (process.env.LCM_BASE_URL || connection.api_url || "http://127.0.0.1:8000").replace(/\/+$/, ""),
    token: process.env.LCM_TOKEN || connection.api_key || "",
  }
}

/** Convert a message of OpenCode to LCM's neutral format; its tool results become a second message. */
function neutral({ info, parts }) {
  const created_at = new Date(info.time.created).toISOString()
  const results = []
  const shown = []
  for (const part of parts) {
    if (part.type === "text" && !part.ignored) shown.push({ type: "text", text: part.text })
    else if (part.type === "reasoning") shown.push({ type: "reasoning", text: part.text })
    else if (part.type === "file") shown.push({ type: "image", mime: part.mime, url: part.url, name: part.filename })
    else if (part.type === "tool") {
      const { input, output, error, status } = part.state
      shown.push({ type: "tool_call", id: part.callID, name: part.tool, input: input ?? {} })
      if (status === "completed" || status === "error") {
        const text = status === "error" ? (error ?? "") : (output ?? "")
        results.push({ type: "tool_result", id: part.callID, name: part.tool, text, is_error: status === "error" })
      }
    }
  }
  const content = shown.filter((part) => part.type === "text").map((part) => part.text).join("\n")
  const rows = [{ idempotency_key: `opencode:${info.id}`, role: info.role, created_at, content, parts: shown }]
  if (results.length) {
    const text = results.map((part) => part.text).join("\n")
    rows.push({ idempotency_key: `opencode:${info.id}:results`, role: "tool", created_at, content: text, parts: results })
  }
  return rows
}

/** Whether a message will not change any more. */
function isDone({ info, parts }) {
  if (info.role === "user") return true
  return Boolean(info.time.completed) && parts.every((part) => part.type !== "tool" || ["completed", "error"].includes(part.state.status))
}

function sizeOf(messages) {
  return JSON.stringify(messages.map((each) => each.parts)).length
}

export const LcmPlugin = async ({ client, directory, worktree }) => {
  const lcm = settings()
  // By session id: its conversation, its head, the seqs of stored messages by key, and whether these are current.
  const sessions = new Map()

  async function rest(path, body) {
    const answer = await fetch(`${lcm.url}/api/v1/${path}`, {
      method: body ? "POST" : "GET",
      headers: { Authorization: `Bearer ${lcm.token}`, "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(MILLISECONDS),
    })
    if (!answer.ok) throw new Error(`LCM answered ${answer.status}: ${(await answer.text()).slice(0, 300)}`)
    return answer.json()
  }

  async function opened(sessionID) {
    if (sessions.has(sessionID)) return sessions.get(sessionID)
    const { data } = await client.session.get({ path: { id: sessionID } })
    const given = { session_id: `opencode:${sessionID}`, title: data?.title || undefined, project: worktree && worktree !== "/" ? worktree : directory }
    let found
    if (data?.parentID) {
      const parent = await opened(data.parentID)
      if (parent) found = await rest("conversations/", { ...given, parent_session_id: `opencode:${data.parentID}` })
    }
    found ??= await rest("conversations/", given)
    const session = { id: found.conversation_id, isCurrent: false, work: Promise.resolve() }
    sessions.set(sessionID, session)
    return session
  }

  async function refresh(session) {
    session.head = (await rest(`conversations/${session.id}/`)).head_seq
    session.seqs = await stored(session.id)
  }

  /** Fetch the seqs of a conversation's stored messages, on any branch, by idempotency key. */
  async function stored(id) {
    const seqs = new Map()
    let cursor = ""
    do {
      const page = await rest(`conversations/${id}/messages/?limit=1000${cursor}`)
      for (const each of page.items) seqs.set(each.idempotency_key, each.seq)
      cursor = page.next_cursor && `&cursor=${encodeURIComponent(page.next_cursor)}`
    } while (cursor)
    return seqs
  }

  /** Append the messages that LCM lacks, in batches; return the last response, with the assembled context. */
  async function turn(session, messages, budget) {
    const rows = messages.flatMap(neutral)
    const isKnown = (row) => session.seqs.has(row.idempotency_key)
    const newest = rows.findLast(isKnown)
    const follows = newest ? session.seqs.get(newest.idempotency_key) : 0
    // After an undo, move the head to the message from which the session continues.
    let move = follows !== session.head ? { head_seq: follows } : {}
    let left = rows.filter((row) => !isKnown(row))
    for (;;) {
      const batch = left.slice(0, AT_ONCE)
      left = left.slice(AT_ONCE)
      const answer = await rest(`conversations/${session.id}/turns/`, { format: "neutral", messages: batch, budget, ...move })
      const whole = new Set((answer.appended?.skipped ?? []).filter((each) => each.is_whole).map((each) => each.position))
      const sent = batch.filter((_, place) => !whole.has(place + 1))
      ;(answer.appended?.messages ?? []).forEach((each, place) => session.seqs.set(sent[place].idempotency_key, each.seq))
      session.head = answer.head_seq
      move = {}
      if (!left.length) return answer
    }
  }

  /** Have messages that do not fit summarized, and assemble again; LCM may not have compacted them yet. */
  async function summarized(session, answer, budget) {
    for (let left = ATTEMPTS; left && answer.context.left_out?.messages; left--) {
      const done = await rest(`conversations/${session.id}/compactions/`, {}).catch(() => undefined)
      // Another compaction is in progress.
      if (!done) await new Promise((resolve) => setTimeout(resolve, 1000))
      answer = await rest(`conversations/${session.id}/turns/`, { format: "neutral", messages: [], budget })
      if (done) break
    }
    return answer
  }

  /** The tokens that messages may have before OpenCode compacts; undefined if the model's window is unknown. */
  async function budgetOf(messages) {
    const given = Number(process.env.LCM_CONTEXT_TOKENS)
    if (given > 0) return given
    const model = messages.findLast((each) => each.info.role === "user")?.info.model
    const { data } = await client.config.providers()
    const limit = data?.providers.find((each) => each.id === model?.providerID)?.models[model.modelID]?.limit
    const window = limit?.input || limit?.context
    if (!window) return undefined
    const room = window - Math.min(limit.output || LONGEST_ANSWER, LONGEST_ANSWER)
    return Math.floor(Math.max(2_000, room - Math.min(OVERHEAD, room / 2)))
  }

  /** Build the messages for the model from LCM's context; undefined to leave them unchanged. */
  function assembled(session, messages, context) {
    const own = new Map()
    for (const message of messages)
      for (const row of neutral(message)) own.set(session.seqs.get(row.idempotency_key), message)
    const chosen = []
    const asker = messages.find((each) => each.info.role === "user")
    if (!asker) return undefined
    const { sessionID } = asker.info
    const written = (name, text) => {
      const id = `msg_lcm${name.replace(/\W/g, "")}`
      const part = { id: id.replace("msg", "prt"), sessionID, messageID: id, type: "text", synthetic: true, text }
      return { info: { ...asker.info, id }, parts: [part] }
    }
    for (const item of context.items ?? []) {
      const message = item.kind === "message" ? own.get(item.first_seq) : undefined
      if (!message) chosen.push(written(item.id, item.text))
      else if (!chosen.includes(message)) chosen.push(message)
    }
    // Unfinished messages stay: LCM does not have them yet.
    for (const message of messages) if (!isDone(message)) chosen.push(message)
    if (chosen[chosen.length - 1] !== messages[messages.length - 1]) return undefined
    if (chosen.length === messages.length && chosen.every((each, place) => each === messages[place])) return undefined
    // A vendor may refuse a conversation that does not begin with a user message.
    const isCut = context.left_out?.messages || context.left_out?.summaries || chosen[0].info.role !== "user"
    if (isCut) chosen.unshift(written("note", NOTE))
    // OpenCode may have compacted: a longer context would soon make it compact again.
    return sizeOf(chosen) > sizeOf(messages) ? undefined : chosen
  }

  /** Run a session's tasks one after another; errors are recorded, and never reach OpenCode. */
  async function safely(sessionID, work) {
    try {
      const session = await opened(sessionID)
      const result = session.work.then(async () => {
        if (!session.isCurrent) await refresh(session)
        // After an error, such as a timeout, LCM may have stored more than is known here.
        session.isCurrent = false
        const found = await work(session)
        session.isCurrent = true
        return found
      })
      session.work = result.catch(() => undefined)
      const found = await result
      note({ event: "turn", append: "turn" })
      return found
    } catch (error) {
      note({ event: "turn", problem: String(error).slice(0, 200) })
      if (process.env.LCM_DEBUG) console.error(`lcm: ${error}`)
      return undefined
    }
  }

  /** Fetch a session's finished messages, including those before a compaction. */
  async function doneIn(sessionID) {
    const { data } = await client.session.messages({ path: { id: sessionID } })
    // An error must not look like an empty session: the head would move back to the beginning.
    if (!data) throw new Error("OpenCode does not give the session's messages")
    return data.filter(isDone)
  }

  async function sync(sessionID) {
    await safely(sessionID, async (session) => {
      const done = await doneIn(sessionID)
      if (done.flatMap(neutral).some((row) => !session.seqs.has(row.idempotency_key))) await turn(session, done)
    })
  }

  return {
    "experimental.chat.messages.transform": async (_input, output) => {
      const messages = output.messages
      const sessionID = messages[0]?.info.sessionID
      if (!sessionID || messages.some((each) => each.info.sessionID !== sessionID)) return
      const chosen = await safely(sessionID, async (session) => {
        const budget = await budgetOf(messages)
        const answer = await turn(session, await doneIn(sessionID), budget)
        return assembled(session, messages, (await summarized(session, answer, budget)).context)
      })
      if (chosen) messages.splice(0, messages.length, ...chosen)
    },
    event: async ({ event }) => {
      if (event.type === "session.idle") await sync(event.properties.sessionID)
    },
  }
}
