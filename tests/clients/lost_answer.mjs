// LCM's plugin for OpenCode, in a session that goes on elsewhere while the answer to one of its turns is lost.
import { LcmPlugin } from "../../clients/plugins/opencode/lcm.js"

const sessionID = "ses_1"
let messages = []
const client = {
  session: { get: async () => ({ data: {} }), messages: async () => ({ data: messages }) },
}

function message(id, role, text) {
  return { info: { id, role, sessionID, time: { created: 1769860800000, completed: 1769860800000 } }, parts: [{ type: "text", text }] }
}

let isLost = false
const { fetch } = globalThis
globalThis.fetch = async (url, options) => {
  const answer = await fetch(url, options)
  if (isLost && url.endsWith("/turns/")) throw new Error("The answer came too late.")
  return answer
}

const plugin = await LcmPlugin({ client, directory: "/home/ada/boats", worktree: "/" })
const turn = async (...path) => {
  messages = path
  await plugin.event({ event: { type: "session.idle", properties: { sessionID } } })
}
const [one, yes] = [message("1", "user", "one"), message("2", "assistant", "Yes.")]
const three = [one, yes, message("5", "user", "three"), message("6", "assistant", "Three.")]
await turn(one, yes, message("3", "user", "two"), message("4", "assistant", "Two."))
isLost = true
await turn(...three)
isLost = false
await turn(...three, message("7", "user", "four"), message("8", "assistant", "Four."))
